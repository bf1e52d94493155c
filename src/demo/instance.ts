/** A Tally that is thrown away: what `serve` starts, in a directory of its own. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueApiToken, issueCredential } from "../access/credentials.ts";
import { type Instance, startInstance } from "../commands/instance.ts";
import { readSettings } from "../settings.ts";
import { createLogger } from "../telemetry/log.ts";
import type { World } from "./openstack/world.ts";
import { startRecordedCloud } from "./recorded-cloud.ts";
import type { Access } from "./report.ts";
import { SAMPLE_CLOUD, SAMPLE_PLATFORM } from "./sample.ts";
import { QUIET } from "./second-act.ts";

/** A running throwaway, and the cloud that it reconciles. */
export interface Throwaway extends Access {
  readonly internalToken: string;
  readonly world: World;
  stop(): Promise<void>;
}

/** Makes a directory for a throwaway. It goes with the process, whatever way that ends (but SIGKILL). */
export function makePlace(): { readonly directory: string; remove(): void } {
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
 * @throws what `startInstance` throws
 */
export async function startThrowaway(directory: string, signal: AbortSignal): Promise<Throwaway> {
  const settings = readSettings({
    HOME: directory,
    TALLY_DATA_DIR: join(directory, "data"),
    TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
    TALLY_REPORTING_HTTP_PORT: "0",
    TALLY_LOG_LEVEL: "WARN",
    // The cloud's clock is not this machine's.
    TALLY_REPORTING_SYNC_ALLOW_AT: "true",
    TALLY_REPORTING_SYNC_INTERVAL_S: "0",
  });
  // stdout is the demo's own.
  const log = createLogger(settings.logLevel, (line) => process.stderr.write(line));
  const cloud = startRecordedCloud(directory, QUIET);
  let instance: Instance;
  try {
    instance = await startInstance(settings, log, signal, [cloud.configured]);
  } catch (error) {
    await cloud.stop();
    throw error;
  }
  const stop = async () => {
    await instance.stop();
    await cloud.stop();
  };
  const { db, settings: own } = instance.services;
  const description = "tally demo";
  try {
    const collector = { platform: SAMPLE_PLATFORM, cloud: SAMPLE_CLOUD, description };
    const admin = { role: "admin", projectIds: [], description } as const;
    return {
      url: instance.listening.url,
      ingestToken: (await issueCredential(db, collector, description)).token,
      adminToken: (await issueApiToken(db, admin, description)).token,
      internalToken: own.auth.internalToken ?? "",
      world: cloud.world,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
