/**
 * Replaying history into rows, in bounded batches, while ingest goes on. Each batch is a transaction of its own
 * that locks its rows before it reads their histories, so no event slips between.
 */
import { amendAudit, openAudit } from "../access/audit.ts";
import type { Database, Transaction } from "../database/connection.ts";
import { transaction } from "../database/transaction.ts";
import type { ResourceKey } from "../event/event.ts";
import { canonicalJson } from "../event/json-text.ts";
import type { FoldedRow } from "../timeline/fold.ts";
import { replay } from "./project.ts";
import {
  type CountedKey,
  insertRows,
  type KeyedRow,
  keyOf,
  keysWithoutRow,
  lockRows,
  nextResources,
  type RebuildFilter,
  removeRowsWithoutHistory,
  updateRows,
} from "./queries.ts";

/** A batch holds this many resources at most … */
const RESOURCES_A_BATCH = 500;
/** … and, unless one history alone is longer, this many events: memory stays flat. */
const EVENTS_A_BATCH = 20_000;

const BEFORE_ALL: ResourceKey = { cloud: "", resourceType: "", resourceId: "" };

/**
 * Rebuilds the rows of every resource that the filter lets through. Rows that already are what their history
 * folds into are not written again. One audit row tells of the rebuild; it lands with the first batch and
 * counts up with each further one.
 *
 * @param actor who asked, for the audit log
 * @param onProgress called after each batch with the number of resources replayed so far
 * @returns how many resources were replayed
 */
export async function rebuild(
  db: Database,
  actor: string,
  filter: RebuildFilter,
  onProgress: (replayed: number) => void = () => {},
): Promise<number> {
  let replayed = 0;
  let after = BEFORE_ALL;
  let audit: string | null = null;
  const details = (done: boolean, removed = 0) => ({
    ...(filter.cloud === null ? {} : { cloud: filter.cloud }),
    ...(filter.resourceType === null ? {} : { resource_type: filter.resourceType }),
    rebuilt: replayed,
    removed,
    completed: done,
  });
  const record = async (tx: Transaction, done: boolean, removed = 0): Promise<string> => {
    if (audit !== null) {
      await amendAudit(tx, audit, details(done, removed));
      return audit;
    }
    return await openAudit(tx, {
      actor,
      action: "projection.rebuild",
      objectType: "projection",
      objectId: filter.cloud ?? "",
      details: details(done, removed),
    });
  };
  for (;;) {
    const batch = bounded(await nextResources(db, filter, after, RESOURCES_A_BATCH));
    const last = batch.at(-1);
    if (last === undefined) break;
    const before = replayed;
    audit = await transaction(db, async (tx) => {
      await rebuildBatch(tx, last.cloud, batch);
      replayed = before + batch.length;
      return await record(tx, false);
    });
    after = last;
    onProgress(replayed);
  }
  await transaction(db, async (tx) => {
    await record(tx, true, await removeRowsWithoutHistory(tx, filter));
  });
  return replayed;
}

/** Cuts a page to one cloud and to the bound on events; at least one resource stays. */
function bounded(page: readonly CountedKey[]): CountedKey[] {
  const batch: CountedKey[] = [];
  let events = 0;
  for (const key of page) {
    events += key.events;
    if (batch.length > 0 && (key.cloud !== batch[0]?.cloud || events > EVENTS_A_BATCH)) break;
    batch.push(key);
  }
  return batch;
}

async function rebuildBatch(tx: Transaction, cloud: string, keys: readonly ResourceKey[]): Promise<void> {
  // New rows before known ones, each sorted: the order in which ingest locks, too.
  const missing = await keysWithoutRow(tx, cloud, keys);
  if (missing.length > 0) await insertRows(tx, cloud, await replay(tx, cloud, missing));
  const locked = new Map((await lockRows(tx, cloud, keys)).map((row) => [keyOf(row), row.row]));
  const changed: KeyedRow[] = (await replay(tx, cloud, keys)).filter((replayed) => {
    const row = locked.get(keyOf(replayed));
    return row !== undefined && !sameRow(row, replayed.row);
  });
  if (changed.length > 0) await updateRows(tx, cloud, changed);
}

/** Whether two rows say the same; sizes as values, not as texts. */
export function sameRow(a: FoldedRow, b: FoldedRow): boolean {
  return (
    a.platform === b.platform &&
    a.projectId === b.projectId &&
    a.state === b.state &&
    canonicalJson(a.size) === canonicalJson(b.size) &&
    a.createdAt === b.createdAt &&
    a.deletedAt === b.deletedAt &&
    a.firstEventAt === b.firstEventAt &&
    a.lastEventAt === b.lastEventAt &&
    a.lastReceivedAt === b.lastReceivedAt &&
    a.lastEventId === b.lastEventId &&
    a.lastEventType === b.lastEventType
  );
}
