/** Images. */
import type { ObservedResource } from "../adapter.ts";
import { countIn, type Item } from "./item.ts";
import { pagesOf } from "./listing.ts";
import { type Observations, observed } from "./observing.ts";
import type { Session } from "./session.ts";

/** Without data yet, or no longer with it: nothing that anybody has. */
const NOT_OBSERVED: ReadonlySet<string> = new Set([
  "queued",
  "saving",
  "uploading",
  "importing",
  "killed",
  "deleted",
  "pending_delete",
]);

const GIB = 1024 ** 3;

/**
 * Every image with data. Glance shows community images only where visibilities are asked for, and hidden ones only by
 * themselves: two listings make all of them.
 */
export async function* images(session: Session): AsyncGenerator<Observations> {
  const url = session.endpoint("image");
  url.pathname += /\/v2(?:\.\d+)?$/.test(url.pathname) ? "/images" : "/v2/images";
  const all = { visibility: "all", member_status: "all" };
  const listing = { url, collection: "images", links: "next" };
  yield* observed("image", pagesOf(session, { ...listing, query: all }), readImage);
  const hidden = pagesOf(session, { ...listing, query: { ...all, os_hidden: "true" } });
  yield* observed("image", hidden, readImage);
}

function readImage(item: Item): ObservedResource | null {
  const status = item.required("status");
  if (status === null || NOT_OBSERVED.has(status)) return null;
  if (status !== "active" && status !== "deactivated") {
    item.faults.push("has a status that is not known here");
    return null;
  }
  const id = item.required("id");
  const projectId = item.required("owner");
  if (id === null || projectId === null) return null;
  const bytes = countIn(item.json, "size");
  if (bytes === null) item.faults.push("has no size");
  return {
    resourceType: "image",
    resourceId: id,
    projectId,
    state: "active",
    // A division by a power of two is exact; its shortest form is the one that collectors write, too.
    size: bytes === null ? null : JSON.stringify({ size_gb: bytes / GIB }),
    provider: { name: item.label("name"), status, visibility: item.label("visibility") },
    inTransition: false,
    createdAt: item.instant("created_at"),
    changedAt: item.instant("updated_at"),
    deletedAt: null,
  };
}
