/** A whole Tally in this process: database, app, listener. `serve` keeps one until it is told to stop. */

import { createApp } from "../app.ts";
import type { Database } from "../database/connection.ts";
import { type EmbeddedDatabase, openEmbedded } from "../database/embedded/embedded.ts";
import { refusingWrites, roomFinding } from "../database/embedded/room.ts";
import { faultOf } from "../database/faults.ts";
import { migrateUp } from "../database/migrations.ts";
import { openWatchedPool } from "../database/watched-pool.ts";
import { instantFromMicros } from "../event/instant.ts";
import { type Listening, listen } from "../http/listen.ts";
import type { Services } from "../http/services.ts";
import type { ConfiguredCloud } from "../reconcile/adapter.ts";
import { startScheduler } from "../reconcile/scheduler.ts";
import type { Settings } from "../settings.ts";
import type { Logger } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { internalTokenOf } from "./internal-token.ts";

/** What is in flight when Tally stops has this long to end. */
const GRACE_SECONDS = 10;
/** How often an unreachable database is tried for its pending migration. */
const MIGRATE_AGAIN_MS = 5_000;

/** A running Tally. */
export interface Instance {
  readonly services: Services;
  readonly listening: Listening;
  /** Settles when the embedded PostgreSQL ends by itself; never with an external one, nor after `stop`. */
  readonly failed: Promise<void>;
  /** Stops listening, ends what is in flight and what is run (10 s at most), closes the pool, stops the embedded server. */
  stop(): Promise<void>;
}

function wallClock() {
  return instantFromMicros(`${Date.now()}000`);
}

/**
 * Starts a Tally. An external database that is down is no reason not to start: readiness tells until it is back.
 * @param signal gives up the start
 * @param clouds those that are reconciled
 * @throws an Error of one clear line: the data directory is taken, a migration refused, the address is in use
 */
export async function startInstance(
  settings: Settings,
  log: Logger,
  signal?: AbortSignal,
  clouds: readonly ConfiguredCloud[] = [],
): Promise<Instance> {
  const { url, maxConnections, silenceSeconds } = settings.database;
  let stopping = false;
  const embedded: EmbeddedDatabase | null =
    url === null
      ? await openEmbedded({
          dataDir: settings.dataDir,
          maxConnections,
          role: "serve",
          notice: (message) => log.info(message),
          ...(signal === undefined ? {} : { signal }),
        })
      : null;
  const pool = openWatchedPool(embedded?.target ?? { url: url ?? "" }, {
    maxConnections,
    silenceMs: silenceSeconds * 1000,
    everyMs: silenceSeconds * 200,
    onSilence: () => log.warn("the database gave no sign of life: all connections to it are made anew"),
  });
  const hindrance = () => (embedded === null ? null : roomFinding(settings.dataDir));
  const db = refusingWrites(pool.db, hindrance);
  let endMigration = () => {};
  const close = async () => {
    stopping = true;
    endMigration();
    await pool.close(1);
    await embedded?.stop();
  };
  try {
    if (embedded !== null) await report(migrateUp(pool.db), log);
    else if (settings.database.autoMigrate) endMigration = await migrateOrKeepTrying(pool.db, log);
    const services: Services = {
      db,
      settings: embedded === null ? settings : withInternalToken(settings),
      now: wallClock,
      log,
      metrics: createMetrics(),
      clouds,
      hindrance,
    };
    const listening = listenOrExplain(services);
    const scheduler = startScheduler(services, clouds);
    const failed = new Promise<void>((resolve) => {
      void embedded?.exited.then(() => stopping || resolve());
    });
    const stop = async () => {
      stopping = true;
      await Promise.all([scheduler.stop(GRACE_SECONDS), listening.stop(GRACE_SECONDS)]);
      await close();
    };
    return { services, listening, failed, stop };
  } catch (error) {
    await close();
    throw error;
  }
}

function withInternalToken(settings: Settings): Settings {
  const { mode, internalToken } = settings.auth;
  if (internalToken !== null) return settings;
  const made = internalTokenOf(settings.dataDir, crypto.getRandomValues(new Uint8Array(32)));
  return { ...settings, auth: { mode, internalToken: made } };
}

function listenOrExplain(services: Services): Listening {
  const { host, port } = services.settings.http;
  try {
    return listen(createApp(services), { host, port });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    const why = code === "EADDRINUSE" ? "the port is in use" : code;
    throw new Error(`can't listen on ${host} port ${port}: ${why}`, { cause: error });
  }
}

async function report(migration: Promise<string[]>, log: Logger): Promise<void> {
  const applied = await migration;
  if (applied.length > 0) log.info("migrated", { applied });
}

/** @returns ends the attempts. @throws when the database is there and refuses */
async function migrateOrKeepTrying(db: Database, log: Logger): Promise<() => void> {
  try {
    await report(migrateUp(db), log);
    return () => {};
  } catch (error) {
    if (faultOf(error) !== "unavailable") throw error;
    log.warn("the database can't be reached: it is migrated when it can", { error });
  }
  let timer = setTimeout(tryAgain, MIGRATE_AGAIN_MS);
  async function tryAgain(): Promise<void> {
    try {
      await report(migrateUp(db), log);
    } catch (error) {
      // A refusal stays one: readiness goes on telling it, and a restart tries anew.
      if (faultOf(error) === "unavailable") timer = setTimeout(tryAgain, MIGRATE_AGAIN_MS);
      else log.error("the database can't be migrated", { error });
    }
  }
  return () => clearTimeout(timer);
}
