/** The ways in which a fake cloud can be told to fail. */
import type { Exchange } from "../../src/demo/openstack/server.ts";
import { responseOf } from "../../src/demo/openstack/server.ts";
import { type Reply, reply, type ServiceName } from "../../src/demo/openstack/service.ts";

/** What goes wrong. */
export type Fault =
  /** Answers with this status and nothing of use. */
  | { readonly kind: "status"; readonly status: number; readonly retryAfter?: number }
  /** The connection ends in the middle of the body. */
  | { readonly kind: "cut" }
  /** A proxy's page instead of JSON, with status 200. */
  | { readonly kind: "html" }
  /** Every page is the first one, each with a `next` that was never seen before. */
  | { readonly kind: "endless-next" }
  /** Every page's `next` leads to that page. */
  | { readonly kind: "same-next" }
  /** A page is the one before it again. */
  | { readonly kind: "repeated-page" }
  /** A page begins with the item that the page before it ended with. */
  | { readonly kind: "moved-item" }
  /** Every `next` names another host. */
  | { readonly kind: "other-host" }
  /** Every item is in a state that nobody knows. */
  | { readonly kind: "unknown-status" }
  /** The token that the request shows is refused from here on, and so is every other one. */
  | { readonly kind: "expired-token" }
  /** Answers so much later. */
  | { readonly kind: "slow"; readonly ms: number };

/** A fault and when it strikes. */
export interface FaultRule {
  readonly service: ServiceName;
  readonly fault: Fault;
  /** Only requests whose path and query contain this. */
  readonly containing?: string;
  /** Lets so many of them pass first. */
  readonly skip?: number;
  /** Strikes so many times, then no more. */
  readonly times?: number;
}

/** Where listings keep their items and their links. */
const LISTS = [
  ["servers", "servers_links"],
  ["flavors", "flavors_links"],
  ["volumes", "volumes_links"],
  ["volume_types", "volume_type_links"],
  ["floatingips", "floatingips_links"],
  ["loadbalancers", "loadbalancers_links"],
  ["images", "next"],
] as const;

interface Listing {
  readonly body: Readonly<Record<string, unknown>>;
  readonly name: string;
  readonly linksName: string;
  readonly items: readonly unknown[];
}

function listingOf({ body }: Reply): Listing | null {
  if (typeof body !== "object" || body === null) return null;
  for (const [name, linksName] of LISTS) {
    const items: unknown = Reflect.get(body, name);
    if (Array.isArray(items)) return { body: { ...body }, name, linksName, items };
  }
  return null;
}

function isNext(link: unknown): boolean {
  return typeof link === "object" && link !== null && Reflect.get(link, "rel") === "next";
}

function nextOf({ body, linksName }: Listing): string | null {
  const links = body[linksName];
  if (typeof links === "string") return links;
  const next: unknown = Array.isArray(links) ? links.find(isNext) : undefined;
  const href: unknown = typeof next === "object" && next !== null ? Reflect.get(next, "href") : null;
  return typeof href === "string" ? href : null;
}

function withNext({ body, linksName }: Listing, href: string): unknown {
  if (linksName === "next") return { ...body, next: href };
  const links = body[linksName];
  const others: unknown[] = Array.isArray(links) ? links.filter((link) => !isNext(link)) : [];
  return { ...body, [linksName]: [{ rel: "next", href }, ...others] };
}

/** The rules in force. Each request is put before them; the first one that applies strikes. */
export class Faults {
  #rules: { readonly rule: FaultRule; seen: number; struck: number }[] = [];
  readonly #pages = new Map<string, Reply>();
  #links = 0;
  readonly #revokeTokens: () => void;
  readonly #hangUp: (service: ServiceName) => void;

  /**
   * @param revokeTokens what makes every token invalid
   * @param hangUp what ends a service's connections
   */
  constructor(revokeTokens: () => void, hangUp: (service: ServiceName) => void) {
    this.#revokeTokens = revokeTokens;
    this.#hangUp = hangUp;
  }

  get rules(): readonly FaultRule[] {
    return this.#rules.map(({ rule }) => rule);
  }

  add(rule: FaultRule): void {
    this.#rules.push({ rule, seen: 0, struck: 0 });
  }

  clear(): void {
    this.#rules = [];
    this.#pages.clear();
  }

  /** @returns null where the service is to answer itself */
  strike(exchange: Exchange): Response | Promise<Response> | null {
    const fault = this.#faultFor(exchange);
    if (fault === null) {
      this.#remember(exchange);
      return null;
    }
    switch (fault.kind) {
      case "status":
        return refusal(fault.status, fault.retryAfter);
      case "html":
        return new Response("<!DOCTYPE html><html><body><h1>It works!</h1></body></html>", {
          headers: { "Content-Type": "text/html" },
        });
      case "cut":
        return cut(JSON.stringify(exchange.answer().body), () => this.#hangUp(exchange.service));
      case "slow":
        return Bun.sleep(fault.ms).then(() => responseOf(exchange.answer()));
      case "expired-token":
        this.#revokeTokens();
        return null;
      default:
        return responseOf(this.#bend(fault.kind, exchange));
    }
  }

  #faultFor({ service, request }: Exchange): Fault | null {
    const target = `${request.path}?${request.query}`;
    for (const entry of this.#rules) {
      const { rule } = entry;
      if (rule.service !== service || !target.includes(rule.containing ?? "")) continue;
      entry.seen++;
      if (entry.seen <= (rule.skip ?? 0) || entry.struck >= (rule.times ?? Number.POSITIVE_INFINITY))
        continue;
      entry.struck++;
      return rule.fault;
    }
    return null;
  }

  /** Keeps what a listing answered, for the faults that bring it again. */
  #remember(exchange: Exchange): void {
    if (this.#rules.length === 0) return;
    this.#pages.set(pageKey(exchange), exchange.answer());
  }

  #bend(kind: Bent, exchange: Exchange): Reply {
    const before = this.#pages.get(pageKey(exchange));
    if (kind === "repeated-page" && before !== undefined) return before;
    const { request } = exchange;
    if (kind === "endless-next") request.query.delete("marker");
    const usual = exchange.answer();
    this.#pages.set(pageKey(exchange), usual);
    const listing = listingOf(usual);
    if (listing === null) return usual;
    const again = (body: unknown): Reply => ({ ...usual, body });
    const next = nextOf(listing);
    switch (kind) {
      case "endless-next": {
        const query = new URLSearchParams(request.query);
        query.set("marker", `never-seen-${++this.#links}`);
        return again(withNext(listing, link(exchange, query)));
      }
      case "same-next":
        return again(withNext(listing, link(exchange, request.query)));
      case "other-host":
        if (next === null) return usual;
        return again(
          withNext(
            listing,
            new URL(next, "https://elsewhere.example/").href.replace(
              /^https?:\/\/[^/]+/,
              "https://elsewhere.example",
            ),
          ),
        );
      case "moved-item": {
        const last = before === undefined ? undefined : listingOf(before)?.items.at(-1);
        return last === undefined
          ? usual
          : again({ ...listing.body, [listing.name]: [last, ...listing.items] });
      }
      case "unknown-status":
        return again({ ...listing.body, [listing.name]: listing.items.map(unheardOf) });
      case "repeated-page":
        return usual;
    }
  }
}

type Bent = Exclude<Fault["kind"], "status" | "html" | "cut" | "slow" | "expired-token">;

/** The listing that a page belongs to. */
function pageKey({ service, request }: Exchange): string {
  const query = new URLSearchParams(request.query);
  query.delete("marker");
  return `${service} ${request.path}?${query}`;
}

function link({ service, request }: Exchange, query: URLSearchParams): string {
  return `${service === "glance" ? "" : request.base}${request.path}?${query}`;
}

function unheardOf(item: unknown): unknown {
  if (typeof item !== "object" || item === null) return item;
  const state: Record<string, string> = {};
  for (const name of ["status", "OS-EXT-STS:vm_state", "provisioning_status"]) {
    if (name in item) state[name] = "quantum";
  }
  return { ...item, ...state };
}

function refusal(status: number, retryAfter: number | undefined): Response {
  const headers: Record<string, string> =
    retryAfter === undefined ? {} : { "Retry-After": String(retryAfter) };
  return responseOf(
    reply(status, { error: { code: status, message: "told to fail", title: "Fault" } }, headers),
  );
}

/** Sends the first half, then nothing; `breakOff` ends the connection. */
function cut(text: string, breakOff: () => void): Response {
  const half = new TextEncoder().encode(text.slice(0, Math.max(1, text.length >> 1)));
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(half),
    // Errors of a stream would be printed: the listener hangs up instead.
    pull: async () => {
      await Bun.sleep(1);
      breakOff();
      await new Promise(() => {});
    },
  });
  return new Response(body, { headers: { "Content-Type": "application/json" } });
}
