/**
 * Refused items, once more through the very pipeline that refused them, under the scope of the credential that
 * they came with. A letter is resolved in the transaction that stores its event, or finds it stored: it is never
 * one without the other.
 */
import { type AuditEntry, writeAudit } from "../access/audit.ts";
import type { Transaction } from "../database/connection.ts";
import type { Instant } from "../event/instant.ts";
import { count, type Pipeline, takeThrough } from "../ingest/pipeline.ts";
import { type Screened, type Sender, type Stored, scopeViolations, storeEvents } from "../ingest/store.ts";
import { Problem } from "../problem.ts";
import {
  countRetriable,
  type DeadLetterFilter,
  type DeadLetterPosition,
  findLetter,
  type HeldLetter,
  lockOpen,
  pageOfRetriable,
  refuseAgain,
  resolveLetters,
} from "./queries.ts";

/** Letters of one transaction. */
const TRANSACTION_MAX_LETTERS = 500;

/** What became of one letter. */
export type LetterFate =
  | { readonly outcome: "stored" | "duplicate" | "already_resolved" }
  | { readonly outcome: "refused"; readonly reason: string };

/** What one letter's retry came to. */
export type RetriedLetter = LetterFate & { readonly id: string; readonly resolvedAt: Instant | null };

/**
 * Retries one letter. One that is resolved already stays as it is, and that is no fault: whoever lost the answer
 * may ask again.
 * @throws Problem not_found for an unknown id, conflict for an item that was too large to keep.
 */
export async function retryLetter(pipeline: Pipeline, actor: string, id: string): Promise<RetriedLetter> {
  const letter = await findLetter(pipeline.db, id);
  if (letter === null) throw new Problem("not_found");
  const resolved = letter.resolvedAt !== null;
  if (!resolved && !letter.whole) {
    throw new Problem("conflict", "the item was too large to be kept, so there is nothing to retry");
  }
  const fates = resolved ? null : await retryTogether(pipeline, actor, [letter], true);
  const fate: LetterFate = fates?.get(id) ?? { outcome: "already_resolved" };
  const resolvedAt = resolved ? letter.resolvedAt : ((await findLetter(pipeline.db, id))?.resolvedAt ?? null);
  return { id, ...fate, resolvedAt };
}

/** What a retry of many came to. */
export interface RetriedLetters {
  readonly retried: number;
  readonly resolved: number;
  readonly refused: number;
  /** Letters behind the last one that was retried, which the bound kept out. */
  readonly remaining: number;
  /** Where to go on; null where nothing remains. */
  readonly next: DeadLetterPosition | null;
}

/**
 * Retries the open letters that the filter means, oldest first, each once. Those whose items weren't kept are left
 * alone.
 * @param limit letters at most.
 */
export async function retryLetters(
  pipeline: Pipeline,
  actor: string,
  filter: DeadLetterFilter,
  { limit, after }: { readonly limit: number; readonly after: DeadLetterPosition | null },
): Promise<RetriedLetters> {
  const sums = { retried: 0, resolved: 0, refused: 0 };
  let position = after;
  for (let left = limit; left > 0; ) {
    const page = { limit: Math.min(left, TRANSACTION_MAX_LETTERS), after: position };
    const letters = await pageOfRetriable(pipeline.db, filter, page);
    for (const together of bySender(letters)) {
      for (const { outcome } of (await retryTogether(pipeline, actor, together, false)).values()) {
        sums.retried += 1;
        if (outcome === "refused") sums.refused += 1;
        else sums.resolved += 1;
      }
    }
    const last = letters.at(-1);
    if (last === undefined || letters.length < page.limit) return { ...sums, remaining: 0, next: null };
    position = { receivedAt: last.receivedAt, id: last.id };
    left -= letters.length;
  }
  const remaining = await countRetriable(pipeline.db, filter, position);
  return { ...sums, remaining, next: remaining === 0 ? null : position };
}

/** Letters that came the same way, in their order. */
function bySender(letters: readonly HeldLetter[]): HeldLetter[][] {
  const groups = new Map<string, HeldLetter[]>();
  for (const letter of letters) {
    const key = JSON.stringify([letter.source, letter.credential]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [letter]);
    else group.push(letter);
  }
  return [...groups.values()];
}

/**
 * Takes letters of one sender through the pipeline, in one transaction.
 * @param alone the letter was asked for by its id: then it is what the audit row names.
 * @returns the fates of those that were still open.
 */
async function retryTogether(
  pipeline: Pipeline,
  actor: string,
  letters: readonly HeldLetter[],
  alone: boolean,
): Promise<Map<string, LetterFate>> {
  const { source, credential } = letters[0] ?? { source: "collector", credential: null };
  const scope = credential === null ? null : { platform: credential.platform, cloud: credential.cloud };
  const sender: Sender = { actor: credential?.id ?? actor, scope, source };
  const texts = letters.map(({ raw }) => raw);
  const items = texts.map((text): unknown => JSON.parse(text));
  const idOf = ({ index }: { readonly index: number }) => letters[index]?.id ?? "";

  let open = new Set<string>();
  const isOpen = (item: { readonly index: number }) => open.has(idOf(item));
  const store = async (tx: Transaction, _: Sender, batch: Screened): Promise<Stored> => {
    open = await lockOpen(tx, [...batch.candidates, ...batch.refusals].map(idOf));
    const candidates = batch.candidates.filter(isOpen);
    const refusals = batch.refusals.filter(isOpen);
    const stored = await storeEvents(tx, source, candidates);
    await resolveLetters(tx, candidates.map(idOf));
    await refuseAgain(
      tx,
      refusals.map((refusal) => ({ id: idOf(refusal), kind: refusal.kind, reason: refusal.reason })),
    );
    if (open.size > 0) {
      const tried = { resolved: candidates.map(idOf), refused: refusals.map(idOf) };
      await writeAudit(tx, [
        retryEntry(actor, sender, tried, stored, alone),
        ...scopeViolations(sender, refusals),
      ]);
    }
    return stored;
  };
  const { screened, stored, unvalidated } = await takeThrough(pipeline, sender, texts, items, store);
  const candidates = screened.candidates.filter(isOpen);
  // Refused when it came, the item is counted already.
  count(pipeline.metrics, sender, { candidates, refusals: [] }, stored, unvalidated);

  const accepted = new Set(stored.accepted.map(idOf));
  const fates = new Map<string, LetterFate>();
  for (const candidate of candidates) {
    const id = idOf(candidate);
    fates.set(id, { outcome: accepted.has(id) ? "stored" : "duplicate" });
  }
  for (const refusal of screened.refusals.filter(isOpen)) {
    fates.set(idOf(refusal), { outcome: "refused", reason: refusal.reason });
  }
  return fates;
}

function retryEntry(
  actor: string,
  sender: Sender,
  tried: { readonly resolved: readonly string[]; readonly refused: readonly string[] },
  stored: Stored,
  alone: boolean,
): AuditEntry {
  const letters = [...tried.resolved, ...tried.refused];
  return {
    actor,
    action: "rejected_events.retry",
    objectType: "rejected_event",
    objectId: alone ? (letters[0] ?? "") : "",
    details: { source: sender.source, credential: sender.scope, accepted: stored.accepted.length, ...tried },
  };
}
