/** Floating IPs. */
import { isIP } from "node:net";
import type { ObservedResource } from "../adapter.ts";
import type { Item } from "./item.ts";
import { pagesOf } from "./listing.ts";
import { type Observations, observed } from "./observing.ts";
import type { Session } from "./session.ts";

/** Every floating IP that is allocated, carried by a router or not. */
export async function* floatingIps(session: Session): AsyncGenerator<Observations> {
  const url = session.endpoint("network");
  url.pathname += url.pathname.endsWith("/v2.0") ? "/floatingips" : "/v2.0/floatingips";
  const pages = pagesOf(session, {
    url,
    query: {},
    collection: "floatingips",
    links: "floatingips_links",
  });
  yield* observed("floating_ip", pages, readFloatingIp);
}

function readFloatingIp(item: Item): ObservedResource | null {
  const id = item.required("id");
  const projectId = item.required("project_id", "tenant_id");
  if (id === null || projectId === null) return null;
  const address = item.text("floating_ip_address") ?? "";
  const version = isIP(address);
  if (version === 0) item.faults.push("has no address");
  return {
    resourceType: "floating_ip",
    resourceId: id,
    projectId,
    // It stays allocated, and DOWN, when its server or its port is deleted.
    state: "active",
    size: version === 0 ? null : JSON.stringify({ ip_version: version }),
    provider: { floating_ip_address: address, status: item.label("status") },
    inTransition: false,
    createdAt: item.instant("created_at"),
    changedAt: item.instant("updated_at"),
    deletedAt: null,
  };
}
