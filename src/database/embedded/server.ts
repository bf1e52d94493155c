/** The server process: started as a child, watched, stopped. */
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Account, handOver, runAs } from "./account.ts";
import { EmbeddedDatabaseError } from "./fault.ts";
import { gone, isAlive, isPostgresOn, postgresProcessesOn } from "./process.ts";

/** The port names the socket's file only: nothing listens on TCP. */
export const SOCKET_PORT = 5432;
/** A fast shutdown writes a checkpoint; on a slow disk that takes its time. */
const FAST_SHUTDOWN_MS = 45_000;
const IMMEDIATE_SHUTDOWN_MS = 10_000;
const LOG_LIMIT_BYTES = 10_000_000;

/** What a server needs to start. All paths are absolute. */
export interface ServerPlan {
  /** The unpacked distribution. */
  readonly home: string;
  readonly cluster: string;
  readonly socketDirectory: string;
  readonly logFile: string;
  readonly account: Account | null;
  readonly maxConnections: number;
  /** Gives up the wait for a start, and stops what was started. */
  readonly signal?: AbortSignal | undefined;
}

/** A server that takes connections. */
export interface RunningServer {
  readonly pid: number;
  /** Settles when the process is gone, whoever ended it. */
  readonly exited: Promise<void>;
  /** Stops it: connections are cut, everything committed is on the disk. Harmless when it is gone already. */
  stop(): Promise<void>;
}

interface PostmasterFile {
  readonly pid: number;
  readonly status: string;
}

function readPostmaster(cluster: string): PostmasterFile | null {
  try {
    const lines = readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n");
    return { pid: Number(lines[0]), status: (lines[7] ?? "").trim() };
  } catch {
    return null;
  }
}

function signal(pid: number, name: "SIGINT" | "SIGQUIT" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (isAlive(pid)) throw error;
  }
}

async function shutDown(pid: number): Promise<void> {
  signal(pid, "SIGINT");
  if (await gone(pid, FAST_SHUTDOWN_MS)) return;
  // Without the checkpoint: the next start recovers from the log. Nothing committed is lost.
  signal(pid, "SIGQUIT");
  if (await gone(pid, IMMEDIATE_SHUTDOWN_MS)) return;
  throw new EmbeddedDatabaseError(`the embedded PostgreSQL (pid ${pid}) doesn't stop`);
}

/**
 * Stops a server that a killed Tally left behind, also one that was killed itself and whose backends work on; and
 * clears the way where its pid is still in use: by a process that happens to have it, or by its own remains, which
 * nobody has reaped yet. The caller holds the directory's lock, so no living Tally owns that server.
 * @returns whether a server was stopped
 */
export async function stopOrphan(cluster: string, socketDirectory: string): Promise<boolean> {
  const found = readPostmaster(cluster);
  if (found !== null && isPostgresOn(found.pid, cluster)) {
    await shutDown(found.pid);
    return true;
  }
  // A backend without its server ends when it next waits for something; one that computes has to be told.
  for (const pid of postgresProcessesOn(cluster)) signal(pid, "SIGQUIT");
  for (const pid of postgresProcessesOn(cluster)) {
    if (!(await gone(pid, IMMEDIATE_SHUTDOWN_MS))) signal(pid, "SIGKILL");
    await gone(pid, IMMEDIATE_SHUTDOWN_MS);
  }
  // PostgreSQL would take whatever has that pid for a server and refuse to start, in a container at every start. It is
  // only safe to help it because no process of that server is left: the file is also how it finds those.
  if (postgresProcessesOn(cluster).length === 0) {
    if (found !== null && existsSync(`/proc/${found.pid}`))
      rmSync(join(cluster, "postmaster.pid"), { force: true });
    rmSync(join(socketDirectory, `.s.PGSQL.${SOCKET_PORT}.lock`), { force: true });
  }
  return false;
}

function lastWords(logFile: string, from: number): string {
  const lines = readFileSync(logFile).subarray(from).toString("utf8").split("\n");
  const telling = lines.filter(
    (line) => /\b(FATAL|PANIC|ERROR|HINT|DETAIL):/.test(line) || / error .*:/.test(line),
  );
  return (telling.length > 0 ? telling : lines).filter(Boolean).slice(-3).join(" ").slice(0, 500);
}

/**
 * glibc gives what a statement used back to the kernel and fetches it anew, zeroed, for the next one: about a tenth
 * of what a batch of a thousand events costs the server. A backend keeps up to 64 MiB of what it once used instead.
 */
const KEEP_MEMORY = {
  MALLOC_TRIM_THRESHOLD_: String(64 * 2 ** 20),
  MALLOC_MMAP_THRESHOLD_: String(32 * 2 ** 20),
  MALLOC_TOP_PAD_: String(8 * 2 ** 20),
};

/**
 * Starts the server and waits until it takes connections, however long recovery after a crash takes.
 * @throws {EmbeddedDatabaseError} when it ends before that, with its last words; when the signal aborts
 */
export async function startServer(plan: ServerPlan): Promise<RunningServer> {
  const { cluster, logFile, signal } = plan;
  if (existsSync(logFile) && statSync(logFile).size > LOG_LIMIT_BYTES) renameSync(logFile, `${logFile}.1`);
  const log = openSync(logFile, "a", 0o640);
  const logStart = statSync(logFile).size;
  handOver(plan.account, logFile);
  const settings = {
    listen_addresses: "",
    unix_socket_directories: plan.socketDirectory,
    unix_socket_permissions: "0700",
    port: String(SOCKET_PORT),
    // Beside the pool: commands that run meanwhile, an operator's psql, autovacuum's own share.
    max_connections: String(plan.maxConnections + 20),
    log_destination: "stderr",
    logging_collector: "off",
    // The server's own affairs, not the statements': those could hold payloads, and Tally logs its failures itself.
    log_min_messages: "log",
    log_min_error_statement: "panic",
    log_error_verbosity: "terse",
    log_checkpoints: "off",
    log_line_prefix: "%m [%p] ",
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = Bun.spawn(runAs(plan.account, [join(plan.home, "bin/postgres"), "-D", cluster, ...options]), {
    env: KEEP_MEMORY,
    cwd: "/",
    stdin: "ignore",
    stdout: log,
    stderr: log,
    // Its own process group: Ctrl-C on a terminal must not stop it before the work in flight is done.
    detached: true,
  });
  closeSync(log);
  const exited = child.exited.then(() => undefined);
  const server = {
    pid: child.pid,
    exited,
    stop: () => (child.exitCode === null ? shutDown(child.pid) : exited),
  };
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new EmbeddedDatabaseError(
        `the embedded PostgreSQL did not start: ${lastWords(logFile, logStart)}`,
      );
    }
    if (signal?.aborted === true) {
      await server.stop();
      throw new EmbeddedDatabaseError("stopped while the embedded PostgreSQL was starting");
    }
    const found = readPostmaster(cluster);
    if (found?.pid === child.pid && found.status === "ready") return server;
    await Bun.sleep(10);
  }
}
