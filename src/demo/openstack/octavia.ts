/** octavia v2: versions and load balancers. */
import type { LoadBalancer } from "./model.ts";
import { byCreation, indexBehind } from "./ordered.ts";
import {
  type AuthorizedRequest,
  limitOf,
  type Reply,
  reply,
  type ServiceRequest,
  seconds,
} from "./service.ts";
import { seesAll } from "./token.ts";
import { uuid, type World } from "./world.ts";

/** The versions, which need no token. @returns null for any other path */
export function octaviaVersions({ path, base }: ServiceRequest): Reply | null {
  if (path !== "/" && path !== "") return null;
  const links = [{ href: `${base}/v2`, rel: "self" }];
  return reply(200, {
    versions: [{ id: "v2.26", status: "CURRENT", updated: "2022-08-29T00:00:00Z", links }],
  });
}

export function octavia(world: World, request: AuthorizedRequest): Reply {
  if (request.path === "/v2/lbaas/loadbalancers") return listLoadBalancers(world, request);
  return fault(404, "The resource could not be found.");
}

function fault(status: number, faultstring: string): Reply {
  return reply(status, { faultcode: "Client", faultstring, debuginfo: null });
}

function listLoadBalancers(world: World, request: AuthorizedRequest): Reply {
  const { query, token, base, path } = request;
  const all = seesAll(token, "load-balancer");
  const asked = query.get("project_id");
  const own = token.project.id;
  const member = token.roles.includes("load-balancer_member");
  if (!all && (!member || (asked !== null && asked !== own))) {
    return fault(403, "Policy does not allow this request to be performed.");
  }
  const project = all ? asked : own;
  const visible = world.loadBalancers
    .list()
    .filter(({ projectId }) => project === null || projectId === project);
  const marker = query.get("marker");
  const behind = marker === null ? undefined : world.loadBalancers.get(marker);
  if (marker !== null && behind === undefined) {
    return fault(400, `Supplied pagination marker '${marker}' is not valid.`);
  }
  const limit = limitOf(world, query);
  const start = behind === undefined ? 0 : indexBehind(visible, behind, byCreation);
  const page = visible.slice(start, start + limit);
  const link = (rel: string, id: string, reverse: string) => {
    const other = new URLSearchParams(query);
    other.set("marker", id);
    return { href: `${base}${path}?${other}${reverse}`, rel };
  };
  const [first, last] = [page[0], page.at(-1)];
  const links = [
    ...(first !== undefined && start > 0 ? [link("previous", first.id, "&page_reverse=True")] : []),
    ...(last !== undefined && page.length === limit ? [link("next", last.id, "")] : []),
  ];
  return reply(200, { loadbalancers: page.map(loadBalancerJson), loadbalancers_links: links });
}

function loadBalancerJson(balancer: LoadBalancer): object {
  const { id } = balancer;
  const ids = (kind: string, count: number) =>
    Array.from({ length: count }, (_, n) => ({ id: uuid(`${kind} ${n} ${id}`) }));
  return {
    id,
    name: balancer.name,
    description: "",
    provisioning_status: balancer.provisioningStatus,
    operating_status: "OFFLINE",
    admin_state_up: true,
    project_id: balancer.projectId,
    created_at: seconds(balancer.createdAt),
    updated_at: seconds(balancer.updatedAt),
    vip_address: "198.51.100.1",
    vip_port_id: uuid(`port ${id}`),
    vip_subnet_id: uuid(`subnet ${id}`),
    vip_network_id: uuid(`network ${id}`),
    additional_vips: [],
    listeners: ids("listener", balancer.listeners),
    pools: ids("pool", balancer.pools),
    provider: "amphora",
    flavor_id: null,
    vip_qos_policy_id: null,
    tags: [],
    availability_zone: null,
    tenant_id: balancer.projectId,
  };
}
