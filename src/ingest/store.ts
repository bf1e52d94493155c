/** Storing one screened batch: one transaction, whole or not at all. */
import { type AuditEntry, writeAudit } from "../access/audit.ts";
import type { Transaction } from "../database/connection.ts";
import { Overtaken } from "../database/faults.ts";
import { type Statement, together } from "../database/together.ts";
import { byteLength, DEAD_LETTER_MAX_BYTES } from "../event/bounds.ts";
import type { Source } from "../event/event.ts";
import type { Instant } from "../event/instant.ts";
import { scrubNul } from "../event/json-text.ts";
import type { KeyedEvent } from "../projection/histories.ts";
import { projectEvents } from "../projection/project.ts";
import { type KeyedRow, keyOf, lockRows, transactionInstant } from "../projection/queries.ts";
import { compareBytes } from "../timeline/fold.ts";
import { type DeadLetter, eventsOfTransaction, insertDeadLetters, insertEvents } from "./queries.ts";
import type { Candidate, Refusal, Scope } from "./screen.ts";

/** Who hands a batch in. */
export interface Sender {
  /** For the audit log: a credential's id, or the name of Tally's own part. */
  readonly actor: string;
  /** The credential's own pair; null where nothing narrows the sender. */
  readonly scope: Scope | null;
  readonly source: Source;
}

/** What a screened batch holds. */
export interface Screened {
  readonly candidates: readonly Candidate[];
  readonly refusals: readonly Refusal[];
}

/** What storing did. */
export interface Stored {
  /** The candidates that became visible rows; all others were stored already. */
  readonly accepted: readonly Candidate[];
  /** Histories that were replayed, by cloud. */
  readonly replays: ReadonlyMap<string, number>;
}

/** How a screened batch is written inside an open transaction. */
export type Store = (tx: Transaction, sender: Sender, batch: Screened) => Promise<Stored>;

/** A batch that was handed in: its events, its dead letters, its audit rows. */
export const storeBatch: Store = async (tx, sender, batch) => {
  const [stored] = await storeRequests(tx, sender, [batch]);
  if (stored === undefined) throw new Error("a request was stored and not told of");
  return stored;
};

/**
 * Several requests of one sender, as if each had been handed in by itself, one after the other: of one event in two
 * of them the first wins, `received_at` counts on from request to request, and each has its own audit rows.
 * @returns what became of each. Replays are told with the first.
 */
export async function storeRequests(
  tx: Transaction,
  sender: Sender,
  requests: readonly Screened[],
): Promise<Stored[]> {
  const all: Candidate[] = [];
  const letters: DeadLetter[] = [];
  /** Where each request's items begin among all items. */
  const begins: number[] = [];
  let before = 0;
  for (const request of requests) {
    begins.push(before);
    for (const candidate of request.candidates)
      all.push(before === 0 ? candidate : { ...candidate, index: before + candidate.index });
    letters.push(...deadLetters(request, before));
    before += request.candidates.length + request.refusals.length;
  }
  const { stored, writes } = await openEvents(tx, sender.source, all);
  const accepted = requests.length === 1 ? [stored.accepted] : ownAccepted(requests, begins, stored.accepted);
  if (letters.length > 0) {
    const credential = sender.scope === null ? null : { id: sender.actor, ...sender.scope };
    writes.push(() => insertDeadLetters(tx, sender.source, credential, letters));
  }
  const entries = requests.flatMap((request, n) => auditEntries(sender, request, accepted[n]?.length ?? 0));
  writes.push(() => writeAudit(tx, entries));
  await together(writes);
  const none = new Map<string, number>();
  return accepted.map((own, n) => ({ accepted: own, replays: n === 0 ? stored.replays : none }));
}

/** Each request's own candidates among those accepted of all. */
function ownAccepted(
  requests: readonly Screened[],
  begins: readonly number[],
  accepted: readonly Candidate[],
): Candidate[][] {
  const positions = new Set(accepted.map(({ index }) => index));
  return requests.map(({ candidates }, n) =>
    candidates.filter(({ index }) => positions.has((begins[n] ?? 0) + index)),
  );
}

/** The candidates' events, and the rows that follow from them. */
export async function storeEvents(
  tx: Transaction,
  source: Source,
  all: readonly Candidate[],
): Promise<Stored> {
  const { stored, writes } = await openEvents(tx, source, all);
  await together(writes);
  return stored;
}

/** Stores the events and folds them. What is left to be written goes out with whatever else the caller writes. */
async function openEvents(
  tx: Transaction,
  source: Source,
  all: readonly Candidate[],
): Promise<{ stored: Stored; writes: Statement[] }> {
  const accepted: Candidate[] = [];
  const replays = new Map<string, number>();
  const writes: Statement[] = [];
  // One cloud by a collector's scope; several only where nothing narrows the sender. The order is one everywhere.
  for (const [cloud, candidates] of byCloud(inKeyOrder(all))) {
    const resources = new Map(candidates.map(({ event }) => [keyOf(event), event]));
    let count = 0;
    let now: Instant | null = null;
    let locked: readonly KeyedRow[] = [];
    await together([
      async () => {
        count = await insertEvents(tx, cloud, source, candidates);
      },
      async () => {
        now = await transactionInstant(tx);
      },
      async () => {
        locked = await lockRows(tx, cloud, [...resources.values()]);
      },
    ]);
    const fresh = await freshOf(tx, cloud, candidates, count);
    if (fresh.length === 0 || now === null) continue;
    accepted.push(...fresh);
    const receivedFrom: Instant = now;
    const events = fresh.map((candidate) => keyedEvent(candidate, receivedFrom));
    const projection = await projectEvents(tx, cloud, events, locked);
    replays.set(cloud, projection.replays);
    writes.push(...projection.writes);
  }
  return { stored: { accepted, replays }, writes };
}

/** Those of the candidates that were new. Nearly always that is all of them, or, of a batch sent again, none. */
async function freshOf(
  tx: Transaction,
  cloud: string,
  candidates: readonly Candidate[],
  count: number,
): Promise<readonly Candidate[]> {
  if (count === candidates.length) return candidates;
  if (count === 0) return [];
  const stored = await eventsOfTransaction(tx, cloud, candidates);
  // Another transaction began in this very microsecond and stored one of these events at the same position.
  if (stored.size !== count) throw new Overtaken();
  return candidates.filter(({ index }) => stored.has(index));
}

/** By (timestamp, event id), and of items that are one event, only the first: also where they name different clouds. */
function inKeyOrder(candidates: readonly Candidate[]): readonly Candidate[] {
  // A collector mostly sends its events in the order in which they happened.
  let ascending = true;
  for (let i = 1; i < candidates.length && ascending; i++) {
    const [a, b] = [candidates[i - 1], candidates[i]];
    ascending = a !== undefined && b !== undefined && a.event.timestamp < b.event.timestamp;
  }
  if (ascending) return candidates;
  const sorted = [...candidates].sort((a, b) => compareIdentity(a, b) || a.index - b.index);
  return sorted.filter((candidate, i) => {
    const before = sorted[i - 1];
    return before === undefined || compareIdentity(before, candidate) !== 0;
  });
}

function compareIdentity({ event: a }: Candidate, { event: b }: Candidate): number {
  if (a.timestamp !== b.timestamp) return a.timestamp < b.timestamp ? -1 : 1;
  return compareBytes(a.eventId, b.eventId);
}

function byCloud(candidates: readonly Candidate[]): [string, Candidate[]][] {
  const clouds = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    const list = clouds.get(candidate.event.cloud);
    if (list === undefined) clouds.set(candidate.event.cloud, [candidate]);
    else list.push(candidate);
  }
  return [...clouds].sort(([a], [b]) => (a < b ? -1 : 1));
}

function keyedEvent({ index, event, sizeText }: Candidate, receivedFrom: Instant): KeyedEvent {
  return {
    resourceType: event.resourceType,
    resourceId: event.resourceId,
    event: {
      timestamp: event.timestamp,
      receivedAt: (receivedFrom + BigInt(index)) as Instant,
      eventId: event.eventId,
      eventType: event.eventType,
      platform: event.platform,
      projectId: event.projectId,
      state: event.state,
      size: sizeText,
    },
  };
}

/** @param before how many items stand before the batch's own */
function deadLetters({ refusals }: Screened, before: number): DeadLetter[] {
  const letters: DeadLetter[] = [];
  for (const { index, text, kind, reason, cloud } of refusals) {
    // Out of scope is a matter for the audit log: the item may be another tenant's.
    if (kind === "scope") continue;
    const raw = scrubNul(text);
    const bytes = byteLength(raw);
    const whole = bytes <= DEAD_LETTER_MAX_BYTES;
    const kept = whole ? raw : `{"not_stored":{"bytes":${bytes}}}`;
    letters.push({ index: before + index, kind, reason, raw: kept, whole, cloud });
  }
  return letters;
}

function auditEntries(sender: Sender, { candidates, refusals }: Screened, accepted: number): AuditEntry[] {
  const summary = {
    actor: sender.actor,
    action: "events.ingest",
    objectType: "batch",
    objectId: sender.scope?.cloud ?? "",
    details: {
      source: sender.source,
      accepted,
      duplicates: candidates.length - accepted,
      rejected: refusals.length,
    },
  };
  return [summary, ...scopeViolations(sender, refusals)];
}

/** The audit rows of the items that named another pair than their credential's. */
export function scopeViolations(sender: Sender, refusals: readonly Refusal[]): AuditEntry[] {
  return refusals.flatMap(({ index, claimed }) =>
    claimed === null
      ? []
      : [
          {
            actor: sender.actor,
            action: "events.scope_violation",
            objectType: "ingest_credential",
            objectId: sender.actor,
            details: { index, credential: sender.scope, claimed },
          },
        ],
  );
}
