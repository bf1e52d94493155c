/**
 * The fold: one resource's history → its present row, its billable intervals, and what could not be trusted.
 * Pure: no clock, no I/O. The lifecycle, the projection (incremental and replay), the summary and the historic
 * counts all call it, so they can't disagree. docs/semantics.md tells the rules.
 */
import { type Category, categorize, type StoredEvent } from "../event/event.ts";
import type { Instant } from "../event/instant.ts";
import { canonicalJson, memberText } from "../event/json-text.ts";

/** What the fold needs to know of an event. */
export interface FoldEvent {
  readonly timestamp: Instant;
  readonly receivedAt: Instant;
  readonly eventId: string;
  readonly eventType: string;
  readonly platform: string;
  readonly projectId: string;
  /** payload.state; null means unchanged. */
  readonly state: string | null;
  /** payload.size as JSON text; null means unchanged. */
  readonly size: string | null;
}

/** What a history says a resource is now. */
export interface FoldedRow {
  readonly platform: string;
  readonly projectId: string;
  readonly state: string;
  /** JSON text of the size last reported, `{}` if none was. */
  readonly size: string;
  /** The first create's timestamp; null for a history that never showed one. */
  readonly createdAt: Instant | null;
  /** Null while the resource lives. */
  readonly deletedAt: Instant | null;
  readonly firstEventAt: Instant;
  /** The newest event in fold order. */
  readonly lastEventAt: Instant;
  readonly lastReceivedAt: Instant;
  readonly lastEventId: string;
  readonly lastEventType: string;
}

/** A half-open span [from, to) over which nothing billable changed; `to` is null while it is open. */
export interface Interval {
  readonly from: Instant;
  readonly to: Instant | null;
  readonly state: string;
  /** JSON text. */
  readonly size: string;
  readonly projectId: string;
}

/** What the fold could not trust. */
export type Warning = "history_starts_without_create" | "event_after_delete";

/** What a history folds into; `row` is null for an empty one. */
export interface Folded {
  readonly row: FoldedRow | null;
  /** Oldest first. */
  readonly intervals: readonly Interval[];
  /** Each kind once. */
  readonly warnings: readonly Warning[];
}

/** The state of a deleted resource, whatever its events say. */
export const DELETED = "deleted";

/** The place of an event in fold order. */
export interface Place {
  readonly timestamp: Instant;
  readonly receivedAt: Instant;
  readonly eventId: string;
}

/**
 * Fold order: (timestamp, received_at, event_id), event ids by their UTF-8 bytes.
 * @returns negative, 0 or positive, as for `Array.sort`.
 */
export function compareFoldOrder(a: Place, b: Place): number {
  if (a.timestamp !== b.timestamp) return a.timestamp < b.timestamp ? -1 : 1;
  if (a.receivedAt !== b.receivedAt) return a.receivedAt < b.receivedAt ? -1 : 1;
  return compareBytes(a.eventId, b.eventId);
}

/** Orders two texts by their UTF-8 bytes, as COLLATE "C" does. JavaScript's `<` compares UTF-16 units. */
export function compareBytes(a: string, b: string): number {
  if (a === b) return 0;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/**
 * Folds one more event into a row. The event must come after everything the row has folded, in fold order.
 * @param before the row so far; null for a resource that is not known yet.
 */
export function step(before: FoldedRow | null, event: FoldEvent): FoldedRow {
  const category = categorize(event.eventType);
  const size = event.size ?? before?.size ?? "{}";
  const dead = before !== null && before.deletedAt !== null;
  let state: string;
  let deletedAt: Instant | null;
  if (category === "delete") {
    state = DELETED;
    deletedAt = dead ? before.deletedAt : event.timestamp;
  } else if (dead && category === "update") {
    // A straggler must not bill a dead resource for ever: it opens nothing.
    state = before.state;
    deletedAt = before.deletedAt;
  } else {
    // Screening asks every event but a delete for a state; the fold is total all the same.
    state = event.state ?? (before === null || dead ? "" : before.state);
    deletedAt = null;
  }
  return {
    platform: event.platform,
    projectId: event.projectId,
    state,
    size,
    createdAt: before?.createdAt ?? (category === "create" ? event.timestamp : null),
    deletedAt,
    firstEventAt: before?.firstEventAt ?? event.timestamp,
    lastEventAt: event.timestamp,
    lastReceivedAt: event.receivedAt,
    lastEventId: event.eventId,
    lastEventType: event.eventType,
  };
}

/** Whether two rows are billed alike: same state, same owner, equal size. */
function billedAlike(a: Interval | FoldedRow, b: Interval | FoldedRow): boolean {
  return (
    a.state === b.state &&
    a.projectId === b.projectId &&
    (a.size === b.size || canonicalJson(a.size) === canonicalJson(b.size))
  );
}

/** Collects the intervals of one history. */
class Intervals {
  readonly #closed: Interval[] = [];
  #open: Interval | null = null;
  /** How many intervals earlier lives closed: a life never continues one of another. */
  #ofEarlierLives = 0;

  /** What is billed changes at `at`, or begins to be. */
  change(at: Instant, row: FoldedRow): void {
    if (this.#open !== null && billedAlike(this.#open, row)) return;
    this.#close(at);
    const last = this.#closed.at(-1);
    if (
      this.#closed.length > this.#ofEarlierLives &&
      last !== undefined &&
      last.to === at &&
      billedAlike(last, row)
    ) {
      // What lay between was dropped as zero-length: the interval before it just goes on.
      this.#closed.pop();
      this.#open = { ...last, to: null };
      return;
    }
    this.#open = { from: at, to: null, state: row.state, size: row.size, projectId: row.projectId };
  }

  /** The life ends at `at`. */
  end(at: Instant): void {
    this.#close(at);
    this.#ofEarlierLives = this.#closed.length;
  }

  /** Gives away those that nothing can change any more; the last closed one may yet go on. */
  takeSettled(): Interval[] {
    const settled = this.#closed.splice(0, Math.max(0, this.#closed.length - 1));
    this.#ofEarlierLives -= settled.length;
    return settled;
  }

  all(): readonly Interval[] {
    return this.#open === null ? this.#closed : [...this.#closed, this.#open];
  }

  #close(at: Instant): void {
    if (this.#open !== null && this.#open.from < at) this.#closed.push({ ...this.#open, to: at });
    this.#open = null;
  }
}

/** A fold in progress, for histories that are read piece by piece. */
export class Folding {
  #row: FoldedRow | null = null;
  readonly #intervals = new Intervals();
  readonly #warnings = new Set<Warning>();

  /** Folds one more event, which comes after all the others in fold order. */
  take(event: FoldEvent): void {
    const before = this.#row;
    const category: Category = categorize(event.eventType);
    if (before === null && category !== "create") this.#warnings.add("history_starts_without_create");
    const dead = before !== null && before.deletedAt !== null;
    if (dead && category === "update") this.#warnings.add("event_after_delete");
    const row = step(before, event);
    this.#row = row;
    if (row.deletedAt === null) this.#intervals.change(event.timestamp, row);
    else if (before !== null && !dead) this.#intervals.end(event.timestamp);
  }

  /** The oldest intervals, as far as no later event can change them; each is given once. */
  takeSettled(): Interval[] {
    return this.#intervals.takeSettled();
  }

  /** What it has come to; `intervals` without those that were taken already. */
  get folded(): Folded {
    return { row: this.#row, intervals: this.#intervals.all(), warnings: [...this.#warnings] };
  }
}

/**
 * Folds one resource's whole history, given in any order.
 *
 * Intervals close only when state, size or project changes; zero-length ones are dropped, and one that goes on
 * unchanged over a dropped one stays one. A delete ends a life; after it only a create begins another.
 */
export function fold(history: Iterable<FoldEvent>): Folded {
  const folding = new Folding();
  for (const event of [...history].sort(compareFoldOrder)) folding.take(event);
  return folding.folded;
}

/** What the fold needs of an event as it is stored. */
export function foldEventOf(event: StoredEvent): FoldEvent {
  const state = event.payload === null ? null : memberText(event.payload, "state");
  return {
    timestamp: event.timestamp,
    receivedAt: event.receivedAt,
    eventId: event.eventId,
    eventType: event.eventType,
    platform: event.platform,
    projectId: event.projectId,
    state: state === null ? null : String(JSON.parse(state)),
    size: event.payload === null ? null : memberText(event.payload, "size"),
  };
}
