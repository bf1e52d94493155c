/** A Tally in a process of its own, which may be killed and started again. */
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { issueApiToken, issueCredential } from "../../../src/access/credentials.ts";
import type { Database } from "../../../src/database/connection.ts";
import { openPool } from "../../../src/database/pool.ts";
import { must, type Rig, until } from "../drill.ts";
import { prepareDataDirectory } from "./prepared.ts";
import { CLOUD, PLATFORM } from "./workload.ts";

const START_MS = 60_000;
const STOP_MS = 60_000;

/** Who the audit log names. */
const ACTOR = "drill";

export const INTERNAL_TOKEN = "internal-token-of-a-drill";

/** How it is set up. */
export interface TallyOptions {
  /** Below the rig's place; also names the log. */
  readonly name?: string;
  /** An absolute path; null: below the rig's place. */
  readonly dataDir?: string;
  /** Null: the embedded database. */
  readonly databaseUrl?: string | null;
  readonly env?: Readonly<Record<string, string>>;
}

export class Tally {
  readonly url: string;
  readonly dataDir: string;
  readonly #rig: Rig;
  readonly #log: string;
  readonly #env: Record<string, string>;
  #child: Bun.Subprocess | null = null;

  private constructor(rig: Rig, port: number, options: TallyOptions) {
    const { name = "tally", databaseUrl = null, env = {} } = options;
    this.#rig = rig;
    this.url = `http://127.0.0.1:${port}`;
    this.dataDir = options.dataDir ?? join(rig.place, name);
    this.#log = join(rig.place, `${name}.log`);
    this.#env = {
      PATH: process.env.PATH ?? "",
      HOME: rig.place,
      TALLY_DATA_DIR: this.dataDir,
      TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
      TALLY_REPORTING_HTTP_PORT: String(port),
      TALLY_REPORTING_INTERNAL_TOKEN: INTERNAL_TOKEN,
      ...(databaseUrl === null
        ? {}
        : { TALLY_REPORTING_DB_URL: databaseUrl, TALLY_REPORTING_AUTO_MIGRATE: "true" }),
      ...env,
    };
  }

  /** Makes one that does not run yet, on a port of its own. */
  static async prepare(rig: Rig, options: TallyOptions = {}): Promise<Tally> {
    const tally = new Tally(rig, await freePort(), options);
    if (!rig.durable && (options.databaseUrl ?? null) === null) await tally.#prepareData();
    return tally;
  }

  /** Makes one, starts it, and waits until it is ready. */
  static async start(rig: Rig, options: TallyOptions = {}): Promise<Tally> {
    const tally = await Tally.prepare(rig, options);
    try {
      await tally.start();
    } catch (error) {
      await tally.kill();
      throw error;
    }
    return tally;
  }

  get pid(): number {
    must(this.#child !== null, "Tally does not run");
    return this.#child.pid;
  }

  get runs(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Everything that it logged. */
  get log(): string {
    return readFileSync(this.#log, "utf8");
  }

  /** Starts it. @returns milliseconds until it was ready */
  async start(): Promise<number> {
    this.launch();
    return await this.ready();
  }

  /** What was unpacked and initialised for another need not be waited for again. */
  async #prepareData(): Promise<void> {
    mkdirSync(this.dataDir, { recursive: true, mode: 0o700 });
    await prepareDataDirectory(this.#rig, this.dataDir);
    // So that Tally takes the directory for its own.
    writeFileSync(join(this.dataDir, "tally.lock"), "");
  }

  /** Starts it and waits for nothing. */
  launch(): void {
    must(!this.runs, "Tally runs already");
    mkdirSync(this.dataDir, { recursive: true, mode: 0o700 });
    const out = openSync(this.#log, "a");
    this.#child = Bun.spawn([...this.#rig.command, "serve"], {
      cwd: this.#rig.place,
      env: this.#env,
      stdin: "ignore",
      stdout: out,
      stderr: out,
    });
  }

  /** Waits until it is ready. @returns the milliseconds that took */
  async ready(milliseconds = START_MS): Promise<number> {
    return await until("Tally is ready", milliseconds, async () => {
      if (!this.runs) throw new Error(`Tally ended by itself: ${this.log.slice(-1500)}`);
      return (await this.readiness()) === 200;
    });
  }

  /** What /readyz answers; null: nothing. */
  async readiness(): Promise<number | null> {
    try {
      return (await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(5_000) })).status;
    } catch {
      return null;
    }
  }

  /** kill -9. @returns when it is gone */
  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.exited;
  }

  /** @returns the exit code, when it ended by itself within the time */
  async ended(milliseconds: number): Promise<number | null> {
    return (await Promise.race([this.#child?.exited, Bun.sleep(milliseconds).then(() => null)])) ?? null;
  }

  /** An orderly end. */
  async stop(): Promise<void> {
    if (!this.runs) return;
    this.#child?.kill("SIGTERM");
    if ((await this.ended(STOP_MS)) === null) {
      await this.kill();
      throw new Error("Tally did not stop");
    }
  }

  /** Runs another command on the same database. @throws {Error} with what it said when it fails */
  async command(...args: string[]): Promise<string> {
    const child = Bun.spawn([...this.#rig.command, ...args], {
      cwd: this.#rig.place,
      env: this.#env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [said, wrong] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    must((await child.exited) === 0, `tally ${args.join(" ")}: ${said}${wrong}`);
    return said.trim();
  }

  /** A collector's credential for the drill's cloud. */
  async credential(): Promise<string> {
    const wanted = { platform: PLATFORM, cloud: CLOUD, description: null };
    return await this.#onDatabase(async (db) => (await issueCredential(db, wanted, ACTOR)).token);
  }

  /** A token that reads everything. */
  async readToken(): Promise<string> {
    const wanted = { role: "read_all", projectIds: [], description: null } as const;
    return await this.#onDatabase(async (db) => (await issueApiToken(db, wanted, ACTOR)).token);
  }

  async #onDatabase<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const url = this.#env.TALLY_REPORTING_DB_URL;
    const db =
      url === undefined ? this.embedded() : openPool({ url }, { maxConnections: 1, applicationName: ACTOR });
    try {
      return await work(db);
    } finally {
      await db.close({ timeout: 0 });
    }
  }

  /** A pool on the embedded database; the caller closes it. */
  embedded(): Database {
    const target = {
      socketDirectory: join(this.dataDir, "run"),
      port: 5432,
      user: "tally",
      database: "tally",
    };
    return openPool(target, { maxConnections: 2, applicationName: "drill" });
  }

  /** The process id of the embedded server. */
  get postmaster(): number {
    return Number(readFileSync(join(this.dataDir, "database/postmaster.pid"), "utf8").split("\n")[0]);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  const listening = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  const address = server.address();
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  await closed.promise;
  must(typeof address === "object" && address !== null, "no port is free");
  return address.port;
}
