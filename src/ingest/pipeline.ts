/**
 * The pipeline that every event goes through, a collector's and a reconciliation run's alike:
 * screen each item → store the batch in one transaction → count.
 */
import type { Database } from "../database/connection.ts";
import { faultOf } from "../database/faults.ts";
import { transaction } from "../database/transaction.ts";
import { itemsOf } from "../event/json-text.ts";
import { sizeSchemas, type TypeKey } from "../resource-types/queries.ts";
import { compileSizeSchema, SchemaRefused } from "../resource-types/registry.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { findCulprits } from "./culprits.ts";
import { sizeNames, type TypeOfCloud } from "./queries.ts";
import {
  type Candidate,
  isRefusal,
  type Refusal,
  type SizeRules,
  type SizeSchema,
  screenItem,
  screenSize,
} from "./screen.ts";
import { type Screened, type Sender, type Store, type Stored, storeBatch } from "./store.ts";

/** What the pipeline works with. */
export interface Pipeline {
  readonly db: Database;
  readonly metrics: Metrics;
  /** Refuse a size that no schema is registered for. */
  readonly requireSizeSchema: boolean;
}

/** The fate of a batch: accepted + duplicates + rejected.length = its number of items, always. */
export interface IngestOutcome {
  readonly accepted: number;
  readonly duplicates: number;
  /** In the batch's order. */
  readonly rejected: readonly {
    readonly index: number;
    readonly event_id: string;
    readonly reason: string;
  }[];
}

/**
 * Takes one batch in.
 *
 * @param text the request's JSON text
 * @param value the same, parsed: one item, or an array of at most 1000
 * @returns after the commit is durable
 */
export async function ingest(
  pipeline: Pipeline,
  sender: Sender,
  text: string,
  value: unknown,
): Promise<IngestOutcome> {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (items.length === 0) return { accepted: 0, duplicates: 0, rejected: [] };
  const texts = itemsOf(text).map(({ start, end }) => text.slice(start, end));
  return conclude(pipeline, sender, await takeThrough(pipeline, sender, texts, items, storeBatch));
}

/** Counts what became of a request, and tells it. */
export function conclude(pipeline: Pipeline, sender: Sender, outcome: Outcome): IngestOutcome {
  const { screened, stored, unvalidated } = outcome;
  const { candidates, refusals } = screened;
  count(pipeline.metrics, sender, screened, stored, unvalidated);
  return {
    accepted: stored.accepted.length,
    duplicates: candidates.length - stored.accepted.length,
    rejected: [...refusals]
      .sort((a, b) => a.index - b.index)
      .map(({ index, eventId, reason }) => ({ index, event_id: eventId, reason })),
  };
}

/** What became of items that went through the pipeline. */
export interface Outcome {
  /** As it was written: what the database itself refused is among the refusals. */
  readonly screened: Screened;
  readonly stored: Stored;
  /** The items whose size no schema is registered for. */
  readonly unvalidated: ReadonlySet<number>;
}

/**
 * Screens the items and writes them as `store` does, in one transaction. Nothing is counted yet: see `count`.
 * @param store is called again for other parts of the batch where the database refuses an item; only what its last
 *   call did stays.
 */
export async function takeThrough(
  pipeline: Pipeline,
  sender: Sender,
  texts: readonly string[],
  items: readonly unknown[],
  store: Store,
): Promise<Outcome> {
  const begun = screenItems(sender, texts, items);
  const rules = await readSizeRules(pipeline.db, begun.passed);
  const { screened, unvalidated } = screenSizes(pipeline, begun, rules);
  return { ...(await storeIsolating(pipeline.db, sender, screened, store)), unvalidated };
}

/** What the first stages, which need no database, made of a request. */
export interface HalfScreened {
  readonly passed: readonly Candidate[];
  readonly refusals: readonly Refusal[];
}

/** The first stages on each item. */
export function screenItems(
  sender: Sender,
  texts: readonly string[],
  items: readonly unknown[],
): HalfScreened {
  const passed: Candidate[] = [];
  const refusals: Refusal[] = [];
  for (const [index, text] of texts.entries()) {
    const outcome = screenItem(text, items[index], index, sender.scope);
    if (isRefusal(outcome)) refusals.push(outcome);
    else passed.push(outcome);
  }
  return { passed, refusals };
}

/** The last stages, by what the database knows of sizes. */
export function screenSizes(
  { requireSizeSchema }: Pipeline,
  begun: HalfScreened,
  rules: SizeRules,
): { screened: Screened; unvalidated: ReadonlySet<number> } {
  const refusals = [...begun.refusals];
  const candidates: Candidate[] = [];
  const unvalidated = new Set<number>();
  for (const candidate of begun.passed) {
    const verdict = screenSize(candidate, rules, requireSizeSchema);
    if (isRefusal(verdict)) {
      refusals.push(verdict);
      continue;
    }
    candidates.push(verdict.candidate);
    if (verdict.unvalidated) unvalidated.add(candidate.index);
  }
  return { screened: { candidates, refusals }, unvalidated };
}

/** Reads names and schemas once a batch: a registration counts from the next event on, in any process. */
export async function readSizeRules(db: Database, candidates: readonly Candidate[]): Promise<SizeRules> {
  const pairs = new Map<string, TypeKey>();
  const types = new Map<string, TypeOfCloud>();
  for (const { event } of candidates) {
    if (event.size === null) continue;
    const { platform, cloud, resourceType } = event;
    const pair = pairKey(platform, resourceType);
    if (!pairs.has(pair)) pairs.set(pair, { platform, resourceType });
    const type = pairKey(cloud, resourceType);
    if (!types.has(type)) types.set(type, { cloud, resourceType });
  }
  if (pairs.size === 0) return { names: () => [], schema: () => null };
  const [documents, found] = await Promise.all([
    sizeSchemas(db, [...pairs.values()]),
    sizeNames(db, [...types.values()]),
  ]);
  const schemas = new Map([...documents].map(([pair, document]) => [pair, sizeSchemaOf(document)]));
  const names = Map.groupBy(found, ({ cloud, resourceType }) => pairKey(cloud, resourceType));
  return {
    names: (cloud, resourceType) => names.get(pairKey(cloud, resourceType)) ?? [],
    schema: (platform, resourceType) => schemas.get(pairKey(platform, resourceType)) ?? null,
  };
}

/**
 * A registered schema, compiled. Registration refuses what can't be enforced, but a document can get past it (by
 * SQL, or from another version of Tally): then it refuses the sizes of its own type, and nobody else's.
 */
function sizeSchemaOf(text: string): SizeSchema {
  try {
    return compileSizeSchema(text);
  } catch (error) {
    if (!(error instanceof SchemaRefused)) throw error;
    const violation = `the registered schema cannot be applied: ${error.message}`;
    return { check: () => [violation] };
  }
}

/** No identifier can hold a NUL. */
function pairKey(platform: string, resourceType: string): string {
  return `${platform}\u0000${resourceType}`;
}

/**
 * Stores the batch. Should the database refuse it for a reason that lies in the data, the items at fault are
 * found and refused, and the rest is stored: whatever an item holds, it can't fail its neighbours.
 */
export async function storeIsolating(
  db: Database,
  sender: Sender,
  whole: Screened,
  store: Store,
): Promise<{ screened: Screened; stored: Stored }> {
  let batch = whole;
  for (;;) {
    try {
      const screened = batch;
      return { screened, stored: await transaction(db, async (tx) => await store(tx, sender, screened)) };
    } catch (error) {
      if (faultOf(error) !== "data") throw error;
      const culprits = await findCulprits(db, sender, batch.candidates, store);
      if (culprits.size === 0) throw error;
      batch = {
        candidates: batch.candidates.filter(({ index }) => !culprits.has(index)),
        refusals: [...batch.refusals, ...refusalsOf(batch.candidates, culprits)],
      };
    }
  }
}

function refusalsOf(candidates: readonly Candidate[], culprits: ReadonlyMap<number, string>): Refusal[] {
  return candidates.flatMap(({ index, text, event }) => {
    const why = culprits.get(index);
    if (why === undefined) return [];
    const reason = `schema: the database cannot store the item: ${why}`;
    return [
      {
        index,
        text,
        kind: "schema" as const,
        reason,
        eventId: event.eventId,
        cloud: event.cloud,
        claimed: null,
      },
    ];
  });
}

/** Counts what was stored, was stored already, and was refused. */
export function count(
  metrics: Metrics,
  sender: Sender,
  { candidates, refusals }: Screened,
  stored: Stored,
  unvalidated: ReadonlySet<number>,
): void {
  metrics.countIngested(stored.accepted, sender.source);
  const sums = new Map<string, TypeKey & { count: number }>();
  for (const { index, event } of unvalidated.size === 0 ? [] : stored.accepted) {
    if (!unvalidated.has(index)) continue;
    const { platform, resourceType } = event;
    const key = pairKey(platform, resourceType);
    sums.set(key, { platform, resourceType, count: (sums.get(key)?.count ?? 0) + 1 });
  }
  for (const { platform, resourceType, count } of sums.values())
    metrics.countUnvalidated(platform, resourceType, count);
  for (const [cloud, count] of duplicatesOf(candidates, stored.accepted))
    metrics.countDuplicates(cloud, count);
  for (const [cloud, count] of stored.replays) if (count > 0) metrics.countReplays(cloud, count);
  // The label is the credential's cloud: what a refused item claims must not become a label.
  const cloud = sender.scope?.cloud ?? "";
  for (const { kind } of refusals) metrics.eventsRejected.inc({ cloud, reason: kind });
}

/** How many of the candidates were stored already, by cloud. */
function duplicatesOf(
  candidates: readonly Candidate[],
  accepted: readonly Candidate[],
): ReadonlyMap<string, number> {
  const duplicates = new Map<string, number>();
  if (accepted.length === candidates.length) return duplicates;
  const positions = new Set(accepted.map(({ index }) => index));
  for (const { index, event } of candidates)
    if (!positions.has(index)) duplicates.set(event.cloud, (duplicates.get(event.cloud) ?? 0) + 1);
  return duplicates;
}
