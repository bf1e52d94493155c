/** glance v2: versions and images. */
import type { Image } from "./model.ts";
import { byCreationBackwards, compareText, indexBehind } from "./ordered.ts";
import {
  type AuthorizedRequest,
  limitOf,
  type Reply,
  reply,
  type ServiceRequest,
  seconds,
} from "./service.ts";
import { seesAll } from "./token.ts";
import { hexId, type World } from "./world.ts";

/** glance's page where none is asked for. */
const USUAL_PAGE = 25;

/** The versions, which need no token. @returns null for any other path */
export function glanceVersions({ path, base }: ServiceRequest): Reply | null {
  if (path !== "/" && path !== "" && path !== "/versions") return null;
  const links = [{ rel: "self", href: `${base}/v2/` }];
  return reply(path === "/versions" ? 200 : 300, { versions: [{ id: "v2.15", status: "CURRENT", links }] });
}

export function glance(world: World, request: AuthorizedRequest): Reply {
  if (request.path === "/v2/images") return listImages(world, request);
  return fault(404, "Not Found", "The resource could not be found.");
}

/** glance's own form of a refusal. */
export function fault(code: number, title: string, message: string): Reply {
  return reply(code, { message: `${message}<br /><br />\n\n\n`, code: `${code} ${title}`, title });
}

function compareBy(key: string, a: Image, b: Image): number {
  if (key === "created_at") return Number(a.createdAt - b.createdAt);
  if (key === "updated_at") return Number(a.updatedAt - b.updatedAt);
  return key === "name" ? compareText(a.name, b.name) : compareText(a.id, b.id);
}

/** `sort=created_at:asc,id:asc` or `sort_key=created_at&sort_dir=asc`; newest first where nothing is asked for. */
function orderOf(query: URLSearchParams): (a: Image, b: Image) => number {
  if (!["sort", "sort_key", "sort_dir"].some((name) => query.has(name))) return byCreationBackwards;
  const direction = query.get("sort_dir") ?? "desc";
  const terms = (query.get("sort") ?? query.get("sort_key") ?? "created_at").split(",").map((term) => {
    const [key = "", dir = direction] = term.split(":");
    return { key, sign: dir === "asc" ? 1 : -1 };
  });
  const [{ sign } = { sign: -1 }] = terms;
  const keys = [...terms, { key: "created_at", sign }, { key: "id", sign }];
  return (a, b) => {
    for (const { key, sign } of keys) {
      const order = compareBy(key, a, b);
      if (order !== 0) return sign * order;
    }
    return 0;
  };
}

function wantedBy({ query, token }: AuthorizedRequest): (image: Image) => boolean {
  const all = seesAll(token, "image");
  const own = token.project.id;
  const visibility = query.get("visibility");
  const hidden = ["true", "True"].includes(query.get("os_hidden") ?? "");
  const owner = query.get("owner");
  const status = query.get("status");
  const seen = (image: Image) =>
    all ||
    image.owner === own ||
    image.visibility === "public" ||
    image.visibility === "community" ||
    (image.visibility === "shared" && image.members.includes(own));
  return (image) => {
    if (image.hidden !== hidden || !seen(image)) return false;
    if (owner !== null && image.owner !== owner) return false;
    if (status !== null && image.status !== status) return false;
    if (visibility === "all") return true;
    // Others' community images are listed only where they are asked for.
    if (visibility === null) return image.visibility !== "community" || (!all && image.owner === own);
    return image.visibility === visibility;
  };
}

function listImages(world: World, request: AuthorizedRequest): Reply {
  const { query, path } = request;
  const order = orderOf(query);
  const wanted = world.images.list().filter(wantedBy(request));
  const images = order === byCreationBackwards ? wanted : wanted.sort(order);
  const marker = query.get("marker");
  const behind = marker === null ? undefined : world.images.get(marker);
  if (marker !== null && behind === undefined) {
    return fault(400, "Bad Request", `No image found with ID ${marker}`);
  }
  const limit = limitOf(world, query, USUAL_PAGE);
  const start = behind === undefined ? 0 : indexBehind(images, behind, order);
  const page = images.slice(start, start + limit);
  const first = new URLSearchParams(query);
  first.delete("marker");
  const rest = first.toString();
  const answer = {
    images: page.map(imageJson),
    first: rest === "" ? path : `${path}?${rest}`,
    schema: "/v2/schemas/images",
  };
  const last = page.at(-1);
  if (last === undefined || page.length < limit) return reply(200, answer);
  // A path without a host.
  return reply(200, { ...answer, next: `${path}?${rest === "" ? "" : `${rest}&`}marker=${last.id}` });
}

function imageJson(image: Image): object {
  const { id, bytes } = image;
  return {
    name: image.name,
    disk_format: bytes === null ? null : "qcow2",
    container_format: bytes === null ? null : "bare",
    visibility: image.visibility,
    size: bytes,
    virtual_size: null,
    status: image.status,
    checksum: bytes === null ? null : hexId(id),
    protected: false,
    min_ram: 0,
    min_disk: 0,
    owner: image.owner,
    os_hidden: image.hidden,
    os_hash_algo: null,
    os_hash_value: null,
    id,
    created_at: `${seconds(image.createdAt)}Z`,
    updated_at: `${seconds(image.updatedAt)}Z`,
    tags: [],
    self: `/v2/images/${id}`,
    file: `/v2/images/${id}/file`,
    schema: "/v2/schemas/image",
  };
}
