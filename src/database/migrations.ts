/**
 * The migration runner. Every step is one transaction of its own that first takes an advisory lock and then reads
 * what is applied, so any number of processes may run it at once: each step is done by exactly one of them. The lock
 * belongs to the transaction, not to the session, so it also holds behind a transaction pooler.
 */
import type { Database, Queryable, Transaction } from "./connection.ts";
import { faultOf } from "./faults.ts";
import { MIGRATIONS, type Migration } from "./migration-files.ts";

/** Any number that nothing else locks: "tally" in ASCII. */
const ADVISORY_LOCK = 0x74616c6c79;
/** How long a step may wait for a table that others use. */
const STEP_LOCK_TIMEOUT = "60s";
/** PostgreSQL 15 is the oldest server whose features the schema and the queries rely on. */
const OLDEST_SERVER = 15;

/** A schema that the runner won't touch; the message says why, in one line. */
export class MigrationRefused extends Error {
  override readonly name = "MigrationRefused";
}

/** What the database says of one applied migration. */
interface Applied {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
  readonly applied_at: string;
}

/** One line of `tally migrate status`. `unknown`: applied by a newer Tally. */
export interface MigrationStatus {
  readonly version: number;
  readonly name: string;
  readonly state: "applied" | "pending" | "edited" | "unknown";
  /** RFC 3339, UTC, microseconds; null while pending. */
  readonly appliedAt: string | null;
}

/** What readiness wants to know: only `current` may serve. */
export type SchemaState = "current" | "behind" | "ahead" | "edited";

async function applied(db: Queryable): Promise<Applied[]> {
  const [found] = await db`SELECT to_regclass('schema_migrations') IS NOT NULL AS there`;
  if (found?.there !== true) return [];
  return await db`
    SELECT version, name, checksum,
           to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS applied_at
    FROM schema_migrations ORDER BY version`;
}

function compare(rows: readonly Applied[], files: readonly Migration[]): MigrationStatus[] {
  const lines: MigrationStatus[] = files.map((file) => {
    const row = rows.find((candidate) => candidate.version === file.version);
    if (row === undefined)
      return { version: file.version, name: file.name, state: "pending", appliedAt: null };
    const state = row.checksum === file.checksum && row.name === file.name ? "applied" : "edited";
    return { version: file.version, name: file.name, state, appliedAt: row.applied_at };
  });
  for (const row of rows) {
    if (files.some((file) => file.version === row.version)) continue;
    lines.push({ version: row.version, name: row.name, state: "unknown", appliedAt: row.applied_at });
  }
  return lines.sort((a, b) => a.version - b.version);
}

/** Every migration, known here or applied there, by version. */
export async function migrationStatus(db: Queryable, files = MIGRATIONS): Promise<MigrationStatus[]> {
  return compare(await applied(db), files);
}

/** Whether the database's schema is this binary's. Throws what the database throws when it can't be reached. */
export async function schemaState(db: Queryable, files = MIGRATIONS): Promise<SchemaState> {
  const lines = await migrationStatus(db, files);
  const has = (state: MigrationStatus["state"]) => lines.some((line) => line.state === state);
  if (has("edited")) return "edited";
  if (has("unknown")) return "ahead";
  return has("pending") ? "behind" : "current";
}

function fileName(line: { version: number; name: string }): string {
  return `${String(line.version).padStart(4, "0")}_${line.name}`;
}

/** @throws {MigrationRefused} for a history that this binary doesn't share */
function requireShared(lines: readonly MigrationStatus[]): void {
  const edited = lines.find((line) => line.state === "edited");
  if (edited !== undefined) {
    throw new MigrationRefused(
      `migration ${fileName(edited)} was edited after it was applied: put its file back`,
    );
  }
  const unknown = lines.find((line) => line.state === "unknown");
  if (unknown !== undefined) {
    throw new MigrationRefused(
      `the database is ahead of this binary: it has migration ${fileName(unknown)}; use the newer Tally`,
    );
  }
  const gap = lines.find(
    (line, at) => line.state === "pending" && lines.slice(at).some((later) => later.state === "applied"),
  );
  if (gap !== undefined) {
    throw new MigrationRefused(`migration ${fileName(gap)} is missing though later ones are applied`);
  }
}

/**
 * Runs `step` in one transaction, holding the lock, with what is applied at that moment. The limits that the pool
 * sets are lifted: an index over years of events takes its time, and so may the process that holds the lock.
 */
async function locked<T>(
  db: Database,
  files: readonly Migration[],
  step: (tx: Transaction, lines: MigrationStatus[]) => Promise<T>,
): Promise<T> {
  return await db.begin(async (tx) => {
    await tx`SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)`;
    await tx`SELECT pg_advisory_xact_lock(${ADVISORY_LOCK}::bigint)`;
    await tx`SELECT set_config('lock_timeout', ${STEP_LOCK_TIMEOUT}, true)`;
    const lines = compare(await applied(tx), files);
    requireShared(lines);
    return await step(tx, lines);
  });
}

/** Says which file failed. A lost connection stays what it is: it says nothing about the file. */
function failed(file: Migration, direction: "up" | "down", error: unknown): unknown {
  if (faultOf(error) === "unavailable" || !(error instanceof Error)) return error;
  return new MigrationRefused(`migration ${fileName(file)} (${direction}) failed: ${error.message}`, {
    cause: error,
  });
}

async function requireServer(db: Database): Promise<void> {
  const [row] = await db`SELECT current_setting('server_version_num')::int / 10000 AS major`;
  const major: unknown = row?.major;
  if (typeof major !== "number" || major < OLDEST_SERVER) {
    throw new MigrationRefused(
      `PostgreSQL ${String(major)} is too old: Tally needs ${OLDEST_SERVER} or newer`,
    );
  }
}

/**
 * Applies what is pending, oldest first.
 * @returns the names of those that this call applied
 * @throws {MigrationRefused} for an edited, newer or gapped history, a failing file, a server older than 15
 */
export async function migrateUp(db: Database, files = MIGRATIONS): Promise<string[]> {
  await requireServer(db);
  const done: string[] = [];
  for (;;) {
    const name = await locked(db, files, async (tx, lines) => {
      const next = lines.find((line) => line.state === "pending");
      const file = files.find((candidate) => candidate.version === next?.version);
      if (file === undefined) return null;
      try {
        await tx.unsafe(`
          CREATE TABLE IF NOT EXISTS schema_migrations (
            version    integer PRIMARY KEY,
            name       text NOT NULL,
            checksum   text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
          )`);
        await tx.unsafe(file.up);
      } catch (error) {
        throw failed(file, "up", error);
      }
      await tx`
        INSERT INTO schema_migrations (version, name, checksum)
        VALUES (${file.version}, ${file.name}, ${file.checksum})`;
      return fileName(file);
    });
    if (name === null) return done;
    done.push(name);
  }
}

/**
 * Takes the schema back to version `to` (0: nothing is left but the runner's own table), newest first. What the
 * dropped tables held is gone: the caller has asked for consent.
 * @returns the names of those that this call took back
 * @throws {MigrationRefused} as `migrateUp`
 */
export async function migrateDown(db: Database, to: number, files = MIGRATIONS): Promise<string[]> {
  const done: string[] = [];
  for (;;) {
    const name = await locked(db, files, async (tx, lines) => {
      const newest = lines.findLast((line) => line.state === "applied" && line.version > to);
      const file = files.find((candidate) => candidate.version === newest?.version);
      if (file === undefined) return null;
      try {
        await tx.unsafe(file.down);
      } catch (error) {
        throw failed(file, "down", error);
      }
      await tx`DELETE FROM schema_migrations WHERE version = ${file.version}`;
      return fileName(file);
    });
    if (name === null) return done;
    done.push(name);
  }
}
