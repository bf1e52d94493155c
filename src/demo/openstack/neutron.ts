/** neutron: versions and floating IPs. */
import type { FloatingIp } from "./model.ts";
import { indexBehind } from "./ordered.ts";
import { type AuthorizedRequest, type Reply, reply, type ServiceRequest, seconds } from "./service.ts";
import { seesAll } from "./token.ts";
import { uuid, type World } from "./world.ts";

const NETWORK = uuid("the public network");

/** The versions, which need no token. @returns null for any other path */
export function neutronVersions({ path, base }: ServiceRequest): Reply | null {
  if (path !== "/" && path !== "") return null;
  const links = [{ rel: "self", href: `${base}/v2.0/` }];
  return reply(200, { versions: [{ id: "v2.0", status: "CURRENT", links }] });
}

export function neutron(world: World, request: AuthorizedRequest): Reply {
  const { path, base } = request;
  if (path === "/v2.0/floatingips") return listFloatingIps(world, request);
  if (path === "/v2.0/" || path === "/v2.0") {
    const links = [{ rel: "self", href: `${base}/v2.0/networks` }];
    return reply(200, { resources: [{ name: "network", collection: "networks", links }] });
  }
  const message = "The resource could not be found.";
  return reply(404, { NeutronError: { type: "HTTPNotFound", message, detail: "" } });
}

function listFloatingIps(world: World, request: AuthorizedRequest): Reply {
  const { query, token, base, path } = request;
  const project = query.get("project_id");
  const all = seesAll(token, "network");
  const visible = world.floatingIps
    .list()
    .filter(({ projectId }) => all || projectId === token.project.id)
    .filter(({ projectId }) => project === null || projectId === project);
  const asked = Number(query.get("limit") ?? Number.POSITIVE_INFINITY);
  const limit = Math.min(asked > 0 ? asked : visible.length, world.pageLimit ?? asked);
  // An unknown marker is not refused: the listing begins again.
  const behind = world.floatingIps.get(query.get("marker") ?? "");
  const start =
    behind === undefined
      ? 0
      : indexBehind(visible, behind, (a, b) => (a.id < b.id ? -1 : Number(a.id > b.id)));
  const page = visible.slice(start, start + limit);
  const link = (rel: string, members: Record<string, string>) => {
    const other = new URLSearchParams(query);
    other.delete("marker");
    for (const [name, value] of Object.entries(members)) other.set(name, value);
    return { rel, href: `${base}${path}?${other}` };
  };
  const [first, last] = [page[0], page.at(-1)];
  const links = [
    ...(last !== undefined && page.length === limit ? [link("next", { marker: last.id })] : []),
    link("previous", { ...(first === undefined ? {} : { marker: first.id }), page_reverse: "True" }),
  ];
  return reply(200, { floatingips: page.map(floatingIpJson), floatingips_links: links });
}

function floatingIpJson(ip: FloatingIp): object {
  return {
    id: ip.id,
    tenant_id: ip.projectId,
    floating_ip_address: ip.address,
    floating_network_id: NETWORK,
    router_id: null,
    port_id: ip.portId,
    fixed_ip_address: null,
    // What a router doesn't carry is down, and allocated all the same.
    status: ip.portId === null ? "DOWN" : "ACTIVE",
    description: "",
    port_details: null,
    tags: [],
    created_at: `${seconds(ip.createdAt)}Z`,
    updated_at: `${seconds(ip.updatedAt)}Z`,
    revision_number: 0,
    project_id: ip.projectId,
  };
}
