/**
 * The difference between a cloud and the record, and what of it may be booked. Pure: no clock, no I/O.
 *
 * A type that was not read to its end has no absences, and where most of a type seems to be gone, the listing is
 * doubted before the fleet.
 */
import type { LocalKey } from "../projection/queries.ts";
import {
  type Correction,
  compare,
  compareAbsent,
  type Deferral,
  type DiffRules,
  type Finding,
  type RecordedResource,
} from "./finding.ts";
import type { ObservedResources, SeenResource } from "./observed.ts";

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
