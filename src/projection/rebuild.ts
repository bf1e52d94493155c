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

/** A batch holds this many resources at most, so that it locks few rows and not for long. */
const RESOURCES_A_BATCH = 500;

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
  const told = {
    ...(filter.cloud === null ? {} : { cloud: filter.cloud }),
    ...(filter.resourceType === null ? {} : { resource_type: filter.resourceType }),
  };
  let audit: string | null = null;
  let after = BEFORE_ALL;
  let rebuilt = 0;
  let removed = 0;
  for (;;) {
    const keys = ofOneCloud(await nextResources(db, filter, after, RESOURCES_A_BATCH));
    const last = keys.at(-1) ?? null;
    const before: ResourceKey = after;
    const done = await transaction(db, async (tx) => {
      const gone = removed + (await removeRowsWithoutHistory(tx, filter, before, last));
      if (last !== null) await rebuildBatch(tx, last.cloud, keys);
      const details = { ...told, rebuilt: rebuilt + keys.length, removed: gone, completed: last === null };
      return { gone, audit: await record(tx, actor, audit, filter, details) };
    });
    audit = done.audit;
    removed = done.gone;
    rebuilt += keys.length;
    onProgress(rebuilt);
    if (last === null) return rebuilt;
    after = last;
  }
}

async function record(
  tx: Transaction,
  actor: string,
  audit: string | null,
  filter: RebuildFilter,
  details: object,
): Promise<string> {
  if (audit === null) {
    const objectId = filter.cloud ?? "";
    return await openAudit(tx, {
      actor,
      action: "projection.rebuild",
      objectType: "projection",
      objectId,
      details,
    });
  }
  await amendAudit(tx, audit, details);
  return audit;
}

/** The keys of the first cloud: a batch's statements name one. */
function ofOneCloud(keys: readonly ResourceKey[]): ResourceKey[] {
  return keys.filter(({ cloud }) => cloud === keys[0]?.cloud);
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
