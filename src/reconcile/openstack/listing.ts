/**
 * Listings that come in pages. Paging is not one thing: each service has its own links, its own answer to a marker
 * that is gone, and its own idea of an end. What holds for all of them is here: a listing is read to its end or it
 * fails, however it is cut, looped or shortened.
 */
import { ServiceFailure } from "./failure.ts";
import { isJsonObject, type JsonObject, textOf } from "./item.ts";
import type { Session } from "./session.ts";

/** What is listed. */
export interface Listing {
  /** Without a query. */
  readonly url: URL;
  readonly query: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The member of the answer that holds the items. */
  readonly collection: string;
  /** The member that holds the links, or, in glance, the one link to the next page. */
  readonly links: string;
}

/** So many are asked for at once: a megabyte of servers. Services cut it down to their own maximum. */
const PAGE_SIZE = "500";
/** How often a listing that moved under the reader is started over. */
const MOST_RESTARTS = 3;
/** Services filter pages after cutting them, so that one may be empty and still not be the last. */
const MOST_EMPTY_PAGES = 10;

/** What one reading of a listing came to. */
type Pass =
  | { readonly complete: true; readonly items: number }
  /** It moved meanwhile: `items` is what a further reading should find at least. */
  | { readonly complete: false; readonly items: number; readonly why: string };

/**
 * Reads a listing to its end, page by page. An item may come several times: when it moves between pages, and when
 * the listing is started over because the item that a page ended with is gone.
 * @throws {ServiceFailure} where the end can't be reached
 */
export async function* pagesOf(session: Session, listing: Listing): AsyncGenerator<readonly JsonObject[]> {
  let atLeast = 0;
  for (let restarts = 0; ; restarts++) {
    const pass: Pass = yield* onePass(session, listing, atLeast);
    if (pass.complete) return;
    if (restarts === MOST_RESTARTS) {
      const at = `GET ${listing.url.host}${listing.url.pathname}`;
      throw new ServiceFailure(`${at}: ${pass.why}, and again after starting over ${MOST_RESTARTS} times`);
    }
    atLeast = pass.items;
  }
}

async function* onePass(
  session: Session,
  listing: Listing,
  atLeast: number,
): AsyncGenerator<readonly JsonObject[], Pass> {
  const seen = new Set<string>();
  const followed = new Set<string>();
  let fewest: number | null = null;
  let empty = 0;
  let query = new URLSearchParams({ limit: PAGE_SIZE, ...listing.query });
  for (let first = true; ; first = false) {
    followed.add(inOrder(query));
    const url = new URL(listing.url);
    url.search = query.toString();
    const { ask, answer } = await session.get(url, listing.headers);
    const { status } = answer;
    if (!first && (status === 400 || status === 404)) {
      // One item is gone, so that the next reading may find one less.
      return { complete: false, items: seen.size - 1, why: `its marker was refused (${status})` };
    }
    if (status !== 200) throw session.transport.refusal(ask, answer);
    const body = session.transport.json(ask, answer);
    const items = itemsIn(body, listing, (what) => session.transport.failure(ask, what));

    const count = body.count;
    if (typeof count === "number") {
      if (fewest !== null && count < fewest) {
        return {
          complete: false,
          items: count,
          why: `it shrank from ${fewest} to ${count} while it was read`,
        };
      }
      fewest ??= count;
    }
    const before = seen.size;
    for (const item of items) seen.add(textOf(item, "id") ?? "");
    if (items.length > 0 && seen.size === before) {
      // Neutron's way to say that it doesn't know the marker, and any service's way to run in circles.
      return { complete: false, items: seen.size - 1, why: "a page came again" };
    }
    yield items;

    empty = items.length === 0 ? empty + 1 : 0;
    const next = nextQuery(body, listing, url, (what) => session.transport.failure(ask, what));
    if (next === null) break;
    if (empty > MOST_EMPTY_PAGES) throw session.transport.failure(ask, "its pages are empty and don't end");
    if (followed.has(inOrder(next))) throw session.transport.failure(ask, "its pages link in a circle");
    query = next;
  }
  const items = seen.size;
  if (fewest !== null && items < fewest) {
    return { complete: false, items, why: `it told of ${fewest} and gave ${items}` };
  }
  if (items < atLeast) {
    return { complete: false, items, why: `it shrank from ${atLeast} to ${items} while it was read` };
  }
  return { complete: true, items };
}

type Fail = (what: string) => ServiceFailure;

function itemsIn(body: JsonObject, { collection }: Listing, failure: Fail): readonly JsonObject[] {
  const items = body[collection];
  if (!Array.isArray(items)) throw failure(`answered no list of ${collection}`);
  return items.map((item: unknown) => {
    if (isJsonObject(item)) return item;
    throw failure(`has something among its ${collection} that is no object`);
  });
}

/**
 * The query of the next page; null after the last one. Only the link's query is followed, at the address that the
 * catalog gave: behind a proxy, links name hosts and paths that nobody outside can reach. What was asked for stays
 * asked for, even where a link forgets it.
 */
function nextQuery(body: JsonObject, listing: Listing, url: URL, failure: Fail): URLSearchParams | null {
  const link = nextLink(body[listing.links], failure);
  if (link === null) return null;
  if (!URL.canParse(link, url.href)) throw failure("has a next link that is no URL");
  const query = new URLSearchParams(new URL(link, url).search);
  for (const [name, value] of Object.entries(listing.query)) if (!query.has(name)) query.append(name, value);
  return query;
}

function nextLink(links: unknown, failure: Fail): string | null {
  if (links === undefined || links === null) return null;
  if (typeof links === "string") return links;
  if (!Array.isArray(links)) throw failure("has links that are no list");
  const next: unknown = links.find((link) => isJsonObject(link) && link.rel === "next");
  if (next === undefined) return null;
  const target = isJsonObject(next) ? textOf(next, "href") : null;
  if (target === null) throw failure("has a next link without an address");
  return target;
}

/** A query by which it is known again, whatever the order of its members. */
function inOrder(query: URLSearchParams): string {
  const sorted = new URLSearchParams(query);
  sorted.sort();
  return sorted.toString();
}
