/**
 * Replaying history into rows, a bounded portion of the resources at a time, while ingest goes on. Each portion's
 * rows are first compared with its histories as of one moment, without a lock: where the projection is sound, nothing
 * is written and nobody waits. Only what differs is locked, replayed once more and written.
 */
import { amendAudit, openAudit } from "../access/audit.ts";
import type { Database, Transaction } from "../database/connection.ts";
import { snapshot } from "../database/snapshot.ts";
import { transaction } from "../database/transaction.ts";
import { canonicalJson } from "../event/json-text.ts";
import { type FoldedRow, step } from "../timeline/fold.ts";
import { replay } from "./project.ts";
import { insertRows, type KeyedRow, keyOf, type LocalKey, lockRows, updateRows } from "./queries.ts";
import {
  type CloudType,
  endOfPortion,
  keepAllLivingStates,
  nextType,
  type Portion,
  pagesOfPortion,
  type RebuildFilter,
  removeRowsWithoutHistory,
  rowsOfPortion,
} from "./rebuild-queries.ts";

/** Resources of one snapshot: it is soon over, so that it holds up no vacuum. */
const RESOURCES_A_PORTION = 2_000;
/** Resources that one transaction writes, so that it locks few rows and not for long. */
const RESOURCES_A_WRITE = 500;
/** While the database reads one portion, another is folded here. */
const PORTIONS_AT_A_TIME = 2;

/** What a portion's rows lack. */
interface Findings {
  /** Resources that have a history. */
  readonly replayed: number;
  /** What the histories without a row fold into. */
  readonly missing: readonly KeyedRow[];
  /** Resources whose row is not what their history folds into. */
  readonly differing: readonly LocalKey[];
  /** Ids of rows without a history. */
  readonly orphaned: readonly string[];
}

/**
 * Rebuilds the rows of every resource that the filter lets through. Rows that already are what their history
 * folds into are not written again. One audit row tells of the rebuild; it lands with the first rows that are written,
 * or at the end, and counts up with each further ones.
 *
 * @param actor who asked, for the audit log
 * @param onProgress called after each portion with the number of resources replayed so far
 * @returns how many resources were replayed
 */
export async function rebuild(
  db: Database,
  actor: string,
  filter: RebuildFilter,
  onProgress: (replayed: number) => void = () => {},
): Promise<number> {
  const account = new Account(db, actor, filter);
  const portions = portionsOf(db, filter);
  let failed = false;
  const worker = async () => {
    for (let next = await portions.next(); !next.done && !failed; next = await portions.next()) {
      try {
        const portion = next.value;
        const findings = await snapshot(db, (tx) => compare(tx, portion));
        await account.repair(portion, findings);
        onProgress(account.rebuilt);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: PORTIONS_AT_A_TIME }, worker));
  for (const end of ended) if (end.status === "rejected") throw end.reason;
  await transaction(db, keepAllLivingStates);
  await account.close();
  return account.rebuilt;
}

/** All portions that the filter lets through, in key order. */
async function* portionsOf(db: Database, filter: RebuildFilter): AsyncGenerator<Portion, undefined> {
  let last: CloudType = { cloud: filter.cloud ?? "", resourceType: "" };
  for (;;) {
    const type = await nextType(db, last);
    if (type === null || (filter.cloud !== null && type.cloud !== filter.cloud)) return;
    last = type;
    if (filter.resourceType !== null && type.resourceType !== filter.resourceType) continue;
    for (let after = ""; ; ) {
      const upTo = await endOfPortion(db, type, after, RESOURCES_A_PORTION);
      if (upTo === null) break;
      yield { ...type, after, upTo };
      after = upTo;
    }
  }
}

/** Folds a portion's histories and looks for what its rows lack, all as of one moment. */
async function compare(tx: Transaction, portion: Portion): Promise<Findings> {
  const { resourceType } = portion;
  const rows = new Map((await rowsOfPortion(tx, portion)).map(({ resourceId, row }) => [resourceId, row]));
  const missing: KeyedRow[] = [];
  const differing: LocalKey[] = [];
  let replayed = 0;
  const finish = (resourceId: string, folded: FoldedRow) => {
    replayed++;
    const row = rows.get(resourceId);
    rows.delete(resourceId);
    if (row === undefined) missing.push({ resourceType, resourceId, row: folded });
    else if (!sameRow(row, folded)) differing.push({ resourceType, resourceId });
  };
  let reading: string | null = null;
  let folded: FoldedRow | null = null;
  for await (const page of pagesOfPortion(tx, portion)) {
    for (const { resourceId, event } of page) {
      if (reading !== resourceId) {
        if (reading !== null && folded !== null) finish(reading, folded);
        reading = resourceId;
        folded = null;
      }
      folded = step(folded, event);
    }
  }
  if (reading !== null && folded !== null) finish(reading, folded);
  return { replayed, missing, differing, orphaned: [...rows.keys()] };
}

/** What a rebuild has done so far. What it writes and what its audit row says of it land together. */
class Account {
  readonly #db: Database;
  readonly #actor: string;
  readonly #filter: RebuildFilter;
  #audit: string | null = null;
  #removed = 0;
  #writing: Promise<void> = Promise.resolve();
  rebuilt = 0;

  constructor(db: Database, actor: string, filter: RebuildFilter) {
    this.#db = db;
    this.#actor = actor;
    this.#filter = filter;
  }

  /** Puts a portion right, one after the other: the audit row counts up. */
  async repair(portion: Portion, findings: Findings): Promise<void> {
    const { missing, differing, orphaned } = findings;
    const written = this.#writing.then(async () => {
      for (const rows of slices(missing)) {
        let inserted = 0;
        await this.#write(findings, async (tx) => {
          inserted = await insertRows(tx, portion.cloud, rows);
          return 0;
        });
        // A row that is there by now was made by ingest since, of what ingest saw. It is replayed in a transaction of
        // its own: what is there is locked before new rows go in, everywhere.
        if (inserted < rows.length)
          await this.#write(findings, (tx) => writeDiffering(tx, portion.cloud, rows));
      }
      for (const keys of slices(differing))
        await this.#write(findings, (tx) => writeDiffering(tx, portion.cloud, keys));
      for (const ids of slices(orphaned))
        await this.#write(findings, async (tx) => {
          const removed = await removeRowsWithoutHistory(tx, portion, ids);
          // Ingest may just have given some of them a history, on top of what they were.
          const { cloud, resourceType } = portion;
          const kept = ids.map((resourceId) => ({ resourceType, resourceId }));
          if (removed < ids.length) await writeDiffering(tx, cloud, kept);
          return removed;
        });
      this.rebuilt += findings.replayed;
    });
    // The next portion is written after this one, and is none of its failure.
    this.#writing = written.catch(() => {});
    await written;
  }

  /** Tells of the end. */
  async close(): Promise<void> {
    this.#audit = await transaction(this.#db, (tx) => this.#record(tx, this.rebuilt, this.#removed, true));
  }

  async #write(findings: Findings, work: (tx: Transaction) => Promise<number>): Promise<void> {
    const done = await transaction(this.#db, async (tx) => {
      const removed = this.#removed + (await work(tx));
      return { removed, audit: await this.#record(tx, this.rebuilt + findings.replayed, removed, false) };
    });
    this.#audit = done.audit;
    this.#removed = done.removed;
  }

  async #record(tx: Transaction, rebuilt: number, removed: number, completed: boolean): Promise<string> {
    const { cloud, resourceType } = this.#filter;
    const details = {
      ...(cloud === null ? {} : { cloud }),
      ...(resourceType === null ? {} : { resource_type: resourceType }),
      rebuilt,
      removed,
      completed,
    };
    if (this.#audit === null) {
      const action = "projection.rebuild";
      const entry = { actor: this.#actor, action, objectType: "projection", objectId: cloud ?? "", details };
      return await openAudit(tx, entry);
    }
    await amendAudit(tx, this.#audit, details);
    return this.#audit;
  }
}

function* slices<T>(list: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < list.length; from += RESOURCES_A_WRITE)
    yield list.slice(from, from + RESOURCES_A_WRITE);
}

/**
 * Locks the rows before their histories are read, so that no event slips between.
 * @returns how many rows were removed: none
 */
async function writeDiffering(tx: Transaction, cloud: string, keys: readonly LocalKey[]): Promise<number> {
  const locked = new Map((await lockRows(tx, cloud, keys)).map((row) => [keyOf(row), row.row]));
  const changed = (await replay(tx, cloud, keys)).filter((replayed) => {
    const row = locked.get(keyOf(replayed));
    return row !== undefined && !sameRow(row, replayed.row);
  });
  if (changed.length > 0) await updateRows(tx, cloud, changed);
  return 0;
}

/** Whether two rows say the same; sizes as values, not as texts. */
function sameRow(a: FoldedRow, b: FoldedRow): boolean {
  return (
    a.platform === b.platform &&
    a.projectId === b.projectId &&
    a.state === b.state &&
    (a.size === b.size || canonicalJson(a.size) === canonicalJson(b.size)) &&
    a.createdAt === b.createdAt &&
    a.deletedAt === b.deletedAt &&
    a.firstEventAt === b.firstEventAt &&
    a.lastEventAt === b.lastEventAt &&
    a.lastReceivedAt === b.lastReceivedAt &&
    a.lastEventId === b.lastEventId &&
    a.lastEventType === b.lastEventType
  );
}
