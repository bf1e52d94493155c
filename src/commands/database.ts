/** The database that the settings name, for as long as one command needs it. */
import type { Database } from "../database/connection.ts";
import { openEmbedded } from "../database/embedded/embedded.ts";
import { faultOf } from "../database/faults.ts";
import { migrateUp, type SchemaState, schemaState } from "../database/migrations.ts";
import { openPool } from "../database/pool.ts";
import type { Settings } from "../settings.ts";

/** A command does one thing after the other; a few connections are plenty. */
const COMMAND_CONNECTIONS = 4;

/** How long a serve that has just started may take to migrate its embedded database, in milliseconds. */
const MIGRATION_WAIT_MS = 30_000;

const NOT_CURRENT: Readonly<Record<Exclude<SchemaState, "current">, string>> = {
  behind: "the database's schema is older than this Tally: run tally migrate up",
  ahead: "the database's schema is newer than this Tally: use the newer one",
  edited: "a migration that the database has was edited since: see tally migrate status",
};

/**
 * Runs `work` on the database as it is, whatever its schema. The embedded one is reached through a running serve,
 * or started for the purpose and stopped afterwards.
 * @param existing refuses where there is no embedded database yet, instead of making one
 * @throws what `work` throws; an Error of one clear line when the database can't be had
 */
export async function withRawDatabase<T>(
  settings: Settings,
  work: (db: Database, embeddedIsOurs: boolean) => Promise<T>,
  existing = false,
): Promise<T> {
  const { url, maxConnections } = settings.database;
  const embedded =
    url === null
      ? await openEmbedded({
          dataDir: settings.dataDir,
          maxConnections,
          role: "command",
          existing,
          notice: (message) => console.error(message),
        })
      : null;
  try {
    const target = embedded?.target ?? { url: url ?? "" };
    const db = openPool(target, { maxConnections: COMMAND_CONNECTIONS, applicationName: "tally-cli" });
    try {
      return await work(db, embedded?.ours === true);
    } catch (error) {
      if (faultOf(error) !== "unavailable" || !(error instanceof Error)) throw error;
      throw new Error(`the database can't be reached: ${error.message}`, { cause: error });
    } finally {
      await db.close({ timeout: 1 });
    }
  } finally {
    await embedded?.stop();
  }
}

/**
 * Runs `work` on the database with this binary's schema. The embedded one is migrated where no serve runs; any other
 * is refused unless it has that schema already.
 * @throws as `withRawDatabase`, and an Error when the schema is another one
 */
export async function withDatabase<T>(settings: Settings, work: (db: Database) => Promise<T>): Promise<T> {
  return await withRawDatabase(settings, async (db, embeddedIsOurs) => {
    if (embeddedIsOurs) await migrateUp(db);
    await requireCurrent(settings, db, embeddedIsOurs);
    return await work(db);
  });
}

/**
 * Runs `work`, which only reads, on a database that is there, whatever its schema. Nothing is made and nothing migrated:
 * a mistyped directory must not turn into an empty database of which all is well.
 * @throws as `withRawDatabase`, and an Error that names the directory where there is no database
 */
export async function withExistingDatabase<T>(
  settings: Settings,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  return await withRawDatabase(settings, work, true);
}

/**
 * The same on a database with this binary's schema.
 * @throws as `withExistingDatabase`, and an Error when the schema is another one
 */
export async function withCurrentDatabase<T>(
  settings: Settings,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const checked = async (db: Database, embeddedIsOurs: boolean) => {
    await requireCurrent(settings, db, embeddedIsOurs);
    return await work(db);
  };
  return await withRawDatabase(settings, checked, true);
}

async function requireCurrent(settings: Settings, db: Database, embeddedIsOurs: boolean): Promise<void> {
  const state = await settledState(db, settings.database.url === null && !embeddedIsOurs);
  if (state !== "current") throw new Error(NOT_CURRENT[state]);
}

/** The schema's state; one that is behind may be about to be migrated by the serve that has it. */
async function settledState(db: Database, beingMigrated: boolean): Promise<SchemaState> {
  const until = performance.now() + MIGRATION_WAIT_MS;
  for (;;) {
    const state = await schemaState(db);
    if (state !== "behind" || !beingMigrated || performance.now() > until) return state;
    await Bun.sleep(100);
  }
}
