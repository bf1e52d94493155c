/**
 * Small requests share transactions. A collector that sends every event by itself costs a transaction each, and what
 * a transaction costs beside its rows (round trips, the flush to disk, the size rules) is many times what one row
 * does. So of one sender's small requests only a few are under way at a time, and those that come meanwhile are put
 * together into the next transaction.
 *
 * Nothing waits for a timer: where nothing is under way a request goes at once, by itself. A request is answered when
 * the transaction with its events is durable, and what it is answered is what it would be alone: should the database
 * refuse the transaction, each of its requests is taken through by itself.
 */
import { faultOf } from "../database/faults.ts";
import { transaction } from "../database/transaction.ts";
import { itemsOf } from "../event/json-text.ts";
import {
  conclude,
  type HalfScreened,
  type IngestOutcome,
  ingest,
  type Outcome,
  type Pipeline,
  readSizeRules,
  screenItems,
  screenSizes,
  storeIsolating,
} from "./pipeline.ts";
import { type Sender, storeBatch, storeRequests } from "./store.ts";

/** A request of more items or characters has a transaction of its own: it is no small one. */
const SMALL_ITEMS = 50;
const SMALL_CHARACTERS = 64 * 1024;
/** What one transaction takes at most: as many items as one large request. */
const GROUP_ITEMS = 1_000;
const GROUP_CHARACTERS = 2 * 1024 * 1024;
/** So many of one sender's groups are under way at a time: while one is flushed to disk the next is written. */
const UNDER_WAY = 2;

/** Takes one request in; see `ingest`. */
export type Ingest = (sender: Sender, text: string, value: unknown) => Promise<IngestOutcome>;

/** A small request on its way. */
interface Waiting {
  readonly sender: Sender;
  readonly items: number;
  readonly characters: number;
  readonly begun: HalfScreened;
  readonly settle: PromiseWithResolvers<Outcome>;
}

/** One sender's small requests. */
interface Lane {
  readonly waiting: Waiting[];
  underWay: number;
}

/**
 * Ingest for requests that come side by side. Large ones go through as `ingest` takes them.
 * @param underWay how many of one sender's groups may be under way at a time
 */
export function groupedIngest(pipeline: Pipeline, underWay = UNDER_WAY): Ingest {
  /** By sender; a lane without requests is none. */
  const lanes = new Map<string, Lane>();

  const go = (key: string, lane: Lane) => {
    while (lane.underWay < underWay && lane.waiting.length > 0) {
      lane.underWay++;
      takeGroup(pipeline, nextGroup(lane.waiting)).finally(() => {
        lane.underWay--;
        if (lane.underWay === 0 && lane.waiting.length === 0) lanes.delete(key);
        else go(key, lane);
      });
    }
  };

  return async (sender, text, value) => {
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (items.length === 0 || items.length > SMALL_ITEMS || text.length > SMALL_CHARACTERS)
      return await ingest(pipeline, sender, text, value);
    const texts = itemsOf(text).map(({ start, end }) => text.slice(start, end));
    const begun = screenItems(sender, texts, items);
    const settle = Promise.withResolvers<Outcome>();
    const key = `${sender.source} ${sender.actor}`;
    const lane = lanes.get(key) ?? { waiting: [], underWay: 0 };
    lanes.set(key, lane);
    lane.waiting.push({ sender, items: items.length, characters: text.length, begun, settle });
    go(key, lane);
    return conclude(pipeline, sender, await settle.promise);
  };
}

/** Takes the first requests that fit into one transaction off the queue: at least one. */
function nextGroup(waiting: Waiting[]): Waiting[] {
  let items = 0;
  let characters = 0;
  let taken = 0;
  for (const request of waiting) {
    items += request.items;
    characters += request.characters;
    if (taken > 0 && (items > GROUP_ITEMS || characters > GROUP_CHARACTERS)) break;
    taken++;
  }
  return waiting.splice(0, taken);
}

/** Settles every request of the group. Never rejects. */
async function takeGroup(pipeline: Pipeline, group: readonly Waiting[]): Promise<void> {
  const [first] = group;
  if (first === undefined) return;
  const { sender } = first;
  try {
    const rules = await readSizeRules(
      pipeline.db,
      group.flatMap(({ begun }) => begun.passed),
    );
    const screened = group.map(({ begun }) => screenSizes(pipeline, begun, rules));
    const alone = async (n: number) => {
      const own = screened[n];
      if (own === undefined) throw new Error("a request of the group was not screened");
      const outcome = await storeIsolating(pipeline.db, sender, own.screened, storeBatch);
      return { ...outcome, unvalidated: own.unvalidated };
    };
    if (group.length === 1) return first.settle.resolve(await alone(0));
    const requests = screened.map((own) => own.screened);
    try {
      const stored = await transaction(pipeline.db, (tx) => storeRequests(tx, sender, requests));
      for (const [n, { settle }] of group.entries()) {
        const own = screened[n];
        const kept = stored[n];
        if (own === undefined || kept === undefined) throw new Error("a request of the group was lost");
        settle.resolve({ screened: own.screened, stored: kept, unvalidated: own.unvalidated });
      }
    } catch (error) {
      // A database that is away is away for each of them.
      if (faultOf(error) === "unavailable") throw error;
      await each(group, alone);
    }
  } catch (error) {
    // What is settled already stays as it is.
    for (const { settle } of group) settle.reject(error);
  }
}

/**
 * Each request by itself, one after the other, so that the first of two with one event wins. One that has to wait, for
 * a lock say, doesn't hold up those behind it for longer than that.
 */
async function each(group: readonly Waiting[], alone: (n: number) => Promise<Outcome>): Promise<void> {
  for (const [n, { settle }] of group.entries()) {
    await alone(n).then(settle.resolve, settle.reject);
  }
}
