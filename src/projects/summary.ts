/** What a project had, and for how long, within a window: folded from the whole histories of its resources. */
import type { ProjectPair } from "../access/callers.ts";
import type { Queryable } from "../database/connection.ts";
import type { Instant } from "../event/instant.ts";
import { Problem } from "../problem.ts";
import { compareKeys, EVENTS_A_PAGE, pagesOfHistories } from "../projection/histories.ts";
import type { LocalKey } from "../projection/queries.ts";
import { compareBytes, type FoldEvent } from "../timeline/fold.ts";
import { activityIn, type Window } from "./activity.ts";
import { hasMoreEvents, livingResources, type OwnedResource, resourcesEverOf } from "./summary-queries.ts";

/** More events than this are not folded for one answer. */
export const MAX_EVENTS = 100_000;
const MICROS_A_MINUTE = 60_000_000n;

/** What one resource type did. */
export interface TypeActivity {
  readonly resourceType: string;
  readonly created: number;
  readonly deleted: number;
  /** Cut off, after everything of the type was added up. */
  readonly totalMinutes: bigint;
  readonly activeNow: number;
}

/**
 * Sums a project's window up, a row for each type that it ever had a resource of, by type. Run it on one snapshot.
 * @param now nothing counts beyond it.
 * @throws Problem history_too_long where its resources have more than `MAX_EVENTS` events.
 */
export async function summarize(
  db: Queryable,
  pair: ProjectPair,
  window: Window,
  now: Instant,
): Promise<TypeActivity[]> {
  if (await hasMoreEvents(db, pair, MAX_EVENTS)) throw tooLong();
  const resources = await resourcesEverOf(db, pair, MAX_EVENTS);
  if (resources.reduce((sum, { events }) => sum + events, 0) > MAX_EVENTS) throw tooLong();
  const living = await livingResources(db, pair);

  const types = new Map<string, { created: number; deleted: number; owned: bigint }>();
  for await (const { resourceType, history } of historiesOf(db, pair.cloud, resources)) {
    const { created, deleted, owned } = activityIn(history, pair.projectId, window, now);
    const sum = types.get(resourceType) ?? { created: 0, deleted: 0, owned: 0n };
    types.set(resourceType, {
      created: sum.created + created,
      deleted: sum.deleted + deleted,
      owned: sum.owned + owned,
    });
  }
  return [...types]
    .sort(([a], [b]) => compareBytes(a, b))
    .map(([resourceType, { created, deleted, owned }]) => ({
      resourceType,
      created,
      deleted,
      totalMinutes: owned / MICROS_A_MINUTE,
      activeNow: living.get(resourceType) ?? 0,
    }));
}

function tooLong(): Problem {
  return new Problem("history_too_long", `the project's resources have more than ${MAX_EVENTS} events`);
}

interface History extends LocalKey {
  readonly history: readonly FoldEvent[];
}

/**
 * The histories, one after the other, each whole; what is read at once is bounded. They come without states and
 * sizes: who owned a resource, and when it lived, follows from its events' types and the projects that they name.
 */
async function* historiesOf(
  db: Queryable,
  cloud: string,
  resources: readonly OwnedResource[],
): AsyncGenerator<History> {
  for (const keys of portions(resources)) {
    let open: (LocalKey & { history: FoldEvent[] }) | null = null;
    for await (const page of pagesOfHistories(db, cloud, keys, false)) {
      for (const { resourceType, resourceId, event } of page) {
        if (open !== null && compareKeys(open, { resourceType, resourceId }) !== 0) {
          yield open;
          open = null;
        }
        open ??= { resourceType, resourceId, history: [] };
        open.history.push(event);
      }
    }
    if (open !== null) yield open;
  }
}

/** Neighbouring resources with `EVENTS_A_PAGE` events together, or a single one with more. */
export function* portions(resources: readonly OwnedResource[]): Generator<OwnedResource[]> {
  let portion: OwnedResource[] = [];
  let events = 0;
  for (const resource of resources) {
    if (portion.length > 0 && events + resource.events > EVENTS_A_PAGE) {
      yield portion;
      portion = [];
      events = 0;
    }
    portion.push(resource);
    events += resource.events;
  }
  if (portion.length > 0) yield portion;
}
