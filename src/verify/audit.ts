/**
 * The audit log against what is stored. A transaction's audit rows carry its instant, and what it stored carries that
 * instant plus a microsecond a position: so each entry's count can be held against the rows that arrived with it,
 * together with those of transactions whose spans overlap.
 */
import type { Database, Transaction } from "../database/connection.ts";
import type { Source } from "../event/event.ts";
import { EARLIEST, formatInstant, type Instant } from "../event/instant.ts";
import type { Report } from "./fault.ts";
import { type ArrivalCount, countArrivals, nextStoredByAudit, type StoredByAudit } from "./queries.ts";
import { unhurried } from "./unhurried.ts";

/** How much one snapshot takes: so many entries, which tell of so many items. */
export interface PortionSize {
  readonly entries: number;
  readonly items: number;
}

/** The items are what is counted: of full batches that is five hundred entries, of single events all of them. */
const USUAL: PortionSize = { entries: 20_000, items: 500_000 };
/** Longer than any transaction's positions reach: what began before can't arrive after that. Microseconds. */
const LONGEST_SPAN = 100_000n;

/** Entries whose rows can't be told apart by their arrival. */
interface Cluster {
  readonly start: Instant;
  /** No position of theirs lies at or behind it. */
  end: Instant;
  readonly entries: StoredByAudit[];
}

/**
 * Checks the number of events that each span's entries say they stored, by source, and of dead letters.
 * @param onProgress called after each portion with the number of entries checked so far
 * @param size more is taken at once where spans overlap further
 * @returns the number of entries checked
 */
export async function checkAudit(
  db: Database,
  report: Report,
  onProgress: (entries: number) => void,
  size = USUAL,
): Promise<number> {
  let from: Instant | null = null;
  let checked = 0;
  let limit = size;
  for (;;) {
    const begin: Instant | null = from;
    const most = limit;
    const portion: Portion = await unhurried(db, (tx) => checkPortion(tx, begin, most, report));
    checked += portion.entries;
    onProgress(checked);
    if (portion.next === null) return checked;
    // So many transactions without a gap between them: look at more at once.
    if (portion.entries === 0) limit = { entries: limit.entries * 2, items: limit.items * 2 };
    else {
      from = portion.next;
      limit = size;
    }
  }
}

/** How far one snapshot came. */
interface Portion {
  /** Where to go on; null behind the last entry. */
  readonly next: Instant | null;
  /** Entries checked. */
  readonly entries: number;
}

/** Checks the spans from `begin` (null: all that arrived before the first entry, too) to the last one that is whole. */
async function checkPortion(
  tx: Transaction,
  begin: Instant | null,
  limit: PortionSize,
  report: Report,
): Promise<Portion> {
  // What another portion's snapshot did not show yet may reach into this one: look a little earlier.
  const from = begin === null ? null : ((begin - LONGEST_SPAN) as Instant);
  const read = await nextStoredByAudit(tx, from, limit.entries);
  const entries = read.slice(0, howManyWithin(read, limit.items));
  const clusters = clustersOf(entries).filter(({ end }) => begin === null || end > begin);
  // The last one of a full portion may go on in the next.
  const last = read.length < limit.entries && entries.length === read.length;
  const next = last ? null : (clusters.pop()?.start ?? begin);
  if (next === null && clusters.length === 0 && begin === null)
    clusters.push({ start: EARLIEST, end: EARLIEST, entries: [] });
  if (clusters.length > 0) {
    const starts = clusters.map(({ start }) => start);
    const events = await countArrivals(tx, "events", starts, next, begin === null);
    const letters = await countArrivals(tx, "rejected_events", starts, next, begin === null);
    for (const [at, cluster] of clusters.entries())
      compare(cluster, ofSpan(events, at), ofSpan(letters, at), report);
  }
  return { next, entries: clusters.reduce((sum, cluster) => sum + cluster.entries.length, 0) };
}

/** How many of the first entries tell of no more items than that together; one at least. */
function howManyWithin(entries: readonly StoredByAudit[], most: number): number {
  let items = 0;
  for (const [at, entry] of entries.entries()) {
    items += entry.items;
    if (items > most) return Math.max(1, at);
  }
  return entries.length;
}

/** Entries in order of their instants, those together whose spans overlap. */
function clustersOf(entries: readonly StoredByAudit[]): Cluster[] {
  const clusters: Cluster[] = [];
  let positions = 0n;
  let at: Instant | null = null;
  for (const entry of entries) {
    // Entries of one instant may be one transaction's, whose positions go on from one to the next.
    positions = entry.at === at ? positions + BigInt(entry.items) : BigInt(entry.items);
    at = entry.at;
    const reaches = (entry.at + positions) as Instant;
    const last = clusters.at(-1);
    if (last === undefined || (entry.at >= last.end && entry.at > last.start)) {
      clusters.push({ start: entry.at, end: reaches, entries: [entry] });
      continue;
    }
    last.entries.push(entry);
    if (reaches > last.end) last.end = reaches;
  }
  return clusters;
}

function ofSpan(counts: readonly ArrivalCount[], span: number): ArrivalCount[] {
  return counts.filter((count) => count.span === span);
}

function compare(
  { start, entries }: Cluster,
  events: readonly ArrivalCount[],
  letters: readonly ArrivalCount[],
  report: Report,
): void {
  const where = `audit log at ${formatInstant(start)}`;
  const told = new Map<Source, number>();
  let rejected = 0;
  let violations = 0;
  let retries = 0;
  for (const { kind, source, accepted, rejected: refused } of entries) {
    if (source !== null) told.set(source, (told.get(source) ?? 0) + accepted);
    rejected += refused;
    if (kind === "scope_violation") violations++;
    if (kind === "retry") retries++;
  }
  for (const source of ["collector", "reconciliation"] as const) {
    const said = told.get(source) ?? 0;
    const stored = sum(events.filter((count) => count.source === source));
    if (said !== stored)
      report({ where, what: `it tells of ${said} accepted ${source} events, and ${stored} are stored` });
  }
  // An item out of its credential's scope leaves an entry of its own and no dead letter. A retry may leave such an
  // entry, too, for a letter that was refused before.
  const kept = sum(letters);
  const most = retries > 0 ? rejected : rejected - violations;
  const least = rejected - violations;
  if (kept < least || kept > most) {
    report({
      where,
      what: `it tells of ${rejected} refused items, ${violations} of them out of scope, and ${kept} dead letters are stored`,
    });
  }
}

function sum(counts: readonly ArrivalCount[]): number {
  return counts.reduce((total, { count }) => total + count, 0);
}
