/** The built executable, run as an operator would: in an empty environment, from a directory of no importance. */
import { chmodSync, copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { openPool } from "../../src/database/pool.ts";
import { temporaryDirectory } from "../database/own-server.ts";

const BUILT = join(import.meta.dir, "../../dist/tally");

/** An unprivileged user of every Debian. */
const NOBODY = 65_534;
export const AS_ROOT = process.getuid?.() === 0;

/** A place for one instance: the executable where everybody may run it, and a data directory that isn't there yet. */
export interface Place {
  readonly executable: string;
  readonly cwd: string;
  readonly dataDir: string;
  /** Ends what still runs here, as a test that failed half-way leaves it, and removes the directory. */
  remove(): Promise<void>;
}

/** Every process that was started, with where. */
const children = new Map<Bun.Subprocess, string>();
// `afterAll` doesn't run when the run is interrupted.
process.on("exit", () => {
  for (const child of children.keys()) child.kill("SIGKILL");
});

/** @throws {Error} when nothing is built */
export function place(): Place {
  if (!existsSync(BUILT)) throw new Error("dist/tally is missing: run `bun run build` first");
  const { path, remove } = temporaryDirectory();
  // Copied: the repository may lie where the unprivileged user can't go.
  const executable = join(path, "tally");
  copyFileSync(BUILT, executable);
  chmodSync(executable, 0o755);
  // Both users of these tests may make the data directory here.
  chmodSync(path, 0o1777);
  return {
    executable,
    cwd: path,
    dataDir: join(path, "data"),
    async remove() {
      const left = [...children].filter(([, where]) => where === executable).map(([child]) => child);
      for (const child of left) child.kill("SIGKILL");
      await Promise.all(left.map((child) => child.exited));
      remove();
    },
  };
}

/** How to run it. */
export interface RunOptions {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** As `nobody`; only root can. */
  readonly unprivileged?: boolean;
  readonly cwd?: string;
}

function spawn(at: Place, options: RunOptions) {
  const { args, env = {}, unprivileged = false, cwd = at.cwd } = options;
  const become = unprivileged ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : [];
  const child = Bun.spawn([...become, at.executable, ...args], {
    cwd,
    env: { TALLY_DATA_DIR: at.dataDir, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  children.set(child, at.executable);
  child.exited.then(() => children.delete(child));
  return child;
}

/** What a finished command said. */
export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. */
export async function tally(at: Place, ...args: string[]): Promise<Said> {
  return await run(at, { args });
}

/** The same, with an environment or as another user. */
export async function run(at: Place, options: RunOptions): Promise<Said> {
  const child = spawn(at, options);
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

/** A `tally serve` that listens. */
export interface Serving {
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<number>;
  /** Every line of its log so far. */
  readonly log: Record<string, unknown>[];
  /** Sends SIGTERM, and the signal's name to others. @returns the exit code */
  stop(signal?: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<number>;
}

/** Starts `tally serve` on a free port and waits until it listens. @throws {Error} with what it said when it doesn't */
export async function serve(
  at: Place,
  env: Readonly<Record<string, string>> = {},
  unprivileged = false,
): Promise<Serving> {
  const settings = { TALLY_REPORTING_HTTP_HOST: "127.0.0.1", TALLY_REPORTING_HTTP_PORT: "0", ...env };
  const child = spawn(at, { args: ["serve"], env: settings, unprivileged });
  const log: Record<string, unknown>[] = [];
  const listening = Promise.withResolvers<string>();
  const reading = (async () => {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      rest += decoder.decode(chunk, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const entry: Record<string, unknown> = JSON.parse(line);
        log.push(entry);
        const url = /^listening on (\S+)$/.exec(String(entry.message))?.[1];
        if (url !== undefined) listening.resolve(url);
      }
    }
    listening.reject(
      new Error(`tally serve did not start: ${JSON.stringify(log)} ${await child.stderr.text()}`),
    );
  })();
  const url = await listening.promise;
  return {
    url,
    pid: child.pid,
    exited: child.exited,
    log,
    stop: async (signal = "SIGTERM") => {
      child.kill(signal);
      const code = await child.exited;
      await reading;
      return code;
    },
  };
}

/** One value of the embedded database of a running serve. */
export async function ask(at: Place, query: string): Promise<unknown> {
  const socketDirectory = join(at.dataDir, "run");
  const db = openPool(
    { socketDirectory, port: 5432, user: "tally", database: "tally" },
    { maxConnections: 1 },
  );
  try {
    const [row] = await db.unsafe(query);
    return row === undefined ? null : Object.values(row)[0];
  } finally {
    await db.close({ timeout: 0 });
  }
}

/** Waits until `/readyz` answers that status. @throws {Error} after twenty seconds */
export async function readiness(url: string, status: number): Promise<void> {
  for (const until = performance.now() + 20_000; performance.now() < until; await Bun.sleep(100)) {
    if ((await fetch(`${url}/readyz`)).status === status) return;
  }
  throw new Error(`${url}/readyz never answered ${status}`);
}
