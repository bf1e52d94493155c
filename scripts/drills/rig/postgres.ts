/** A PostgreSQL that is not Tally's own: the packed one, started beside it, so that it can be broken. */
import { chmodSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "../../../src/database/connection.ts";
import { handOver, runAs, serverAccount } from "../../../src/database/embedded/account.ts";
import { clusterOf, OWNER } from "../../../src/database/embedded/cluster.ts";
import { gone } from "../../../src/database/embedded/process.ts";
import { openPool } from "../../../src/database/pool.ts";
import { must, type Rig, until } from "../drill.ts";
import { preparedPostgres, putCluster } from "./prepared.ts";

const PORT = 5432;
const START_MS = 60_000;
const STOP_MS = 60_000;
/** The backends of a killed server keep its memory for a moment. */
const START_ATTEMPTS = 20;

/** How it ends: without a checkpoint, like a crash; or in order. */
export type Ending = "immediate" | "fast" | "kill";

const SIGNALS = { immediate: "SIGQUIT", fast: "SIGINT", kill: "SIGKILL" } as const;

export class Postgres {
  /** Where its socket is. */
  readonly socketDirectory: string;
  /** For Tally, and for whoever else connects. */
  readonly url: string;
  readonly #home: string;
  readonly #directory: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #settings: Readonly<Record<string, string>>;
  #child: Bun.Subprocess | null = null;

  private constructor(
    directory: string,
    home: string,
    env: Readonly<Record<string, string>>,
    settings: Readonly<Record<string, string>>,
  ) {
    this.#directory = directory;
    this.#home = home;
    this.#env = env;
    this.#settings = settings;
    this.socketDirectory = join(directory, "run");
    this.url = `postgres://${OWNER}@/${OWNER}?host=${encodeURIComponent(this.socketDirectory)}`;
  }

  /** Starts one on a cluster of its own. @param options env reaches the server, for a library that is loaded into it */
  static async start(
    rig: Rig,
    name = "postgres",
    options: {
      readonly env?: Readonly<Record<string, string>>;
      readonly settings?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<Postgres> {
    const directory = join(rig.place, name);
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o755);
    const home = await preparedPostgres(rig);
    await putCluster(rig, directory);
    const settings = { ...options.settings, ...(rig.durable ? {} : { fsync: "off" }) };
    const postgres = new Postgres(directory, home, options.env ?? {}, settings);
    mkdirSync(postgres.socketDirectory, { mode: 0o700 });
    handOver(serverAccount(clusterOf(directory)), postgres.socketDirectory);
    await postgres.start();
    return postgres;
  }

  /** An empty database in the place of whatever was there. */
  async recreate(): Promise<void> {
    const target = { socketDirectory: this.socketDirectory, port: PORT, user: OWNER, database: "postgres" };
    const admin = openPool(target, { maxConnections: 1, applicationName: "drill" });
    await admin.unsafe(`DROP DATABASE IF EXISTS ${OWNER} WITH (FORCE)`);
    await admin.unsafe(`CREATE DATABASE ${OWNER}`);
    await admin.close({ timeout: 1 });
  }

  /** The socket itself, for a proxy. */
  get socket(): string {
    return join(this.socketDirectory, `.s.PGSQL.${PORT}`);
  }

  get pid(): number {
    must(this.#child !== null, "PostgreSQL does not run");
    return this.#child.pid;
  }

  /** A pool; the caller closes it. */
  pool(maxConnections = 2): Database {
    return openPool({ url: this.url }, { maxConnections, applicationName: "drill" });
  }

  /** Starts it and waits until it takes connections. */
  async start(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (await this.#startOnce()) return;
      must(attempt < START_ATTEMPTS, `PostgreSQL does not start: ${this.#lastWords()}`);
      await Bun.sleep(250);
    }
  }

  async #startOnce(): Promise<boolean> {
    const cluster = clusterOf(this.#directory);
    const log = openSync(join(this.#directory, "log"), "a");
    const settings = {
      listen_addresses: "",
      unix_socket_directories: this.socketDirectory,
      unix_socket_permissions: "0700",
      port: String(PORT),
      max_connections: "100",
      ...this.#settings,
    };
    const child = Bun.spawn(
      runAs(serverAccount(cluster), [
        // Behind the change of user: what is loaded into a process belongs to whoever that is then.
        "/usr/bin/env",
        ...Object.entries(this.#env).map(([name, value]) => `${name}=${value}`),
        join(this.#home, "bin/postgres"),
        "-D",
        cluster,
        ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ]),
      { env: {}, cwd: "/", stdin: "ignore", stdout: log, stderr: log, detached: true },
    );
    this.#child = child;
    const file = join(cluster, "postmaster.pid");
    await until("PostgreSQL takes connections", START_MS, () => {
      if (child.exitCode !== null || child.signalCode !== null) return true;
      if (!existsSync(file)) return false;
      const lines = readFileSync(file, "utf8").split("\n");
      return Number(lines[0]) === child.pid && (lines[7] ?? "").trim() === "ready";
    });
    return child.exitCode === null && child.signalCode === null;
  }

  #lastWords(): string {
    return readFileSync(join(this.#directory, "log"), "utf8").slice(-500);
  }

  /** Ends it. @throws {Error} when it doesn't; it is killed then */
  async stop(ending: Ending = "fast"): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    process.kill(child.pid, SIGNALS[ending]);
    const ended = await Promise.race([child.exited.then(() => true), Bun.sleep(STOP_MS).then(() => false)]);
    if (!ended) {
      process.kill(child.pid, SIGNALS.kill);
      throw new Error(`PostgreSQL did not end: ${this.#lastWords()}`);
    }
    await gone(child.pid, 5_000);
  }

  /** Ends every other connection to the database. @returns how many there were */
  async terminateBackends(admin: Database): Promise<number> {
    const rows: unknown[] = await admin`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'drill'`;
    return rows.length;
  }
}
