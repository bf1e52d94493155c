/**
 * Folding one batch's new events into rows. New resources cost one write, known ones one; an event that comes
 * late replays its resource's history, and only that one.
 */
import type { Transaction } from "../database/connection.ts";
import { Overtaken } from "../database/faults.ts";
import type { Statement } from "../database/together.ts";
import { compareFoldOrder, type FoldEvent, type FoldedRow, type Place, step } from "../timeline/fold.ts";
import { compareKeys, type KeyedEvent, pagesOfHistories } from "./histories.ts";
import {
  type Advance,
  advanceRows,
  insertRows,
  type KeyedRow,
  keyOf,
  type LocalKey,
  updateRows,
} from "./queries.ts";

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

/** What is to be written for one batch's events; the statements are the caller's to send. */
export interface Projection {
  /** Nothing is left to be read: these can be sent side by side. */
  readonly writes: readonly Statement[];
  /** How many histories were replayed. */
  readonly replays: number;
}

/**
 * Projects the events that a transaction has just stored for one cloud onto the rows that it has locked.
 *
 * Locks are taken in one order everywhere: all rows that are there, sorted by key, then new rows, sorted. A resource
 * without a row has no history but this batch's, because every batch writes both or neither. A row that another
 * transaction made since the rows were locked would have to be locked out of order: `Overtaken` is thrown then, and
 * the batch begins anew, with that row there.
 *
 * Rows are changed only after the new ones are in. To find a row there, an insert doesn't wait for who has locked it, but
 * for who has changed it; and whoever has changed rows and then waits for a new one could be waiting for that insert.
 *
 * @param locked the rows of the events' resources (and maybe of others), locked
 */
export async function projectEvents(
  tx: Transaction,
  cloud: string,
  events: readonly KeyedEvent[],
  locked: readonly KeyedRow[],
): Promise<Projection> {
  const news = byResource(events);
  const advances: Advance[] = [];
  const late: LocalKey[] = [];
  for (const known of locked) {
    const key = keyOf(known);
    const fresh = news.get(key)?.events ?? [];
    const [first] = fresh;
    if (first === undefined) continue;
    news.delete(key);
    const { resourceType, resourceId, row: before } = known;
    if (compareFoldOrder(first, newestOf(before)) > 0)
      advances.push({ resourceType, resourceId, before, row: foldOnto(before, fresh) });
    else late.push({ resourceType, resourceId });
  }
  const added: KeyedRow[] = [];
  for (const { resourceType, resourceId, events: list } of news.values())
    added.push({ resourceType, resourceId, row: foldOnto(null, list) });

  const replayed = late.length > 0 ? await replay(tx, cloud, late) : [];
  const writes: Statement[] = [];
  if (added.length > 0) writes.push(() => insertAll(tx, cloud, added));
  if (replayed.length > 0) writes.push(() => updateRows(tx, cloud, replayed));
  if (advances.length > 0) writes.push(() => advanceRows(tx, cloud, advances));
  return { writes, replays: late.length };
}

async function insertAll(tx: Transaction, cloud: string, rows: readonly KeyedRow[]): Promise<void> {
  if ((await insertRows(tx, cloud, rows)) < rows.length) throw new Overtaken();
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
