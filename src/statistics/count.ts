/** Counting resources, as they are and as they were, and events. */
import { inScope, type Scope } from "../access/callers.ts";
import type { Database, Queryable } from "../database/connection.ts";
import { snapshot } from "../database/snapshot.ts";
import type { ResourceKey } from "../event/event.ts";
import type { Instant } from "../event/instant.ts";
import { Problem } from "../problem.ts";
import { type FoldEvent, fold } from "../timeline/fold.ts";
import { type Group, GroupCounter, MAX_GROUPS, rollUp, tooManyGroups } from "./groups.ts";
import {
  countEvents,
  countRows,
  type EventDimension,
  type KeyedEvent,
  type ResourceDimension,
  type Status,
  tellingEvents,
} from "./queries.ts";

/** In the order that groups of resources are sorted by. */
export const RESOURCE_DIMENSIONS = [
  "cloud",
  "resource_type",
  "state",
  "platform",
  "project_id",
] as const satisfies readonly ResourceDimension[];
const EVENT_DIMENSIONS = [
  "bucket",
  "cloud",
  "event_type",
  "source",
] as const satisfies readonly EventDimension[];

/** A window wider than this is refused, in days. */
export const MAX_WINDOW_DAYS = 397;
const MICROS_A_DAY = 86_400_000_000n;
/** Resources whose histories are read at a time. */
const RESOURCES_AT_A_TIME = 5_000;

/** Which resources to count, and how. */
export interface ResourceCount {
  readonly groupBy: readonly ResourceDimension[];
  readonly status: Status;
  /** The instant they are counted at; null is now. */
  readonly at: Instant | null;
}

/** Which events to count, and how. */
export interface EventCount {
  readonly groupBy: readonly Exclude<EventDimension, "bucket">[];
  readonly from: Instant;
  /** Exclusive. */
  readonly to: Instant;
  readonly interval: "1h" | "1d";
}

/**
 * Counts the resources whose (cloud, project_id), now or at the instant, is in scope.
 * @throws Problem result_too_large where they fall into more than `MAX_GROUPS` groups at the finest grouping.
 */
export async function resourceGroups(
  db: Database,
  scope: Scope,
  count: ResourceCount,
): Promise<Group<ResourceDimension>[]> {
  return await snapshot(db, (tx) => resourceGroupsIn(tx, scope, count));
}

/** The same inside of a snapshot. */
export async function resourceGroupsIn(
  tx: Queryable,
  scope: Scope,
  { groupBy, status, at }: ResourceCount,
): Promise<Group<ResourceDimension>[]> {
  const unchanged = await countRows(tx, scope, { status, unchangedAfter: at }, MAX_GROUPS + 1);
  const finest =
    at === null
      ? bounded("the resources", unchanged)
      : await pastGroups(tx, scope, { status, at }, unchanged);
  return rollUp(finest, RESOURCE_DIMENSIONS, groupBy);
}

/**
 * The fleet as it stood at an instant, an event at that very instant having happened (as an interval that begins
 * there does). A resource that has not changed since stands as its row says, which is its folded history; of the
 * others, the events up to the instant are folded, by the one fold there is.
 */
async function pastGroups(
  tx: Queryable,
  scope: Scope,
  { status, at }: { readonly status: Status; readonly at: Instant },
  unchanged: readonly Group<ResourceDimension>[],
): Promise<Iterable<Group<ResourceDimension>>> {
  const counter = new GroupCounter("the resources", RESOURCE_DIMENSIONS);
  for (const { values, count } of unchanged) counter.add(values, count);
  let after: ResourceKey | null = null;
  for (;;) {
    const events: KeyedEvent[] = await tellingEvents(tx, scope, at, after, RESOURCES_AT_A_TIME);
    let resources = 0;
    for (const { cloud, resourceType, history } of histories(events)) {
      resources += 1;
      const { row } = fold(history);
      if (row === null || !inScope(scope, { cloud, projectId: row.projectId })) continue;
      if (status !== "all" && (row.deletedAt === null) !== (status === "active")) continue;
      const { state, platform, projectId } = row;
      counter.add({ cloud, resource_type: resourceType, state, platform, project_id: projectId }, 1);
    }
    after = events.at(-1) ?? null;
    if (resources < RESOURCES_AT_A_TIME) return counter.groups();
  }
}

/** Events of one resource after the other, resource by resource. */
function* histories(events: readonly KeyedEvent[]): Generator<ResourceKey & { history: FoldEvent[] }> {
  let current: (ResourceKey & { history: FoldEvent[] }) | null = null;
  for (const { event, ...key } of events) {
    if (
      current !== null &&
      current.resourceId === key.resourceId &&
      current.resourceType === key.resourceType &&
      current.cloud === key.cloud
    ) {
      current.history.push(event);
      continue;
    }
    if (current !== null) yield current;
    current = { ...key, history: [event] };
  }
  if (current !== null) yield current;
}

/**
 * Counts the events of [from, to) whose own (cloud, project_id) is in scope, by hour or day of UTC. A window that
 * is empty or inverted holds none.
 * @throws Problem result_too_large for a window of more than `MAX_WINDOW_DAYS` days, before anything is counted,
 *   and for more than `MAX_GROUPS` groups at the finest grouping.
 */
export async function eventGroups(
  db: Database,
  scope: Scope,
  { groupBy, from, to, interval }: EventCount,
): Promise<Group<EventDimension>[]> {
  if (from >= to) return [];
  if (to - from > BigInt(MAX_WINDOW_DAYS) * MICROS_A_DAY) {
    throw new Problem("result_too_large", `the window is wider than ${MAX_WINDOW_DAYS} days`);
  }
  const finest = await countEvents(db, scope, { from, to, interval }, MAX_GROUPS + 1);
  // Whole seconds of the years 1 to 9999 sort as their texts do.
  return rollUp(bounded("the events", finest), EVENT_DIMENSIONS, ["bucket", ...groupBy]);
}

function bounded<D extends string>(what: string, finest: readonly Group<D>[]): readonly Group<D>[] {
  if (finest.length > MAX_GROUPS) throw tooManyGroups(what);
  return finest;
}
