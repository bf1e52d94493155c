/** nova: versions, `servers/detail`, flavors. */
import { parseInstant } from "../../event/instant.ts";
import type { Flavor, Server } from "./model.ts";
import { byCreationBackwards, compareText, indexBehind } from "./ordered.ts";
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
import { hexId, type World } from "./world.ts";

/** The highest microversion's second part: 2.93. */
const NEWEST = 93;

/** The second part of the microversion that is asked for: 1 without one. @returns null where there is no such */
export function novaMicroversion(headers: Headers): number | null {
  const asked =
    /^compute (2\.\d+|latest)$/.exec(headers.get("openstack-api-version") ?? "")?.[1] ??
    headers.get("x-openstack-nova-api-version");
  if (asked === null) return 1;
  if (asked === "latest") return NEWEST;
  const minor = Number(/^2\.(\d+)$/.exec(asked)?.[1] ?? Number.NaN);
  return minor >= 1 && minor <= NEWEST ? minor : null;
}

/** The versions, which need no token. @returns null for any other path */
export function novaVersions({ path, base }: ServiceRequest): Reply | null {
  const links = (id: string) => [{ rel: "self", href: `${base}/${id}/` }];
  const newest = { version: `2.${NEWEST}`, min_version: "2.1", updated: "2013-07-23T11:33:21Z" };
  const current = { id: "v2.1", status: "CURRENT", ...newest, links: links("v2.1") };
  if (path === "/" || path === "") {
    const old = { version: "", min_version: "", updated: "2011-01-21T11:33:21Z", links: links("v2") };
    return reply(200, { versions: [{ id: "v2.0", status: "SUPPORTED", ...old }, current] });
  }
  return path.replace(/\/$/, "") === "/v2.1" ? reply(200, { version: current }) : null;
}

export function nova(world: World, request: AuthorizedRequest): Reply {
  const version = novaMicroversion(request.headers);
  const headers = {
    "OpenStack-API-Version": `compute 2.${version ?? 1}`,
    "X-OpenStack-Nova-API-Version": `2.${version ?? 1}`,
    Vary: "OpenStack-API-Version, X-OpenStack-Nova-API-Version",
  };
  const answered = version === null ? tooNew(request) : route(world, request, version);
  return { ...answered, headers: { ...headers, ...answered.headers } };
}

function route(world: World, request: AuthorizedRequest, version: number): Reply {
  const { path } = request;
  if (path === "/v2.1/servers/detail") return listServers(world, request, version);
  if (path === "/v2.1/flavors/detail") return listFlavors(world, request, version);
  const flavorId = /^\/v2\.1\/flavors\/([^/]+)$/.exec(path)?.[1];
  if (flavorId !== undefined) {
    const flavor = world.flavors.get(decodeURIComponent(flavorId));
    if (flavor === undefined) return fault("itemNotFound", 404, `Flavor ${flavorId} could not be found.`);
    return reply(200, { flavor: flavorJson(flavor, request.base, version) });
  }
  return fault("itemNotFound", 404, "The resource could not be found.");
}

function fault(kind: string, code: number, message: string): Reply {
  return reply(code, { [kind]: { code, message } });
}

function tooNew({ headers }: ServiceRequest): Reply {
  const asked = /\S+$/.exec(headers.get("openstack-api-version") ?? "")?.[0];
  const message = `Version ${asked} is not supported by the API. Minimum is 2.1 and maximum is 2.${NEWEST}.`;
  return fault("computeFault", 406, message);
}

function listServers(world: World, request: AuthorizedRequest, version: number): Reply {
  const { query, token } = request;
  const admin = seesAll(token, "compute");
  const everyone = ["1", "true", "True"].includes(query.get("all_tenants") ?? "");
  if (everyone && !admin) {
    const message = "Policy doesn't allow os_compute_api:servers:detail:get_all_tenants to be performed.";
    return fault("forbidden", 403, message);
  }
  const since = query.get("changes-since");
  const from = since === null ? null : parseInstant(since);
  if (typeof from === "string") {
    const why = `Value: ${since}. '${since}' is not a 'date-time'`;
    return fault("badRequest", 400, `Invalid input for query parameters changes-since. ${why}`);
  }
  // A member's `deleted` is ignored without a word.
  const deleted = admin && ["true", "True", "1"].includes(query.get("deleted") ?? "");
  const project = everyone ? (query.get("project_id") ?? query.get("tenant_id")) : token.project.id;
  const status = query.get("status");
  const name = query.get("name");
  const wanted = (server: Server) => {
    // A soft-deleted server stands among the deleted, whatever else is asked for.
    const gone = server.vmState === "deleted" || server.vmState === "soft-delete";
    if (deleted ? !gone : gone && from === null) return false;
    if (from !== null && server.updatedAt < from) return false;
    if (project !== null && server.projectId !== project) return false;
    if (status !== null && statusOf(server.vmState) !== status) return false;
    return name === null || server.name.includes(name);
  };
  const marker = query.get("marker");
  const behind = marker === null ? undefined : world.servers.get(marker);
  if (marker !== null && behind === undefined) {
    return fault("badRequest", 400, `marker [${marker}] not found`);
  }
  const all = world.servers.list();
  const limit = limitOf(world, query);
  const page: Server[] = [];
  const start = behind === undefined ? 0 : indexBehind(all, behind, byCreationBackwards);
  for (let at = start; at < all.length && page.length < limit; at++) {
    const server = all[at];
    if (server !== undefined && wanted(server)) page.push(server);
  }
  const servers = page.map((server) => serverJson(server, request.base, version, admin));
  const last = page.at(-1);
  // A full page has a link, even where nothing comes behind it.
  if (last === undefined || page.length < limit) return reply(200, { servers });
  const href = `${request.base}${request.path}?${sortedQuery(query, last.id)}`;
  return reply(200, { servers, servers_links: [{ rel: "next", href }] });
}

const STATUSES = new Map([
  ["building", "BUILD"],
  ["stopped", "SHUTOFF"],
  ["soft-delete", "SOFT_DELETED"],
  ["resized", "VERIFY_RESIZE"],
]);

function statusOf(vmState: string): string {
  return STATUSES.get(vmState) ?? vmState.toUpperCase();
}

function linksOf(base: string, kind: string, id: string) {
  return [
    { rel: "self", href: `${base}/v2.1/${kind}/${id}` },
    { rel: "bookmark", href: `${base}/${kind}/${id}` },
  ];
}

function serverJson(server: Server, base: string, version: number, admin: boolean): object {
  const { id, name, flavor, host, vmState } = server;
  const since = <T extends object>(least: number, members: T) => (version >= least ? members : {});
  const embedded = {
    vcpus: flavor.vcpus,
    ram: flavor.ramMb,
    disk: flavor.diskGb,
    ephemeral: flavor.ephemeralGb,
    swap: 0,
    original_name: flavor.name,
    extra_specs: {},
  };
  const byId = { id: flavor.id, links: [{ rel: "bookmark", href: `${base}/flavors/${flavor.id}` }] };
  const dead = vmState === "deleted";
  const moment = (instant: Server["launchedAt"]) => (instant === null ? null : `${seconds(instant)}.000000`);
  return {
    id,
    name,
    status: statusOf(vmState),
    tenant_id: server.projectId,
    user_id: server.userId,
    metadata: {},
    hostId: host === null ? "" : hexId(`${host} ${server.projectId}`),
    image: "",
    flavor: version >= 47 ? embedded : byId,
    created: `${seconds(server.createdAt)}Z`,
    updated: `${seconds(server.updatedAt)}Z`,
    addresses: {},
    accessIPv4: "",
    accessIPv6: "",
    links: linksOf(base, "servers", id),
    "OS-DCF:diskConfig": "MANUAL",
    ...(vmState === "active" ? { progress: 0 } : {}),
    "OS-EXT-AZ:availability_zone": host === null ? "" : "nova",
    config_drive: "",
    key_name: null,
    "OS-SRV-USG:launched_at": moment(server.launchedAt),
    "OS-SRV-USG:terminated_at": moment(server.terminatedAt),
    ...(admin
      ? {
          "OS-EXT-SRV-ATTR:host": host,
          "OS-EXT-SRV-ATTR:instance_name": `instance-${id.slice(0, 8)}`,
          "OS-EXT-SRV-ATTR:hypervisor_hostname": host,
        }
      : {}),
    "OS-EXT-STS:task_state": server.taskState,
    "OS-EXT-STS:vm_state": vmState,
    "OS-EXT-STS:power_state": vmState === "active" ? 1 : dead ? 0 : 4,
    "os-extended-volumes:volumes_attached": [],
    ...since(9, { locked: false }),
    ...since(19, { description: name }),
    ...since(26, { tags: [] }),
    ...(admin ? since(16, { host_status: host === null || dead ? "" : "UP" }) : {}),
    ...(dead ? {} : { security_groups: [{ name: "default" }] }),
  };
}

function listFlavors(world: World, request: AuthorizedRequest, version: number): Reply {
  const { query, token, base, path } = request;
  const everything = query.get("is_public") === "None" && seesAll(token, "compute");
  const visible = world.flavors.list().filter(({ isPublic }) => isPublic || everything);
  const marker = query.get("marker");
  const known = marker === null ? undefined : world.flavors.get(marker);
  if (marker !== null && known === undefined) {
    return fault("badRequest", 400, `marker [${marker}] not found`);
  }
  const limit = limitOf(world, query);
  const start =
    known === undefined ? 0 : indexBehind(visible, known, (a: Flavor, b: Flavor) => compareText(a.id, b.id));
  const page = visible.slice(start, start + limit);
  const flavors = page.map((flavor) => flavorJson(flavor, base, version));
  const last = page.at(-1);
  if (last === undefined || page.length < limit) return reply(200, { flavors });
  const href = `${base}${path}?${sortedQuery(query, last.id)}`;
  return reply(200, { flavors, flavors_links: [{ rel: "next", href }] });
}

function flavorJson(flavor: Flavor, base: string, version: number): object {
  return {
    id: flavor.id,
    name: flavor.name,
    ram: flavor.ramMb,
    disk: flavor.diskGb,
    swap: version >= 75 ? 0 : "",
    "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeralGb,
    "OS-FLV-DISABLED:disabled": false,
    vcpus: flavor.vcpus,
    "os-flavor-access:is_public": flavor.isPublic,
    rxtx_factor: 1,
    links: linksOf(base, "flavors", flavor.id),
    ...(version >= 55 ? { description: null } : {}),
    ...(version >= 61 ? { extra_specs: {} } : {}),
  };
}
