/**
 * What is to be said of one resource, by what the cloud and the record say of it. Pure: no clock, no I/O.
 *
 * Nothing is booked that the cloud didn't say: a resource whose size is unknown is not created.
 */
import type { Instant } from "../event/instant.ts";
import { canonicalJson } from "../event/json-text.ts";
import type { LocalKey } from "../projection/queries.ts";
import type { Seen } from "./observed.ts";

/** What the record holds of a resource, as far as a run compares it. */
export interface RecordedResource {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly platform: string;
  readonly projectId: string;
  readonly state: string;
  /** JSON text. */
  readonly size: string;
  /** Null while it lives. */
  readonly deletedAt: Instant | null;
  /** The newest event in fold order. */
  readonly lastEventAt: Instant;
  readonly lastEventId: string;
}

/** What a correction does. */
export type Action = "create" | "update" | "delete";

/** One event that makes the record agree with the cloud. */
export interface Correction {
  readonly action: Action;
  /** The platform's own instant where it told one, else the run's. */
  readonly timestamp: Instant;
  readonly resourceType: string;
  readonly resourceId: string;
  readonly projectId: string;
  /** Null on a delete. */
  readonly state: string | null;
  /** JSON text; null on a delete, and where it is unknown: then it stays as it is. */
  readonly size: string | null;
  /** The platform's description as JSON text; null where it gave none, because it knows the resource no more. */
  readonly provider: string | null;
  /** In words: what differed. */
  readonly reason: string;
  /** The newest event that the record held of the resource when this was decided; null: it held none. */
  readonly basis: string | null;
}

/** Why a difference is left to the next run. */
export type Deferral = "transitional" | "recent";

/** What one resource's comparison came to; null where nothing differs. */
export type Finding =
  | { readonly kind: "correction"; readonly correction: Correction }
  | { readonly kind: "deferral"; readonly reason: Deferral }
  /** It differs, and what would have to be booked isn't known. */
  | { readonly kind: "unknown"; readonly why: string };

/** What a run is held to. */
export interface DiffRules {
  /** The run's one clock. */
  readonly now: Instant;
  /** Differences younger than this are left to the next run; 0: none is too young. */
  readonly settleSeconds: number;
}

const SECOND = 1_000_000n;

/** One microsecond later: the shortest step that time has here. */
function justAfter(instant: Instant): Instant {
  return (instant + 1n) as Instant;
}

function later(a: Instant | null, b: Instant | null): Instant | null {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
}

/** Whether an instant lies inside the settle window before the run, or after it. */
function isRecent(at: Instant | null, { now, settleSeconds }: DiffRules): boolean {
  return settleSeconds > 0 && at !== null && at > now - BigInt(settleSeconds) * SECOND;
}

/** When a correction is dated that would be at `told`: never before the row's newest event in fold order. */
function datedBehind(row: RecordedResource | null, told: Instant): Instant {
  return row !== null && told < row.lastEventAt ? justAfter(row.lastEventAt) : told;
}

const NONE: readonly string[] = [];

/** What differs between a living row and what was seen of it, in the words of the record. */
function differences(row: RecordedResource, { state, size, projectId }: Seen): readonly string[] {
  const sameSize = size === null || canonicalJson(size) === canonicalJson(row.size);
  if (sameSize && state === row.state && projectId === row.projectId) return NONE;
  return [
    ...(state === row.state ? [] : ["state"]),
    ...(sameSize ? [] : ["size"]),
    ...(projectId === row.projectId ? [] : ["project_id"]),
  ];
}

/**
 * Compares a resource that was seen with its row.
 * @param row null where the record knows nothing of it
 */
export function compare(
  { resourceType, resourceId }: LocalKey,
  seen: Seen,
  row: RecordedResource | null,
  rules: DiffRules,
): Finding | null {
  const ended = seen.deletedAt;
  const lives = row !== null && row.deletedAt === null;
  // What ended before the record ever heard of it stays out of it: nobody can say what it was.
  if (ended !== null && !lives) return null;
  const changed = lives && ended === null ? differences(row, seen) : NONE;
  if (lives && ended === null && changed.length === 0) return null;

  if (ended === null && seen.inTransition) return { kind: "deferral", reason: "transitional" };
  const told = ended ?? later(seen.changedAt, seen.createdAt);
  if (isRecent(told, rules) || isRecent(row?.lastEventAt ?? null, rules))
    return { kind: "deferral", reason: "recent" };

  const { projectId, provider } = seen;
  const common = { resourceType, resourceId, projectId, provider, basis: row?.lastEventId ?? null };
  if (ended !== null) {
    const timestamp = datedBehind(row, ended);
    const reason = "the platform reports its end";
    return corrected({ action: "delete", timestamp, ...common, state: null, size: null, reason });
  }
  const { state, size } = seen;
  if (lives) {
    const timestamp = datedBehind(row, rules.now);
    const reason = `${changed.join(", ")} differ${changed.length === 1 ? "s" : ""}`;
    return corrected({ action: "update", timestamp, ...common, state, size, reason });
  }
  if (size === null) return { kind: "unknown", why: "it is not in the record, and its size is unknown" };
  let timestamp = seen.createdAt ?? rules.now;
  // A life begins behind the one before it, even where the platform has never heard that the first one ended.
  const before = row?.deletedAt ?? null;
  if (before !== null && timestamp <= before) timestamp = justAfter(before);
  const reason = row === null ? "it is not in the record" : "the record has it as deleted";
  return corrected({
    action: "create",
    timestamp: datedBehind(row, timestamp),
    ...common,
    state,
    size,
    reason,
  });
}

function corrected(correction: Correction): Finding {
  return { kind: "correction", correction };
}

/** What is to be said of a living row that a listing, read to its end, doesn't hold. */
export function compareAbsent(row: RecordedResource, rules: DiffRules): Finding {
  if (isRecent(row.lastEventAt, rules)) return { kind: "deferral", reason: "recent" };
  return corrected({
    action: "delete",
    timestamp: datedBehind(row, rules.now),
    resourceType: row.resourceType,
    resourceId: row.resourceId,
    projectId: row.projectId,
    state: null,
    size: null,
    provider: null,
    reason: "the cloud no longer lists it",
    basis: row.lastEventId,
  });
}
