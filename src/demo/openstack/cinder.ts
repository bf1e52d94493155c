/** cinder v3: versions, `volumes/detail`, volume types. */
import type { Volume, VolumeType } from "./model.ts";
import { byCreationBackwards, indexBehind } from "./ordered.ts";
import {
  type AuthorizedRequest,
  limitOf,
  type Reply,
  reply,
  type ServiceRequest,
  seconds,
  sortedQuery,
} from "./service.ts";
import { seesAll } from "./token.ts";
import { uuid, type World } from "./world.ts";

/** The highest microversion's second part: 3.70. */
const NEWEST = 70;
/** From this one on, a page tells how many volumes there are in all, where it is asked to. */
const COUNTS = 45;

/** The second part of the microversion that is asked for: 0 without one. @returns null where there is no such */
function microversion(headers: Headers): number | null {
  const asked = headers.get("openstack-api-version");
  if (asked === null) return 0;
  const minor = Number(/^volume 3\.(\d+)$/.exec(asked)?.[1] ?? Number.NaN);
  return minor <= NEWEST ? minor : null;
}

function headersOf(version: number): Readonly<Record<string, string>> {
  return { "OpenStack-API-Version": `volume 3.${version}`, Vary: "OpenStack-API-Version" };
}

function versionsOf(base: string) {
  const links = [
    { rel: "describedby", type: "text/html", href: "https://docs.openstack.org/" },
    { rel: "self", href: `${base}/v3/` },
  ];
  const newest = { version: `3.${NEWEST}`, min_version: "3.0", updated: "2022-08-31T00:00:00Z" };
  return { versions: [{ id: "v3.0", status: "CURRENT", ...newest, links }] };
}

/** The versions at the root, which need no token. @returns null for any other path */
export function cinderVersions({ path, base }: ServiceRequest): Reply | null {
  return path === "/" || path === "" ? reply(300, versionsOf(base), headersOf(0)) : null;
}

export function cinder(world: World, request: AuthorizedRequest): Reply {
  const version = microversion(request.headers);
  const message = `Version is not supported by the API. Minimum is 3.0 and maximum is 3.${NEWEST}.`;
  const answered = version === null ? fault("computeFault", 406, message) : route(world, request, version);
  return { ...answered, headers: { ...headersOf(version ?? 0), ...answered.headers } };
}

function route(world: World, request: AuthorizedRequest, version: number): Reply {
  if (request.path === "/v3/" || request.path === "/v3") return reply(200, versionsOf(request.base));
  const [, project, resource] = /^\/v3\/([0-9a-f]{32})\/(.+)$/.exec(request.path) ?? [];
  if (project !== undefined && project !== request.token.project.id) {
    return fault("badRequest", 400, "Malformed request url");
  }
  if (resource === "volumes/detail") return listVolumes(world, request, version);
  if (resource === "types") return listTypes(world, request);
  return fault("itemNotFound", 404, "The resource could not be found.");
}

function fault(kind: string, code: number, message: string): Reply {
  return reply(code, { [kind]: { code, message } });
}

function listVolumes(world: World, request: AuthorizedRequest, version: number): Reply {
  const { query, token } = request;
  const admin = seesAll(token, "volume");
  // Others' `all_tenants` is narrowed to their own project without a word.
  const everyone = admin && ["1", "true", "True"].includes(query.get("all_tenants") ?? "");
  const project = everyone ? query.get("project_id") : token.project.id;
  const marker = query.get("marker");
  const behind = marker === null ? undefined : world.volumes.get(marker);
  if (marker !== null && behind === undefined) {
    return fault("itemNotFound", 404, `Volume ${marker} could not be found.`);
  }
  const all = world.volumes.list();
  const limit = limitOf(world, query);
  const page: Volume[] = [];
  const start = behind === undefined ? 0 : indexBehind(all, behind, byCreationBackwards);
  for (let at = start; at < all.length && page.length < limit; at++) {
    const volume = all[at];
    if (volume !== undefined && (project === null || volume.projectId === project)) page.push(volume);
  }
  const prefix = `${request.base}${request.path.replace(/\/detail$/, "")}`;
  const volumes = page.map((volume) => volumeJson(volume, prefix, admin));
  const counted = version >= COUNTS && query.get("with_count")?.toLowerCase() === "true";
  const count = counted
    ? { count: project === null ? all.length : all.filter(({ projectId }) => projectId === project).length }
    : {};
  const last = page.at(-1);
  if (last === undefined || page.length < limit) return reply(200, { volumes, ...count });
  const href = `${request.base}${request.path}?${sortedQuery(query, last.id)}`;
  return reply(200, { volumes, volumes_links: [{ rel: "next", href }], ...count });
}

function volumeJson(volume: Volume, prefix: string, admin: boolean): object {
  const { id, attachedTo } = volume;
  const attachment = {
    id,
    attachment_id: uuid(`attachment ${id}`),
    volume_id: id,
    server_id: attachedTo,
    host_name: admin ? "node-1" : null,
    device: "/dev/sdb",
    attached_at: `${seconds(volume.updatedAt)}.000000`,
  };
  return {
    id,
    status: volume.status,
    size: volume.sizeGb,
    availability_zone: "nova",
    created_at: `${seconds(volume.createdAt)}.000000`,
    updated_at: `${seconds(volume.updatedAt)}.000000`,
    name: volume.name,
    description: null,
    volume_type: volume.type.name,
    snapshot_id: null,
    source_volid: null,
    metadata: {},
    links: [
      { rel: "self", href: `${prefix}/${id}` },
      { rel: "bookmark", href: `${prefix.replace("/v3/", "/")}/${id}` },
    ],
    user_id: volume.userId,
    bootable: "false",
    encrypted: false,
    replication_status: null,
    consistencygroup_id: null,
    multiattach: false,
    attachments: attachedTo === null ? [] : [attachment],
    ...(admin ? { migration_status: null } : {}),
    "os-vol-tenant-attr:tenant_id": volume.projectId,
    ...(admin
      ? {
          "os-vol-mig-status-attr:migstat": null,
          "os-vol-mig-status-attr:name_id": null,
          "os-vol-host-attr:host": "node-1@fast#fast",
        }
      : {}),
  };
}

function listTypes(world: World, request: AuthorizedRequest): Reply {
  const { query, token, base, path } = request;
  const everything = query.get("is_public") === "None" && seesAll(token, "volume");
  const visible = world.volumeTypes.list().filter(({ isPublic }) => isPublic || everything);
  const marker = query.get("marker");
  const behind = marker === null ? undefined : world.volumeTypes.get(marker);
  if (marker !== null && behind === undefined) {
    return fault("itemNotFound", 404, `Volume type ${marker} could not be found.`);
  }
  const limit = limitOf(world, query);
  const start = behind === undefined ? 0 : indexBehind(visible, behind, byCreationBackwards);
  const page = visible.slice(start, start + limit);
  const types = { volume_types: page.map((type) => typeJson(type)) };
  const last = page.at(-1);
  if (last === undefined || page.length < limit) return reply(200, types);
  const next = new URLSearchParams(query);
  next.set("marker", last.id);
  return reply(200, { ...types, volume_type_links: [{ rel: "next", href: `${base}${path}?${next}` }] });
}

function typeJson({ id, name, isPublic }: VolumeType): object {
  return {
    id,
    name,
    is_public: isPublic,
    description: `type ${name}`,
    extra_specs: {},
    qos_specs_id: null,
    "os-volume-type-access:is_public": isPublic,
  };
}
