/** Servers: those that live, and those that ended lately. */
import { formatInstant, type Instant } from "../../event/instant.ts";
import type { ObservedResource } from "../adapter.ts";
import { ServiceFailure } from "./failure.ts";
import { countIn, type Item, isJsonObject, type JsonObject, textOf } from "./item.ts";
import { pagesOf } from "./listing.ts";
import { microversions, negotiated, type Range } from "./microversion.ts";
import { type Observations, observed } from "./observing.ts";
import type { Session } from "./session.ts";

/** From this one on, a server carries its flavor as it was when it got it. */
const EMBEDDED_FLAVORS = "2.47";

/** Nova's words for states that collectors have other ones for. */
const STATES: ReadonlyMap<string, string> = new Map([
  ["stopped", "shutoff"],
  ["shelved_offloaded", "shelved"],
]);

/** Nova, in the version that was agreed on. */
export class Nova {
  readonly range: Range | null;
  readonly version: string | null;
  readonly #session: Session;
  readonly #endpoint: URL;
  readonly #flavors: Flavors;

  private constructor(session: Session, endpoint: URL, range: Range | null) {
    this.#session = session;
    this.#endpoint = endpoint;
    this.range = range;
    this.version = negotiated(range, EMBEDDED_FLAVORS);
    this.#flavors = new Flavors(session, endpoint);
  }

  /** @throws {ServiceFailure} when nova isn't there or doesn't answer */
  static async open(session: Session): Promise<Nova> {
    const endpoint = session.endpoint("compute");
    if (!/\/v\d/.test(endpoint.pathname)) endpoint.pathname += "/v2.1";
    return new Nova(session, endpoint, await microversions(session, endpoint));
  }

  /**
   * Asks for one server of all projects.
   * @returns what nova said against it, or null where the account sees all of them
   * @throws {ServiceFailure} when nova doesn't answer
   */
  async reachFault(): Promise<string | null> {
    const url = this.#serversUrl();
    url.search = "all_tenants=1&limit=1";
    const { ask, answer } = await this.#session.get(url, this.#headers());
    if (answer.status === 401 || answer.status === 403) {
      return this.#session.transport.refusal(ask, answer).message;
    }
    if (answer.status !== 200) throw this.#session.transport.refusal(ask, answer);
    return null;
  }

  /** The servers that live, soft-deleted ones not among them. */
  async *live(): AsyncGenerator<Observations> {
    const pages = this.#pages({ all_tenants: "1" });
    yield* observed("instance", this.#withFlavors(pages), (item) => this.#live(item));
  }

  /** The servers that ended since then, and those that are only soft-deleted. */
  async *ended(since: Instant): AsyncGenerator<Observations> {
    const query = { all_tenants: "1", deleted: "true", "changes-since": formatInstant(since) };
    yield* observed("instance", this.#withFlavors(this.#pages(query), isSoftDeleted), (item) =>
      isSoftDeleted(item.json) ? this.#live(item) : readEnded(item),
    );
  }

  #headers(): Record<string, string> {
    return this.version === null ? {} : { "openstack-api-version": `compute ${this.version}` };
  }

  #serversUrl(): URL {
    const url = new URL(this.#endpoint);
    url.pathname += "/servers/detail";
    return url;
  }

  #pages(query: Readonly<Record<string, string>>) {
    return pagesOf(this.#session, {
      url: this.#serversUrl(),
      query,
      headers: this.#headers(),
      collection: "servers",
      links: "servers_links",
    });
  }

  /** Looks up, page by page, the flavors that servers only name. */
  async *#withFlavors(
    pages: AsyncIterable<readonly JsonObject[]>,
    needed: (server: JsonObject) => boolean = () => true,
  ): AsyncGenerator<readonly JsonObject[]> {
    for await (const page of pages) {
      for (const server of page) {
        const id = isJsonObject(server.flavor) ? textOf(server.flavor, "id") : null;
        if (id !== null && needed(server)) await this.#flavors.load(id);
      }
      yield page;
    }
  }

  #live(item: Item): ObservedResource | null {
    const id = item.required("id");
    const projectId = item.required("tenant_id");
    const vmState = item.required("OS-EXT-STS:vm_state");
    const size = this.#size(item);
    if (id === null || projectId === null || vmState === null || vmState === "deleted") return null;
    const taskState = item.text("OS-EXT-STS:task_state");
    return {
      resourceType: "instance",
      resourceId: id,
      projectId,
      state: STATES.get(vmState) ?? vmState,
      size,
      provider: { name: item.label("name"), vm_state: vmState, task_state: taskState },
      inTransition: taskState !== null || vmState === "building",
      createdAt: item.instant("created"),
      changedAt: item.instant("updated"),
      deletedAt: null,
    };
  }

  /** Null, and a fault, where the flavor is not to be learnt. */
  #size(item: Item): string | null {
    const { flavor } = item.json;
    if (!isJsonObject(flavor)) {
      item.faults.push("has no flavor");
      return null;
    }
    const id = textOf(flavor, "id");
    const size = id === null ? sizeOf(flavor, "original_name", "ephemeral") : this.#flavors.sizeOf(id);
    if (size === null) {
      item.faults.push(id === null ? "has a flavor that can't be read" : "has a flavor that is gone");
    }
    return size;
  }
}

function isSoftDeleted(server: JsonObject): boolean {
  return (
    server["OS-EXT-STS:vm_state"] === "soft-delete" && textOf(server, "OS-SRV-USG:terminated_at") === null
  );
}

/** A server that ended. One whose end nova doesn't date is left to its absence from the others. */
function readEnded(item: Item): ObservedResource | null {
  const id = item.required("id");
  const projectId = item.required("tenant_id");
  const deletedAt = item.instant("OS-SRV-USG:terminated_at");
  if (id === null || projectId === null || deletedAt === null) return null;
  return {
    resourceType: "instance",
    resourceId: id,
    projectId,
    state: null,
    size: null,
    provider: { name: item.label("name"), vm_state: item.label("OS-EXT-STS:vm_state") },
    inTransition: false,
    createdAt: item.instant("created"),
    // `updated` moves long after the end, when the hypervisor cleans up.
    changedAt: null,
    deletedAt,
  };
}

/** The size of a flavor as JSON text, or null where it doesn't tell it. */
function sizeOf(flavor: JsonObject, name: string, ephemeralDisk: string): string | null {
  const vcpus = countIn(flavor, "vcpus");
  const ramMb = countIn(flavor, "ram");
  const root = countIn(flavor, "disk");
  const ephemeral = countIn(flavor, ephemeralDisk);
  const label = textOf(flavor, name);
  if (vcpus === null || ramMb === null || root === null || ephemeral === null || label === null) return null;
  // A division by a power of two is exact.
  return JSON.stringify({ vcpus, ram_gb: ramMb / 1024, disk_gb: root + ephemeral, flavor: label });
}

/** The flavors of a nova that is older than embedded ones, by id. */
class Flavors {
  readonly #session: Session;
  readonly #endpoint: URL;
  readonly #sizes = new Map<string, string | null>();
  #listed: Promise<void> | null = null;

  constructor(session: Session, endpoint: URL) {
    this.#session = session;
    this.#endpoint = endpoint;
  }

  /** Makes the flavor known: from the list of all, else by itself. */
  async load(id: string): Promise<void> {
    this.#listed ??= this.#list();
    await this.#listed;
    if (this.#sizes.has(id)) return;
    const url = new URL(this.#endpoint);
    url.pathname += `/flavors/${encodeURIComponent(id)}`;
    const { ask, answer } = await this.#session.get(url);
    if (answer.status !== 200 && answer.status !== 404) throw this.#session.transport.refusal(ask, answer);
    // 404: it was deleted, and what it was can't be asked any more.
    this.#add(id, answer.status === 404 ? null : this.#session.transport.json(ask, answer).flavor);
  }

  /** Null for a flavor that is gone, or tells too little. */
  sizeOf(id: string): string | null {
    return this.#sizes.get(id) ?? null;
  }

  async #list(): Promise<void> {
    const url = new URL(this.#endpoint);
    url.pathname += "/flavors/detail";
    // is_public=None: those that are given to single projects, too.
    const listing = { url, query: { is_public: "None" }, collection: "flavors", links: "flavors_links" };
    for await (const page of pagesOf(this.#session, listing)) {
      for (const flavor of page) {
        const id = textOf(flavor, "id");
        if (id === null) throw new ServiceFailure("nova lists a flavor without id");
        this.#add(id, flavor);
      }
    }
  }

  #add(id: string, flavor: unknown): void {
    this.#sizes.set(id, isJsonObject(flavor) ? sizeOf(flavor, "name", "OS-FLV-EXT-DATA:ephemeral") : null);
  }
}
