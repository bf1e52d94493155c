/** Load balancers. */
import type { ObservedResource } from "../adapter.ts";
import type { Item } from "./item.ts";
import { pagesOf } from "./listing.ts";
import { type Observations, observed } from "./observing.ts";
import type { Session } from "./session.ts";

/** Every load balancer that is not deleted. The account needs a role of octavia's own for this. */
export async function* loadBalancers(session: Session): AsyncGenerator<Observations> {
  const url = session.endpoint("load balancer");
  url.pathname += /\/v2(?:\.0)?$/.test(url.pathname) ? "/lbaas/loadbalancers" : "/v2/lbaas/loadbalancers";
  const pages = pagesOf(session, {
    url,
    query: {},
    collection: "loadbalancers",
    links: "loadbalancers_links",
  });
  yield* observed("loadbalancer", pages, readLoadBalancer);
}

function readLoadBalancer(item: Item): ObservedResource | null {
  const status = item.required("provisioning_status");
  if (status === "DELETED") return null;
  const id = item.required("id");
  const projectId = item.required("project_id", "tenant_id");
  if (id === null || projectId === null || status === null) return null;
  const { listeners, pools } = item.json;
  const counted = Array.isArray(listeners) && Array.isArray(pools);
  if (!counted) item.faults.push("has no lists of listeners and pools");
  return {
    resourceType: "loadbalancer",
    resourceId: id,
    projectId,
    state: "active",
    size: counted ? JSON.stringify({ listeners: listeners.length, pools: pools.length }) : null,
    provider: { name: item.label("name"), provisioning_status: status },
    inTransition: status.startsWith("PENDING_"),
    createdAt: item.instant("created_at"),
    changedAt: item.instant("updated_at"),
    deletedAt: null,
  };
}
