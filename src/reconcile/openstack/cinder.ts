/** Volumes, and the names of their types. */
import type { ObservedResource, ObservedSizeName } from "../adapter.ts";
import { ServiceFailure } from "./failure.ts";
import { countIn, type Item, textOf } from "./item.ts";
import { pagesOf } from "./listing.ts";
import { microversions, negotiated, type Range } from "./microversion.ts";
import { type Observations, observed } from "./observing.ts";
import type { Session } from "./session.ts";

/** From this one on, a page tells how many volumes there are in all. */
const COUNTS = "3.45";

/** What a volume of no type has from Train on; older ones say nothing, and mean this. */
const NO_TYPE = "__DEFAULT__";

const IN_TRANSITION: ReadonlySet<string> = new Set([
  "creating",
  "deleting",
  "managing",
  "attaching",
  "detaching",
  "reserved",
  "restoring-backup",
  "backing-up",
  "downloading",
  "uploading",
  "retyping",
  "extending",
]);

/** Cinder, in the version that was agreed on. */
export class Cinder {
  readonly range: Range | null;
  readonly version: string | null;
  readonly #session: Session;
  readonly #endpoint: URL;

  private constructor(session: Session, endpoint: URL, range: Range | null) {
    this.#session = session;
    this.#endpoint = endpoint;
    this.range = range;
    this.version = negotiated(range, COUNTS);
  }

  /** @throws {ServiceFailure} when cinder isn't there or doesn't answer */
  static async open(session: Session): Promise<Cinder> {
    const endpoint = cinderEndpoint(session);
    return new Cinder(session, endpoint, await microversions(session, endpoint));
  }

  async *volumes(): AsyncGenerator<Observations> {
    const url = new URL(this.#endpoint);
    url.pathname += "/volumes/detail";
    const { version } = this;
    const pages = pagesOf(this.#session, {
      url,
      query: { all_tenants: "1", ...(version === null ? {} : { with_count: "True" }) },
      headers: version === null ? {} : { "openstack-api-version": `volume ${version}` },
      collection: "volumes",
      links: "volumes_links",
    });
    yield* observed("volume", pages, readVolume);
  }
}

/** The project's id is a part of the address, in the catalogs of most clouds. */
function cinderEndpoint(session: Session): URL {
  const endpoint = session.endpoint("block storage");
  if (!/\/v\d/.test(endpoint.pathname)) endpoint.pathname += `/v3/${session.projectId}`;
  return endpoint;
}

function readVolume(item: Item): ObservedResource | null {
  const status = item.required("status");
  const id = item.required("id");
  const projectId = item.required("os-vol-tenant-attr:tenant_id");
  if (id === null || projectId === null || status === null || status === "deleted") return null;
  const gib = countIn(item.json, "size");
  if (gib === null) item.faults.push("has no size");
  const type = item.text("volume_type") ?? NO_TYPE;
  return {
    resourceType: "volume",
    resourceId: id,
    projectId,
    state: status,
    size: gib === null ? null : JSON.stringify({ size_gb: gib, type }),
    provider: { name: item.label("name"), status },
    inTransition: IN_TRANSITION.has(status),
    createdAt: item.instant("created_at"),
    changedAt: item.instant("updated_at"),
    deletedAt: null,
  };
}

/**
 * What the cloud calls its volume types: the bus carries their ids. Private ones, too.
 * @throws {ServiceFailure} when they can't all be read
 */
export async function volumeTypes(session: Session): Promise<ObservedSizeName[]> {
  const url = cinderEndpoint(session);
  url.pathname += "/types";
  const names = new Map<string, string>();
  // The links of this listing alone are named in the singular.
  const listing = {
    url,
    query: { is_public: "None" },
    collection: "volume_types",
    links: "volume_type_links",
  };
  for await (const page of pagesOf(session, listing)) {
    for (const type of page) {
      const id = textOf(type, "id");
      const name = textOf(type, "name");
      if (id === null || name === null)
        throw new ServiceFailure("cinder lists a volume type without id or name");
      names.set(id, name);
    }
  }
  return [...names].map(([value, name]) => ({ resourceType: "volume", member: "type", value, name }));
}
