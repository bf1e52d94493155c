/** The statements of export and import. Names of tables and columns come from the catalog, and are quoted by it. */
import type { Database, Queryable, Transaction } from "../database/connection.ts";
import type { TableContent } from "./format.ts";
import { CARRIED, type CarriedTable, DERIVED, SEEDED } from "./tables.ts";

/** "tally" and one: whoever begins an import holds it. */
const IMPORT_LOCK = 0x74616c6c7a;

/** A name as SQL takes it. */
function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function list(table: CarriedTable): string {
  return table.columns.map(({ name }) => quoted(name)).join(", ");
}

/** The carried tables that exist, in the order of `CARRIED`, with the columns that hold what can't be computed. */
export async function carriedTables(db: Queryable): Promise<CarriedTable[]> {
  const rows: { table: string; name: string; type: string }[] = await db`
    SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, NULL) AS type
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    WHERE c.oid IN (
      SELECT to_regclass(name) FROM json_array_elements_text(${JSON.stringify(CARRIED)}::text::json) AS name)
    ORDER BY a.attnum`;
  return CARRIED.flatMap((name) => {
    const columns = rows
      .filter(({ table }) => table === name)
      .map((row) => ({ name: row.name, type: row.type }));
    return columns.length === 0 ? [] : [{ name, columns }];
  });
}

export async function countRows(db: Queryable, table: string): Promise<number> {
  const [row]: { n: string }[] = await db.unsafe(`SELECT count(*)::text AS n FROM ${quoted(table)}`);
  return Number(row?.n);
}

/** Values are spelled as a stream spells them, for as long as the transaction runs; and it may run long. */
export async function spellForStream(tx: Transaction): Promise<void> {
  await tx`
    SELECT set_config('DateStyle', 'ISO', true), set_config('TimeZone', 'UTC', true),
           set_config('bytea_output', 'hex', true), set_config('statement_timeout', '0', true),
           set_config('synchronize_seqscans', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`;
}

/** A table's rows in COPY's text format, as they lie: events are only ever added, so that is the order they came in. */
export function copyOut(tx: Transaction, table: CarriedTable): AsyncIterable<Uint8Array> {
  return tx.unsafe(`COPY (SELECT ${list(table)} FROM ${quoted(table.name)}) TO STDOUT`).readable();
}

/** Puts rows in, all of them or none. @param bytes of COPY's text format */
export async function copyIn(tx: Transaction, table: CarriedTable, bytes: Uint8Array): Promise<void> {
  const writer = tx
    .unsafe(`COPY ${quoted(table.name)} (${list(table)}) FROM STDIN`)
    .writable()
    .getWriter();
  await writer.write(bytes);
  await writer.close();
}

/** The instant of the transaction's snapshot, RFC 3339. */
export async function snapshotInstant(tx: Transaction): Promise<string> {
  const [row]: { at: string }[] = await tx`
    SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`;
  return row?.at ?? "";
}

/** The tables that hold rows, of those that an import fills or computes, but for what migrations put there. */
export async function filledTables(db: Queryable): Promise<string[]> {
  const filled: string[] = [];
  for (const name of [...CARRIED, ...DERIVED.filter((derived) => derived !== "schema_migrations")]) {
    if (SEEDED.includes(name)) continue;
    const [there] = await db`SELECT to_regclass(${name}) IS NOT NULL AS there`;
    if (there?.there !== true) continue;
    const [row] = await db.unsafe(`SELECT EXISTS (SELECT 1 FROM ${quoted(name)}) AS held`);
    if (row?.held === true) filled.push(name);
  }
  return filled;
}

/** How far an import has come. */
export interface Progress {
  /** The schema that the stream's rows fit. */
  readonly schema: number;
  /** How many blocks are in. */
  readonly blocks: number;
  /** The last one's SHA-256; the first link's before any. */
  readonly sha256: string;
  /** Whether all of it is in and was compared with what the stream says. */
  readonly verified: boolean;
}

/** Whether an import has begun here that hasn't ended. */
export async function importUnfinished(db: Queryable): Promise<boolean> {
  const [row] = await db`SELECT to_regclass('import_progress') IS NOT NULL AS there`;
  return row?.there === true;
}

/** Null where no import has begun. */
export async function readProgress(db: Queryable): Promise<Progress | null> {
  if (!(await importUnfinished(db))) return null;
  const [row]: Progress[] = await db`SELECT schema, blocks, sha256, verified FROM import_progress`;
  return row ?? null;
}

/**
 * Makes the table that remembers how far an import has come, and clears away what migrations put where the stream's
 * rows go. Two imports that begin at once: the second one waits, and finds the first one's.
 * @returns the tables that hold rows; then nothing was done
 */
export async function beginImport(db: Database, schema: number, sha256: string): Promise<string[]> {
  return await db.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${String(IMPORT_LOCK)}::text::bigint)`;
    const filled = await filledTables(tx);
    if ((await importUnfinished(tx)) || filled.length > 0) return filled;
    await tx.unsafe(`
      CREATE TABLE import_progress (
        single   boolean PRIMARY KEY DEFAULT true CHECK (single),
        schema   integer NOT NULL,
        blocks   integer NOT NULL DEFAULT 0,
        sha256   text NOT NULL,
        verified boolean NOT NULL DEFAULT false
      )`);
    await tx`INSERT INTO import_progress (schema, sha256) VALUES (${schema}, ${sha256})`;
    for (const name of SEEDED) await tx.unsafe(`DELETE FROM ${quoted(name)}`);
    return [];
  });
}

/** Counts a block. @returns false where another import has counted it, or one that came after it */
export async function advance(
  tx: Transaction,
  block: number,
  before: string,
  sha256: string,
): Promise<boolean> {
  const rows: unknown[] = await tx`
    UPDATE import_progress SET blocks = ${block}, sha256 = ${sha256}
     WHERE blocks = ${block - 1} AND sha256 = ${before}
    RETURNING blocks`;
  return rows.length === 1;
}

export async function markVerified(db: Queryable): Promise<void> {
  await db`UPDATE import_progress SET verified = true`;
}

/** The end of an import: nothing of it is left but its rows. */
export async function endImport(tx: Transaction): Promise<void> {
  await tx`DROP TABLE import_progress`;
}

/** Numbers that the database hands out itself go on behind the highest that came in. */
export async function continueSequences(tx: Transaction, table: CarriedTable): Promise<void> {
  for (const { name } of table.columns) {
    const [found]: { sequence: string | null }[] = await tx`
      SELECT pg_get_serial_sequence(${quoted(table.name)}, ${name}) AS sequence`;
    if (found === undefined || found.sequence === null) continue;
    await tx.unsafe(
      `SELECT setval($1::text::regclass, max(${quoted(name)})) FROM ${quoted(table.name)} HAVING count(*) > 0`,
      [found.sequence],
    );
  }
}

/** What the planner should know before a million events are replayed. */
export async function analyze(db: Database, table: CarriedTable): Promise<void> {
  await db.begin(async (tx) => {
    await tx`SELECT set_config('statement_timeout', '0', true)`;
    await tx.unsafe(`ANALYZE ${quoted(table.name)}`);
  });
}

/** For the audit log: how many rows came in, by table. */
export function rowsByTable(tables: ReadonlyMap<string, TableContent>): Record<string, number> {
  return Object.fromEntries([...tables].map(([name, { rows }]) => [name, rows]));
}
