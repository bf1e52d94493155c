/** A Tally that is thrown away: the real server and database in a directory of its own. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueApiToken, issueCredential } from "../access/credentials.ts";
import { type EmbeddedDatabase, openEmbedded } from "../database/embedded/embedded.ts";
import { migrateUp } from "../database/migrations.ts";
import { openPool } from "../database/pool.ts";
import { instantFromMicros } from "../event/instant.ts";
import { createApp } from "../http/app.ts";
import { type Listening, listen } from "../http/listen.ts";
import { readSettings } from "../settings.ts";
import { createLogger } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import type { Access } from "./report.ts";
import { SAMPLE_CLOUD, SAMPLE_PLATFORM } from "./sample.ts";

/** A running throwaway. */
export interface Throwaway extends Access {
  /** Stops everything and removes the directory. */
  stop(): Promise<void>;
}

/** A place that goes with the process, whatever way that ends (but SIGKILL). */
export interface Place {
  readonly directory: string;
  remove(): void;
}

/** Makes the directory that a throwaway lives in. */
export function makePlace(): Place {
  const directory = mkdtempSync(join(tmpdir(), "tally-demo-"));
  // As root the database server runs as another user, who has to get through here; the data itself is 0700.
  chmodSync(directory, 0o755);
  const remove = () => rmSync(directory, { recursive: true, force: true });
  process.once("exit", remove);
  return { directory, remove };
}

/**
 * Starts a Tally in `directory` on a free port of the loopback address, with a collector's credential and an
 * administrator's token. It takes nothing from the environment.
 * @param signal ends the start early
 * @throws {EmbeddedDatabaseError} when its database can't be started
 */
export async function startThrowaway(directory: string, signal: AbortSignal): Promise<Throwaway> {
  const settings = readSettings({
    HOME: directory,
    TALLY_DATA_DIR: join(directory, "data"),
    TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
    TALLY_REPORTING_HTTP_PORT: "0",
    TALLY_LOG_LEVEL: "WARN",
  });
  const { maxConnections } = settings.database;
  let embedded: EmbeddedDatabase | null = null;
  let server: Listening | null = null;
  try {
    embedded = await openEmbedded({
      dataDir: settings.dataDir,
      maxConnections: maxConnections + 5,
      role: "serve",
      signal,
    });
    const db = openPool(embedded.target, { maxConnections });
    await migrateUp(db);
    signal.throwIfAborted();
    const app = createApp({
      db,
      settings,
      now: () => instantFromMicros(`${BigInt(Date.now()) * 1_000n}`),
      // stdout is the demo's own.
      log: createLogger(settings.logLevel, (line) => process.stderr.write(line)),
      metrics: createMetrics(),
    });
    const listening = listen(app, settings.http);
    server = listening;
    const description = "tally demo";
    const [collector, admin] = await Promise.all([
      issueCredential(db, { platform: SAMPLE_PLATFORM, cloud: SAMPLE_CLOUD, description }, description),
      issueApiToken(db, { role: "admin", projectIds: [], description }, description),
    ]);
    const database = embedded;
    return {
      url: listening.url,
      ingestToken: collector.token,
      adminToken: admin.token,
      async stop() {
        await listening.stop(1);
        await db.close({ timeout: 0 });
        await database.stop();
      },
    };
  } catch (error) {
    await server?.stop(0);
    await embedded?.stop();
    throw error;
  }
}
