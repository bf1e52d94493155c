/**
 * The difference between a cloud and the record, and what of it may be booked. Pure: no clock, no I/O.
 *
 * Nothing is booked that the cloud didn't say: a type that was not read to its end has no absences, a resource whose
 * size is unknown is not created, and where most of a type seems to be gone, the listing is doubted before the fleet.
 */
import type { Instant } from "../event/instant.ts";
import { canonicalJson } from "../event/json-text.ts";
import type { LocalKey } from "../projection/queries.ts";
import type { ObservedResources, Seen, SeenResource } from "./observed.ts";

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

/** What a comparison is held to beyond the rules of a single resource. */
export interface ComparisonRules extends DiffRules {
  /** The platform that was asked: another one's rows are none of its business. */
  readonly platform: string;
  /** The types that were read to their end: only their absences mean something. */
  readonly completeTypes: ReadonlySet<string>;
  /** The share of a type's living rows that may be gone at once; 100: any. */
  readonly maxAbsentPercent: number;
  /** Somebody looked, and the mass delete is one. */
  readonly confirmMassDelete: boolean;
}

/** So few rows may always be gone. */
const ABSENT_ALWAYS_ALLOWED = 10;

/** Deletes that were not booked because too much seems to be gone. */
export interface Withheld {
  readonly resourceType: string;
  /** How many living rows were not listed. */
  readonly absent: number;
  /** Of how many. */
  readonly living: number;
  /** How many deletes that would have been. */
  readonly deletes: number;
}

/** A resource that differs, but not in a way that can be booked. */
export interface Unbookable {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly why: string;
}

/** What a run decided. */
export interface Difference {
  readonly corrections: Correction[];
  readonly deferred: Readonly<Record<Deferral, number>>;
  readonly withheld: readonly Withheld[];
  readonly unknown: readonly Unbookable[];
}

/** The living rows of one type, counted while they go by. */
interface Absences {
  living: number;
  absent: number;
  readonly deletes: Correction[];
}

/**
 * Compares a cloud with its record, row by row, so that the record is never held whole: first every living row of
 * the types that were asked for (`living`), then, for what is left of the observed (`takeRest`), the rows that there
 * are of it all the same (`known`), then `finish`.
 */
export class Comparison {
  readonly #observed: ObservedResources;
  readonly #rules: ComparisonRules;
  readonly #corrections: Correction[] = [];
  readonly #deferred = { transitional: 0, recent: 0 };
  readonly #unknown: Unbookable[] = [];
  readonly #absences = new Map<string, Absences>();

  constructor(observed: ObservedResources, rules: ComparisonRules) {
    this.#observed = observed;
    this.#rules = rules;
  }

  /** One living row. */
  living(row: RecordedResource): void {
    const { resourceType, resourceId } = row;
    const seen = this.#observed.take(resourceType, resourceId);
    if (seen !== null) {
      if (row.platform === this.#rules.platform) this.#absencesOf(resourceType).living++;
      this.#note(row, compare(row, seen, row, this.#rules));
      return;
    }
    if (row.platform !== this.#rules.platform) return;
    const absences = this.#absencesOf(resourceType);
    absences.living++;
    if (!this.#rules.completeTypes.has(resourceType)) return;
    absences.absent++;
    const finding = compareAbsent(row, this.#rules);
    if (finding.kind === "correction") absences.deletes.push(finding.correction);
    else this.#note(row, finding);
  }

  /** Gives what was seen and has no living row, once. */
  takeRest(): Iterable<SeenResource> {
    return this.#observed.takeRest();
  }

  /** What was seen and is not among the living rows, with the row that there is of it, if any. */
  known(resource: SeenResource, row: RecordedResource | null): void {
    this.#note(resource, compare(resource, resource.seen, row, this.#rules));
  }

  /** What all of it comes to: corrections by type and id, what already has a row last. */
  finish(): Difference {
    const withheld: Withheld[] = [];
    const { confirmMassDelete, maxAbsentPercent } = this.#rules;
    for (const [resourceType, { living, absent, deletes }] of this.#absences) {
      // Counted over all that is absent: what is only deferred must not carry the rest below the mark.
      const tooMany = absent > ABSENT_ALWAYS_ALLOWED && absent * 100 > living * maxAbsentPercent;
      if (!tooMany || confirmMassDelete) for (const correction of deletes) this.#corrections.push(correction);
      else if (deletes.length > 0) withheld.push({ resourceType, absent, living, deletes: deletes.length });
    }
    return {
      corrections: this.#corrections.sort(inBookingOrder),
      deferred: this.#deferred,
      withheld: withheld.sort((a, b) => compareTexts(a.resourceType, b.resourceType)),
      unknown: this.#unknown,
    };
  }

  #absencesOf(resourceType: string): Absences {
    const known = this.#absences.get(resourceType);
    if (known !== undefined) return known;
    const fresh: Absences = { living: 0, absent: 0, deletes: [] };
    this.#absences.set(resourceType, fresh);
    return fresh;
  }

  #note({ resourceType, resourceId }: LocalKey, finding: Finding | null): void {
    if (finding === null) return;
    if (finding.kind === "correction") this.#corrections.push(finding.correction);
    else if (finding.kind === "deferral") this.#deferred[finding.reason]++;
    else this.#unknown.push({ resourceType, resourceId, why: finding.why });
  }
}

/** New rows before known ones, each by type and id: the order in which ingest takes its locks. */
function inBookingOrder(a: Correction, b: Correction): number {
  if ((a.basis === null) !== (b.basis === null)) return a.basis === null ? -1 : 1;
  return compareTexts(a.resourceType, b.resourceType) || compareTexts(a.resourceId, b.resourceId);
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
