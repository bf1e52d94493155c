/** Storing one screened batch: one transaction, whole or not at all. */
import { type AuditEntry, writeAudit } from "../access/audit.ts";
import type { Transaction } from "../database/connection.ts";
import { byteLength, DEAD_LETTER_MAX_BYTES } from "../event/bounds.ts";
import type { Source } from "../event/event.ts";
import type { Instant } from "../event/instant.ts";
import { scrubNul } from "../event/json-text.ts";
import type { KeyedEvent } from "../projection/histories.ts";
import { projectEvents } from "../projection/project.ts";
import { findRows } from "../projection/queries.ts";
import { type DeadLetter, insertDeadLetters, insertEvents } from "./queries.ts";
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
  /** By position among all items: whose it is, and what it is there. */
  const origins = new Map<number, { accepted: Candidate[]; candidate: Candidate }>();
  const accepted: Candidate[][] = [];
  let before = 0;
  for (const request of requests) {
    const own: Candidate[] = [];
    accepted.push(own);
    for (const candidate of request.candidates) {
      const index = before + candidate.index;
      all.push(before === 0 ? candidate : { ...candidate, index });
      origins.set(index, { accepted: own, candidate });
    }
    letters.push(...deadLetters(request, before));
    before += request.candidates.length + request.refusals.length;
  }
  const stored = await storeEvents(tx, sender.source, all);
  for (const { index } of stored.accepted) {
    const origin = origins.get(index);
    if (origin !== undefined) origin.accepted.push(origin.candidate);
  }
  if (letters.length > 0) {
    const credential = sender.scope === null ? null : { id: sender.actor, ...sender.scope };
    await insertDeadLetters(tx, sender.source, credential, letters);
  }
  await writeAudit(
    tx,
    requests.flatMap((request, n) => auditEntries(sender, request, accepted[n]?.length ?? 0)),
  );
  const none = new Map<string, number>();
  return accepted.map((own, n) => ({ accepted: own, replays: n === 0 ? stored.replays : none }));
}

/** The candidates' events, and the rows that follow from them. */
export async function storeEvents(
  tx: Transaction,
  source: Source,
  all: readonly Candidate[],
): Promise<Stored> {
  const accepted: Candidate[] = [];
  const replays = new Map<string, number>();
  // One cloud by a collector's scope; several only where nothing narrows the sender. The order is one everywhere.
  for (const [cloud, candidates] of byCloud(firstOfEach(all))) {
    const keys = candidates.map(({ event }) => event);
    const { now, known } = await findRows(tx, cloud, keys);
    const stored = await insertEvents(tx, cloud, source, candidates);
    const fresh = candidates.filter(({ index }) => stored.has(index));
    if (fresh.length === 0) continue;
    accepted.push(...fresh);
    const events = fresh.map((candidate) => keyedEvent(candidate, now));
    replays.set(cloud, await projectEvents(tx, cloud, events, known));
  }
  return { accepted, replays };
}

/** Of items that are one event, the first: also where they name different clouds. */
function firstOfEach(candidates: readonly Candidate[]): Candidate[] {
  const seen = new Set<string>();
  return candidates.filter(({ event }) => {
    const key = `${event.timestamp} ${event.eventId}`;
    const isFirst = !seen.has(key);
    seen.add(key);
    return isFirst;
  });
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
