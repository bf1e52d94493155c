/** The built executable, started for the benchmark, and load generators against it. */
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Job, linesOf, Outcome, parseLine } from "./contract.ts";
import { CLOUD, PLATFORM } from "./workload.ts";

/** How long a start may take, with unpacking and initialising its database. */
const START_MS = 120_000;
const STOP_MS = 60_000;

/** A running `tally serve`. */
export interface RunningTally {
  readonly pid: number;
  readonly url: string;
  /** Its data directory; with an external database, an empty one. */
  readonly dataDir: string;
  /** A credential for the benchmark's cloud. */
  readonly token: string;
  /** Stops it and removes its directory. */
  stop(): Promise<void>;
}

/** What the executable is told by its environment. Nothing else of ours reaches it. */
function environment(
  dataDir: string,
  databaseUrl: string | null,
  more: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "",
    TALLY_DATA_DIR: dataDir,
    TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
    TALLY_REPORTING_HTTP_PORT: "0",
    ...(databaseUrl === null ? {} : { TALLY_REPORTING_DB_URL: databaseUrl }),
    ...more,
  };
}

/**
 * Starts the executable on a new directory below `place`, on its own database or on the one given.
 * @param more further variables of its environment
 */
export async function startTally(
  executable: string,
  place: string,
  databaseUrl: string | null = null,
  more: Readonly<Record<string, string>> = {},
): Promise<RunningTally> {
  const directory = mkdtempSync(join(place, "tally-bench-"));
  // As root, Tally's database runs as another user, who must get in.
  chmodSync(directory, 0o755);
  const dataDir = join(directory, "data");
  const log = join(directory, "log");
  const env = environment(dataDir, databaseUrl, more);
  const out = openSync(log, "w");
  const child = Bun.spawn([executable, "serve"], { env, stdin: "ignore", stdout: out, stderr: out });
  const stop = async () => {
    child.kill("SIGTERM");
    const ended = await Promise.race([child.exited, Bun.sleep(STOP_MS).then(() => null)]);
    if (ended === null) child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const url = await listening(child, log);
    return { pid: child.pid, url, dataDir, token: await createCredential(executable, env), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function listening(child: Bun.Subprocess, log: string): Promise<string> {
  const until = performance.now() + START_MS;
  while (performance.now() < until && child.exitCode === null) {
    const url = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(readFileSync(log, "utf8"))?.[0];
    if (url !== undefined && (await ready(url))) return url;
    await Bun.sleep(50);
  }
  throw new Error(`tally serve does not come up:\n${readFileSync(log, "utf8").slice(-2000)}`);
}

async function ready(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).status === 200;
  } catch {
    return false;
  }
}

async function createCredential(executable: string, env: Record<string, string>): Promise<string> {
  const command = [executable, "credential", "create", "--platform", PLATFORM, "--cloud", CLOUD];
  const child = Bun.spawn(command, { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [token, said] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`tally credential create failed: ${said}`);
  return token.trim();
}

/** Runs one job in a process of its own; `around` sees the moments when the clock starts and stops. */
export async function runJob(
  job: Job,
  around: { started(): void; ended(): void } = { started() {}, ended() {} },
): Promise<Outcome> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "load.ts")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = linesOf(child.stdout);
  child.stdin.write(`${JSON.stringify(job)}\n`);
  await child.stdin.flush();
  if ((await lines.next()).value !== "ready") throw new Error("the load generator failed");
  around.started();
  child.stdin.write("go\n");
  await child.stdin.flush();
  const line = (await lines.next()).value;
  around.ended();
  if (line === undefined) throw new Error("the load generator failed");
  await child.exited;
  return parseLine(Outcome, line);
}
