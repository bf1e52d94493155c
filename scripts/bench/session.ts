/** One benchmark's surroundings: the executable on its own database, and one measurement after the other in it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "../../src/database/connection.ts";
import { openPool } from "../../src/database/pool.ts";
import type { Target } from "./contract.ts";
import { median } from "./figures.ts";
import { cpuSeconds, cpuSecondsWithChildren } from "./machine.ts";
import { digest, prepareKnown, reset } from "./statements.ts";
import { type RunningTally, runJob } from "./tally.ts";
import { KNOWN_PER_BATCH } from "./workload.ts";

export type Contestant = Target["kind"];

/** What one run of one contestant gave. */
export interface Measurement {
  readonly contestant: Contestant;
  readonly connections: number;
  readonly batches: number;
  /** Events a second. */
  readonly rate: number;
  /** Median of one batch, in milliseconds. */
  readonly latency: number;
  /** CPU milliseconds a batch, by process. `tally` holds its server's only where that isn't its child. */
  readonly cpu: { readonly tally: number; readonly postgres: number; readonly client: number };
  /** What the tables held afterwards. */
  readonly digest: string;
}

/** What to run. */
export interface Plan {
  readonly contestant: Contestant;
  readonly connections: number;
  readonly batches: number;
  readonly warmup: number;
}

/** Where the contestants of one section go: straight to the server, or through the proxy. */
export interface Route {
  readonly tally: RunningTally;
  readonly databaseUrl: string;
}

/** The server that all contestants share: the executable's own. */
export class Session {
  readonly socketDirectory: string;
  readonly databaseUrl: string;
  readonly db: Database;
  /** The server's process. */
  readonly postmaster: number;

  /** @param tally whose server it is */
  constructor(tally: Pick<RunningTally, "dataDir">) {
    this.socketDirectory = join(tally.dataDir, "run");
    this.databaseUrl = `postgres://tally@/tally?host=${encodeURIComponent(this.socketDirectory)}`;
    this.db = openPool({ url: this.databaseUrl }, { maxConnections: 1, applicationName: "bench" });
    const pidFile = readFileSync(join(tally.dataDir, "database/postmaster.pid"), "utf8");
    this.postmaster = Number(pidFile.split("\n")[0]);
  }

  async serverVersion(): Promise<string> {
    const [row]: { v: string }[] = await this.db`SELECT current_setting('server_version') AS v`;
    return row?.v ?? "";
  }

  /** The settings that decide what a commit is worth, as the server has them. */
  async durability(): Promise<string> {
    const rows: { name: string; setting: string }[] = await this.db`
      SELECT name, current_setting(name) AS setting FROM pg_settings
      WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size') ORDER BY name`;
    return rows.map(({ name, setting }) => `${name}=${setting}`).join(" ");
  }

  /** Makes known resources for so many batches. */
  async prepare(batches: number): Promise<void> {
    await prepareKnown(this.db, batches * KNOWN_PER_BATCH);
  }

  /** One run, from the starting state. */
  async measure(route: Route, plan: Plan): Promise<Measurement> {
    const { contestant, connections, batches, warmup } = plan;
    await reset(this.db);
    const { tally, databaseUrl } = route;
    const target: Target =
      contestant === "api"
        ? { kind: "api", url: tally.url, token: tally.token }
        : { kind: contestant, databaseUrl };
    const cpuNow = () => ({
      tally: cpuSeconds(tally.pid),
      postgres: cpuSecondsWithChildren(this.postmaster),
    });
    let before = cpuNow();
    let after = before;
    const outcome = await runJob(
      { target, connections, batches, warmup, seconds: null },
      {
        started: () => {
          before = cpuNow();
        },
        ended: () => {
          after = cpuNow();
        },
      },
    );
    const perBatch = (seconds: number) => (seconds * 1000) / batches;
    return {
      contestant,
      connections,
      batches,
      rate: outcome.events / outcome.seconds,
      latency: median(outcome.latencies),
      cpu: {
        tally: perBatch(after.tally - before.tally),
        postgres: perBatch(after.postgres - before.postgres),
        client: perBatch(outcome.cpuSeconds),
      },
      digest: await digest(this.db),
    };
  }

  async close(): Promise<void> {
    await this.db.close({ timeout: 0 });
  }
}

/** The median round trip of `SELECT 1`, in milliseconds. */
export async function roundTrip(databaseUrl: string, times: number): Promise<number> {
  const db = openPool({ url: databaseUrl }, { maxConnections: 1, applicationName: "bench" });
  const taken: number[] = [];
  for (let i = 0; i < times; i++) {
    const from = performance.now();
    await db`SELECT 1`;
    taken.push(performance.now() - from);
  }
  await db.close({ timeout: 0 });
  return median(taken);
}
