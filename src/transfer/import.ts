/**
 * Reading a stream into an empty database: its tables as they were, then what follows from them. Each block is a
 * transaction of its own that also says how far the import has come, so that one that broke goes on where it stopped.
 */
import { writeAudit } from "../access/audit.ts";
import type { Database } from "../database/connection.ts";
import { MIGRATIONS } from "../database/migration-files.ts";
import { migrateDown, migrateUp, migrationStatus } from "../database/migrations.ts";
import { rebuild } from "../projection/rebuild.ts";
import { copyFromLines, LineFault } from "./copy-text.ts";
import { linesOf, SILENT, type TransferProgress } from "./export.ts";
import { firstLink, type StreamEnd, type StreamHeader, type TableContent } from "./format.ts";
import {
  advance,
  analyze,
  beginImport,
  carriedTables,
  continueSequences,
  copyIn,
  endImport,
  filledTables,
  markVerified,
  type Progress,
  readProgress,
  rowsByTable,
  spellForStream,
} from "./queries.ts";
import { type Block, type StreamReader, StreamRefused } from "./reader.ts";
import type { CarriedTable } from "./tables.ts";

/** A database that a stream can't go into; the message says why, in one line. */
export class ImportRefused extends Error {
  override readonly name = "ImportRefused";
}

/** Who wants to know how far it is. */
export interface ImportProgress {
  readonly rows: TransferProgress;
  /** Comparing what came in with what the stream says. */
  readonly verifying: TransferProgress;
  /** Replaying histories begins: about so many resources. */
  folding(resources: number): void;
  /** So many so far. */
  folded(resources: number): void;
}

/** For whoever doesn't. */
export const UNWATCHED: ImportProgress = {
  rows: SILENT,
  verifying: SILENT,
  folding: () => {},
  folded: () => {},
};

/** What an import has done. */
export interface Imported {
  readonly tables: ReadonlyMap<string, TableContent>;
  /** Blocks that an earlier, interrupted import had brought in. */
  readonly resumedAt: number;
  /** Resources whose row was folded from their history. */
  readonly rebuilt: number;
}

/**
 * Imports a stream. When it returns, the tables hold what the stream's source held, compared by count and checksum,
 * every resource's row is what its history folds into, and the schema is this Tally's.
 * @param actor who imports, for the audit log
 * @throws {ImportRefused} for a database that isn't empty, or holds a part of another stream
 * @throws {StreamRefused} for a stream that is damaged or cut off: what was whole of it stays, and an import of the
 *   whole one goes on behind that
 */
export async function importAll(
  db: Database,
  actor: string,
  reader: StreamReader,
  progress: ImportProgress = UNWATCHED,
): Promise<Imported> {
  const { header } = reader;
  const begun = await prepare(db, header);
  // The database's own spelling: the stream's columns are looked up in it, and found to be of the same type.
  const tables = begun.verified ? [] : await matchTables(db, header);
  progress.rows.total(header.tables.reduce((sum, { rows }) => sum + rows, 0));
  await load(db, reader, begun, tables, progress.rows);
  if (!begun.verified) {
    await verify(db, tables, reader.end, progress.verifying);
    await finishTables(db, tables);
    await markVerified(db);
  }
  await migrateUp(db);
  progress.folding(header.resources);
  const rebuilt = await rebuild(db, actor, { cloud: null, resourceType: null }, progress.folded);
  await db.begin(async (tx) => {
    const details = {
      made_by: header.madeBy,
      made_at: header.at,
      sha256: reader.end.sha256,
      rows: rowsByTable(reader.end.tables),
    };
    await writeAudit(tx, [
      { actor, action: "database.import", objectType: "database", objectId: "", details },
    ]);
    await endImport(tx);
  });
  return { tables: reader.end.tables, resumedAt: begun.blocks, rebuilt };
}

/** Gives the database the schema that the stream's rows fit, unless an import has begun already. */
async function prepare(db: Database, header: StreamHeader): Promise<Progress> {
  const begun = await readProgress(db);
  if (begun !== null) {
    if (begun.schema !== header.schema) throw otherStream();
    return begun;
  }
  refuseFilled(await filledTables(db));
  const lines = await migrationStatus(db);
  const files = MIGRATIONS.filter(({ version }) => version <= header.schema);
  // Empty as it is, nothing is lost on the way back.
  if (lines.some(({ version, state }) => state === "applied" && version > header.schema))
    await migrateDown(db, header.schema);
  await migrateUp(db, files);
  const sha256 = firstLink(header);
  refuseFilled(await beginImport(db, header.schema, sha256));
  const mine = await readProgress(db);
  if (mine === null) throw new Error("the import's own table is gone");
  return mine;
}

function refuseFilled(tables: readonly string[]): void {
  if (tables.length === 0) return;
  throw new ImportRefused(
    `an import goes into an empty database, and this one holds rows already (${tables.join(", ")})`,
  );
}

function otherStream(): ImportRefused {
  return new ImportRefused(
    "this database holds a part of another stream: give the import the stream that it began with, or an empty database",
  );
}

async function matchTables(db: Database, header: StreamHeader): Promise<CarriedTable[]> {
  const own = await carriedTables(db);
  return header.tables.map(({ name, columns }) => {
    const table = own.find((candidate) => candidate.name === name);
    for (const column of columns) {
      const type = table?.columns.find((candidate) => candidate.name === column.name)?.type;
      if (type === column.type) continue;
      throw new StreamRefused(
        `the stream has a column ${name}.${column.name} of type ${column.type}, which the schema has not: ` +
          "it was made by another Tally, or its header is damaged",
      );
    }
    return { name, columns };
  });
}

async function load(
  db: Database,
  reader: StreamReader,
  begun: Progress,
  tables: readonly CarriedTable[],
  progress: TransferProgress,
): Promise<void> {
  let link = firstLink(reader.header);
  let blocks = 0;
  for await (const block of ahead(reader.blocks())) {
    if (block.block === begun.blocks + 1 && link !== begun.sha256) throw otherStream();
    if (block.block > begun.blocks) await store(db, block, link, tables);
    link = block.sha256;
    blocks = block.block;
    progress.rows(block.rows);
  }
  if (blocks < begun.blocks || (blocks === begun.blocks && link !== begun.sha256)) throw otherStream();
}

/** Reads the next one while the last one is being worked on. */
async function* ahead<T>(items: AsyncGenerator<T>): AsyncGenerator<T> {
  const read = () => {
    const next = items.next();
    // Its failure is heard when its turn has come.
    next.catch(() => {});
    return next;
  };
  for (let next = read(); ; ) {
    const { done, value } = await next;
    if (done === true) return;
    next = read();
    yield value;
  }
}

async function store(
  db: Database,
  block: Block,
  before: string,
  tables: readonly CarriedTable[],
): Promise<void> {
  const table = tables.find(({ name }) => name === block.table);
  if (table === undefined) throw new Error(`a block of an unknown table ${block.table}`);
  let bytes: Uint8Array;
  try {
    bytes = copyFromLines(block.lines, table.columns);
  } catch (error) {
    if (!(error instanceof LineFault)) throw error;
    throw new StreamRefused(
      `row ${error.line} of block ${block.block} is no row of table ${block.table}: Tally made no such stream`,
    );
  }
  await db.begin(async (tx) => {
    await spellForStream(tx);
    if (!(await advance(tx, block.block, before, block.sha256)))
      throw new ImportRefused("another import is at work on this database");
    await copyIn(tx, table, bytes);
  });
}

/** Reads all of it back, and compares. */
async function verify(
  db: Database,
  tables: readonly CarriedTable[],
  end: StreamEnd,
  progress: TransferProgress,
): Promise<void> {
  progress.total([...end.tables.values()].reduce((sum, { rows }) => sum + rows, 0));
  await db.begin("isolation level repeatable read read only", async (tx) => {
    await spellForStream(tx);
    for (const table of tables) {
      const lines = linesOf(tx, table);
      let next = await lines.next();
      for (; next.done !== true; next = await lines.next()) progress.rows(next.value.rows);
      const { rows, sum } = next.value;
      const meant = end.tables.get(table.name);
      if (rows === meant?.rows && sum === meant.sum) continue;
      throw new ImportRefused(
        `table ${table.name} doesn't hold what the stream holds: ${rows} rows (checksum ${sum}), ` +
          `${meant?.rows} rows (checksum ${meant?.sum}) in the stream; was something written to it meanwhile?`,
      );
    }
  });
}

async function finishTables(db: Database, tables: readonly CarriedTable[]): Promise<void> {
  await db.begin(async (tx) => {
    for (const table of tables) await continueSequences(tx, table);
  });
  for (const table of tables) await analyze(db, table);
}
