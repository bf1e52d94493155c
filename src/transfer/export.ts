/** Writing a stream: everything that can't be derived, as of one moment. */
import type { Database, Transaction } from "../database/connection.ts";
import { migrationStatus } from "../database/migrations.ts";
import { snapshot } from "../database/snapshot.ts";
import { type Lines, LinesFromCopy } from "./copy-text.ts";
import {
  blockLine,
  endLine,
  FORMAT,
  firstLink,
  formatSum,
  headerLine,
  nextLink,
  type StreamHeader,
  sha256,
  type TableContent,
} from "./format.ts";
import {
  carriedTables,
  copyOut,
  countRows,
  importUnfinished,
  snapshotInstant,
  spellForStream,
} from "./queries.ts";
import type { CarriedTable } from "./tables.ts";

/** What an export has written. */
export interface Exported {
  readonly tables: ReadonlyMap<string, TableContent>;
}

/** Who wants to know how far it is: once with the number of rows to come, then with each block's. */
export interface TransferProgress {
  total(rows: number): void;
  rows(count: number): void;
}

/** How much a block holds: so many rows or bytes, and at most one row more. */
export interface BlockSize {
  readonly rows: number;
  readonly bytes: number;
}

/** For whoever doesn't. */
export const SILENT: TransferProgress = { total: () => {}, rows: () => {} };

/** A table's rows as lines of JSON, block by block, and what it holds by the end. */
export async function* linesOf(
  tx: Transaction,
  table: CarriedTable,
  size: BlockSize = USUAL,
): AsyncGenerator<Lines, TableContent, undefined> {
  const lines = new LinesFromCopy(table.columns, size.rows, size.bytes);
  let rows = 0;
  let sum = 0n;
  const counted = (block: Lines): Lines => {
    rows += block.rows;
    sum += block.sum;
    return block;
  };
  for await (const chunk of copyOut(tx, table)) {
    for (const block of lines.push(chunk)) yield counted(block);
  }
  const rest = lines.end();
  if (rest !== null) yield counted(rest);
  return { rows, sum: formatSum(sum) };
}

/** Large enough to compress well, small enough to be done again. */
const USUAL: BlockSize = { rows: 10_000, bytes: 2 << 20 };

const ENCODER = new TextEncoder();

/**
 * Writes the whole stream, uncompressed, in parts that each make a good frame. Memory holds a few blocks, however
 * many rows there are; whatever is written to the database meanwhile is not in it. A database of an older schema is
 * written as it is: the catalog says which columns there are, and the stream names the schema that they fit.
 * @param madeBy this Tally's version
 * @param write takes the parts in their order; a part is written before the next one is made
 * @throws an Error when an import into this database was never ended, and for a schema that this Tally doesn't know
 */
export async function exportAll(
  db: Database,
  madeBy: string,
  write: (parts: AsyncIterable<Uint8Array>) => Promise<void>,
  progress: TransferProgress = SILENT,
  size: BlockSize = USUAL,
): Promise<Exported> {
  return await snapshot(db, async (tx) => {
    await spellForStream(tx);
    if (await importUnfinished(tx))
      throw new Error("an import into this database hasn't ended: run tally import again first");
    const schema = await schemaOf(tx);
    const tables = new Map<string, TableContent>();
    await write(parts(tx, { madeBy, schema, size }, tables, progress));
    return { tables };
  });
}

/**
 * The newest migration that the database has, with all before it.
 * @throws an Error of one line for a history of migrations that isn't the beginning of this Tally's
 */
async function schemaOf(tx: Transaction): Promise<number> {
  const lines = await migrationStatus(tx);
  const has = (state: (typeof lines)[number]["state"]) => lines.some((line) => line.state === state);
  if (has("unknown"))
    throw new Error("the database's schema is newer than this Tally: export it with the newer one");
  const applied = lines.filter(({ state }) => state === "applied");
  if (has("edited") || lines.slice(0, applied.length).some(({ state }) => state !== "applied"))
    throw new Error("the database's migrations aren't this Tally's: see tally migrate status");
  const newest = applied.at(-1);
  if (newest === undefined) throw new Error("the database has no schema: there is nothing to export");
  return newest.version;
}

async function* parts(
  tx: Transaction,
  { madeBy, schema, size }: { madeBy: string; schema: number; size: BlockSize },
  contents: Map<string, TableContent>,
  progress: TransferProgress,
): AsyncGenerator<Uint8Array> {
  const carried = await carriedTables(tx);
  const tables: (CarriedTable & { rows: number })[] = [];
  for (const table of carried) tables.push({ ...table, rows: await countRows(tx, table.name) });
  progress.total(tables.reduce((sum, { rows }) => sum + rows, 0));
  const at = await snapshotInstant(tx);
  const resources = await countRows(tx, "current_resources");
  const header: StreamHeader = { format: FORMAT, schema, madeBy, at, resources, tables };
  const first = headerLine(header);
  yield ENCODER.encode(`${first}\n`);
  let link = firstLink(header);
  let blocks = 0;
  for (const table of tables) {
    const lines = linesOf(tx, table, size);
    for (;;) {
      const next = await lines.next();
      if (next.done === true) {
        contents.set(table.name, next.value);
        break;
      }
      const { bytes, rows } = next.value;
      link = nextLink(link, table.name, bytes);
      blocks++;
      const head = blockLine({ block: blocks, table: table.name, rows, bytes: bytes.length, sha256: link });
      yield Buffer.concat([ENCODER.encode(`${head}\n`), bytes]);
      progress.rows(rows);
    }
  }
  yield ENCODER.encode(`${endLine({ blocks, tables: contents, headerSha256: sha256(first) }, link)}\n`);
}
