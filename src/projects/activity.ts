/** What one resource's history says of one project's window. Pure: the clock is handed in. */
import { categorize } from "../event/event.ts";
import type { Instant } from "../event/instant.ts";
import { type FoldEvent, type FoldedRow, fold, type Interval, step } from "../timeline/fold.ts";

/** A half-open span [from, to); one that ends before it begins holds nothing. */
export interface Window {
  readonly from: Instant;
  readonly to: Instant;
}

/** What happened within a window, and for how long the project had the resource in it. */
export interface Activity {
  /** Lives that began by an event of the project: the first create of each counts, a correction that repeats it not. */
  readonly created: number;
  /** Lives that ended by an event of the project: a second delete ends nothing. */
  readonly deleted: number;
  /** Microseconds. */
  readonly owned: bigint;
}

/**
 * The activity of one project on one resource.
 * @param history the resource's whole history in fold order, other owners' events among it: they decide what is a
 *   life, and where an interval ends.
 * @param projectId the project as events name it.
 * @param now what lies later hasn't been served yet, and counts not at all, though an event be dated ahead.
 */
export function activityIn(
  history: readonly FoldEvent[],
  projectId: string,
  window: Window,
  now: Instant,
): Activity {
  let created = 0;
  let deleted = 0;
  let row: FoldedRow | null = null;
  let createSeen = false;
  for (const event of history) {
    const before: FoldedRow | null = row;
    row = step(before, event);
    const begins = categorize(event.eventType) === "create" && !createSeen;
    const ends = row.deletedAt !== null && (before === null || before.deletedAt === null);
    // A create belongs to the life that it begins or continues; the end of a life opens the way for the next one's.
    if (begins) createSeen = true;
    if (ends) createSeen = false;
    if (event.projectId !== projectId || event.timestamp < window.from || event.timestamp >= window.to)
      continue;
    if (begins) created++;
    if (ends) deleted++;
  }
  let owned = 0n;
  for (const interval of fold(history).intervals) {
    if (interval.projectId === projectId) owned += overlap(interval, window, now);
  }
  return { created, deleted, owned };
}

/** How much of an interval lies within the window, and not later than now. */
function overlap(interval: Interval, window: Window, now: Instant): bigint {
  let { from, to } = window;
  if (interval.from > from) from = interval.from;
  const end = interval.to === null || interval.to > now ? now : interval.to;
  if (end < to) to = end;
  return to > from ? to - from : 0n;
}
