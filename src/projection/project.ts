/**
 * Folding one batch's new events into rows. New resources cost one write, known ones one; an event that comes
 * late replays its resource's history, and only that one.
 */
import type { Transaction } from "../database/connection.ts";
import { compareFoldOrder, type FoldEvent, type FoldedRow, type Place, step } from "../timeline/fold.ts";
import { compareKeys, type KeyedEvent, pagesOfHistories } from "./histories.ts";
import { insertRows, type KeyedRow, keyOf, type LocalKey, lockRows, updateRows } from "./queries.ts";

/** The new events of one resource, in fold order. */
interface News extends LocalKey {
  readonly events: readonly FoldEvent[];
}

/** Events by their resource, each list in fold order. */
function byResource(events: readonly KeyedEvent[]): Map<string, News> {
  const grouped = new Map<string, LocalKey & { events: FoldEvent[] }>();
  for (const { resourceType, resourceId, event } of events) {
    const key = keyOf({ resourceType, resourceId });
    const group = grouped.get(key);
    if (group === undefined) grouped.set(key, { resourceType, resourceId, events: [event] });
    else group.events.push(event);
  }
  for (const { events: list } of grouped.values()) {
    if (list.length > 1) list.sort(compareFoldOrder);
  }
  return grouped;
}

function foldOnto(row: FoldedRow | null, events: readonly FoldEvent[]): FoldedRow {
  let folded = row;
  for (const event of events) folded = step(folded, event);
  if (folded === null) throw new Error("a resource without events has no row");
  return folded;
}

function newestOf(row: FoldedRow): Place {
  return { timestamp: row.lastEventAt, receivedAt: row.lastReceivedAt, eventId: row.lastEventId };
}

/**
 * Projects the events that a transaction has just stored for one cloud.
 *
 * Locks are taken in one order everywhere: new rows sorted, then known rows sorted. A row that isn't there yet
 * has no history but this batch's, because every batch writes both or neither.
 *
 * @param known the resources that had a row when the transaction began: for those no insert is tried
 * @returns how many histories were replayed
 */
export async function projectEvents(
  tx: Transaction,
  cloud: string,
  events: readonly KeyedEvent[],
  known: ReadonlySet<string>,
): Promise<number> {
  const news = byResource(events);
  if (news.size === 0) return 0;
  const asNew: KeyedRow[] = [];
  for (const [key, { resourceType, resourceId, events: list }] of news) {
    if (!known.has(key)) asNew.push({ resourceType, resourceId, row: foldOnto(null, list) });
  }
  const inserted = asNew.length === 0 ? new Set<string>() : await insertRows(tx, cloud, asNew);
  let waiting: LocalKey[] = [];
  for (const [key, resource] of news) if (!inserted.has(key)) waiting.push(resource);
  let replays = 0;
  while (waiting.length > 0) {
    const rows = await lockRows(tx, cloud, waiting);
    replays += await projectOnto(tx, cloud, rows, news);
    const locked = new Set(rows.map(keyOf));
    const vanished = waiting.filter((key) => !locked.has(keyOf(key)));
    if (vanished.length === 0) break;
    // Only a rebuild that clears damage away removes a row; the resource has a history now, so it gets one again.
    replays += vanished.length;
    const restored = await insertRows(tx, cloud, await replay(tx, cloud, vanished));
    waiting = vanished.filter((key) => !restored.has(keyOf(key)));
  }
  return replays;
}

/** Folds the new events onto locked rows; gives how many histories had to be replayed. */
async function projectOnto(
  tx: Transaction,
  cloud: string,
  rows: readonly KeyedRow[],
  news: ReadonlyMap<string, News>,
): Promise<number> {
  const changed: KeyedRow[] = [];
  const late: LocalKey[] = [];
  for (const { resourceType, resourceId, row } of rows) {
    const fresh = news.get(keyOf({ resourceType, resourceId }))?.events ?? [];
    const first = fresh[0];
    if (first === undefined) continue;
    if (compareFoldOrder(first, newestOf(row)) > 0) {
      changed.push({ resourceType, resourceId, row: foldOnto(row, fresh) });
    } else late.push({ resourceType, resourceId });
  }
  if (late.length > 0) changed.push(...(await replay(tx, cloud, late)));
  if (changed.length > 0) await updateRows(tx, cloud, changed);
  return late.length;
}

/** The rows that the stored histories of the keys fold into; a key without a history gives none. */
export async function replay(tx: Transaction, cloud: string, keys: readonly LocalKey[]): Promise<KeyedRow[]> {
  const rows: KeyedRow[] = [];
  let open: KeyedRow | null = null;
  for await (const page of pagesOfHistories(tx, cloud, keys, true)) {
    for (const { resourceType, resourceId, event } of page) {
      if (open !== null && compareKeys(open, { resourceType, resourceId }) === 0) {
        open = { resourceType, resourceId, row: step(open.row, event) };
        continue;
      }
      if (open !== null) rows.push(open);
      open = { resourceType, resourceId, row: step(null, event) };
    }
  }
  if (open !== null) rows.push(open);
  return rows;
}
