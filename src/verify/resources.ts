/** Rows against histories: a portion of the resources at a time, each as of one moment. */
import type { Database, Transaction } from "../database/connection.ts";
import type { ResourceKey } from "../event/event.ts";
import { formatInstant, type Instant } from "../event/instant.ts";
import { canonicalJson } from "../event/json-text.ts";
import { placesInState } from "../inventory/origins.ts";
import { compareKeys, pagesOfHistories } from "../projection/histories.ts";
import { keyOf, type LocalKey } from "../projection/queries.ts";
import { type FoldedRow, Folding } from "../timeline/fold.ts";
import { type Report, resourcePath } from "./fault.ts";
import { LifeCheck } from "./lives.ts";
import {
  type CheckedRow,
  misshapenEvents,
  nextCloud,
  nextHistoryKeys,
  nextRowKeys,
  readRows,
} from "./queries.ts";
import { unhurried } from "./unhurried.ts";

/** Resources of one snapshot: it is soon over, so that it holds up no vacuum. */
const RESOURCES_A_PORTION = 500;

const BEFORE_ALL: ResourceKey = { cloud: "", resourceType: "", resourceId: "" };

/** How much was looked at. */
export interface ResourcesChecked {
  readonly resources: number;
  readonly events: number;
}

/**
 * Checks that every row is what its history folds into, that none lacks the other, that intervals cover lives, and
 * that payloads and sizes are objects.
 * @param onProgress called after each portion with the number of resources checked so far
 */
export async function checkResources(
  db: Database,
  report: Report,
  onProgress: (resources: number) => void,
): Promise<ResourcesChecked> {
  let after = BEFORE_ALL;
  let resources = 0;
  let events = 0;
  for (;;) {
    const from: ResourceKey = after;
    const portion = await unhurried(db, async (tx) => {
      const next = await nextPortion(tx, from);
      return next === null
        ? null
        : { ...next, events: await checkPortion(tx, next.cloud, next.keys, report) };
    });
    const last = portion?.keys.at(-1);
    if (portion === null || last === undefined) return { resources, events };
    after = { cloud: portion.cloud, ...last };
    resources += portion.keys.length;
    events += portion.events;
    onProgress(resources);
  }
}

/** The next resources that have a row, a history or both: of one cloud, in key order. Null behind the last one. */
async function nextPortion(
  tx: Transaction,
  { cloud, ...after }: ResourceKey,
): Promise<{ cloud: string; keys: LocalKey[] } | null> {
  const keys = await nextKeys(tx, cloud, after);
  if (keys.length > 0) return { cloud, keys };
  const next = await nextCloud(tx, cloud);
  return next === null ? null : { cloud: next, keys: await nextKeys(tx, next, BEFORE_ALL) };
}

async function nextKeys(tx: Transaction, cloud: string, after: LocalKey): Promise<LocalKey[]> {
  const withEvents = await nextHistoryKeys(tx, cloud, after, RESOURCES_A_PORTION);
  const withRow = await nextRowKeys(tx, cloud, after, RESOURCES_A_PORTION);
  const distinct = new Map([...withEvents, ...withRow].map((key) => [keyOf(key), key]));
  return [...distinct.values()].sort(compareKeys).slice(0, RESOURCES_A_PORTION);
}

/** @returns how many events were folded */
async function checkPortion(
  tx: Transaction,
  cloud: string,
  keys: readonly LocalKey[],
  report: Report,
): Promise<number> {
  const tell = (key: LocalKey, what: string) => report({ where: resourcePath({ cloud, ...key }), what });
  const rows = new Map((await readRows(tx, cloud, keys)).map((row) => [keyOf(row), row]));
  const unfoldable = new Set<string>();
  for (const { resourceType, resourceId, eventId, what, finite } of await misshapenEvents(tx, cloud, keys)) {
    const key = { resourceType, resourceId };
    tell(key, `its event ${JSON.stringify(eventId)} ${what}`);
    if (!finite) unfoldable.add(keyOf(key));
  }
  const foldable = keys.filter((key) => !unfoldable.has(keyOf(key)));
  const seen = new Set<string>();
  const sound: CheckedRow[] = [];
  let events = 0;
  for await (const { key, row, count, faults } of foldedHistories(tx, cloud, foldable)) {
    seen.add(keyOf(key));
    events += count;
    for (const what of faults) tell(key, what);
    const stored = rows.get(keyOf(key));
    if (stored === undefined) tell(key, "it has events, and no row");
    else {
      const found = differences(stored, row);
      for (const what of found) tell(key, what);
      if (found.length === 0) sound.push(stored);
    }
  }
  for (const key of foldable) {
    if (!seen.has(keyOf(key))) tell(key, "it has a row, and no events");
  }
  for (const key of await unlisted(tx, cloud, sound))
    tell(key, "it isn't listed by its state: living_states lacks that");
  return events;
}

/** What lives, and isn't where lists look for what is in its state. */
async function unlisted(tx: Transaction, cloud: string, rows: readonly CheckedRow[]): Promise<LocalKey[]> {
  const looked = new Map<string, boolean>();
  const found: LocalKey[] = [];
  for (const { resourceType, resourceId, row } of rows) {
    if (row.deletedAt !== null) continue;
    const place = JSON.stringify([row.state, resourceType]);
    const listed = looked.get(place) ?? (await isListed(tx, row.state, { cloud, resourceType }));
    looked.set(place, listed);
    if (!listed) found.push({ resourceType, resourceId });
  }
  return found;
}

async function isListed(
  tx: Transaction,
  state: string,
  where: { cloud: string; resourceType: string },
): Promise<boolean> {
  const { clouds } = await placesInState(tx, state, where, 1);
  return clouds === null || clouds.length > 0;
}

/** What one history came to. */
interface FoldedHistory {
  readonly key: LocalKey;
  readonly row: FoldedRow;
  readonly count: number;
  /** What is wrong with its intervals. */
  readonly faults: readonly string[];
}

/** A history that is being read. */
class Reading {
  readonly key: LocalKey;
  readonly folding = new Folding();
  readonly lives = new LifeCheck();
  count = 0;

  constructor({ resourceType, resourceId }: LocalKey) {
    this.key = { resourceType, resourceId };
  }

  finish(): FoldedHistory[] {
    const { row, intervals } = this.folding.folded;
    if (row === null) return [];
    for (const interval of intervals) this.lives.cover(interval);
    return [{ key: this.key, row, count: this.count, faults: this.lives.finish() }];
  }
}

/** The histories of the keys, one after the other, folded as they are read. A key without events gives none. */
async function* foldedHistories(
  tx: Transaction,
  cloud: string,
  keys: readonly LocalKey[],
): AsyncGenerator<FoldedHistory> {
  let open: Reading | null = null;
  for await (const page of pagesOfHistories(tx, cloud, keys, true)) {
    for (const { resourceType, resourceId, event } of page) {
      const key = { resourceType, resourceId };
      if (open !== null && compareKeys(open.key, key) !== 0) {
        yield* open.finish();
        open = null;
      }
      open ??= new Reading(key);
      open.count++;
      open.folding.take(event);
      open.lives.take(event);
    }
    // What a long history has settled is not kept until its end.
    for (const interval of open?.folding.takeSettled() ?? []) open?.lives.cover(interval);
  }
  if (open !== null) yield* open.finish();
}

/** What a row says otherwise than its history, one sentence a column. */
function differences({ row, sizeKind, finite }: CheckedRow, folded: FoldedRow): string[] {
  if (!finite) return ["its row holds an infinite instant"];
  const found: string[] = [];
  if (sizeKind !== "object") found.push(`its row's size is of the JSON type ${sizeKind}`);
  const compare = (column: string, stored: string, expected: string) => {
    if (stored !== expected) found.push(`its row's ${column} is ${stored}, and by its history ${expected}`);
  };
  const texts = ["platform", "projectId", "state", "lastEventId", "lastEventType"] as const;
  for (const member of texts)
    compare(COLUMNS[member], JSON.stringify(row[member]), JSON.stringify(folded[member]));
  const instants = ["createdAt", "deletedAt", "firstEventAt", "lastEventAt", "lastReceivedAt"] as const;
  for (const member of instants) compare(COLUMNS[member], shown(row[member]), shown(folded[member]));
  if (canonicalJson(row.size) !== canonicalJson(folded.size)) compare(COLUMNS.size, row.size, folded.size);
  return found;
}

const COLUMNS: Readonly<Record<keyof FoldedRow, string>> = {
  platform: "platform",
  projectId: "project_id",
  state: "state",
  size: "size",
  createdAt: "created_at",
  deletedAt: "deleted_at",
  firstEventAt: "first_event_at",
  lastEventAt: "last_event_at",
  lastReceivedAt: "last_received_at",
  lastEventId: "last_event_id",
  lastEventType: "last_event_type",
};

function shown(instant: Instant | null): string {
  return instant === null ? "null" : formatInstant(instant);
}
