/**
 * The embedded PostgreSQL, whole: its place on the disk, its lock, its process. A Tally data directory holds
 * `postgres-<version>/` (the program), `database/` (the data), `run/` (the socket), `postgres.log`, `tally.lock`.
 */
import { createHash } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { SocketTarget } from "../address.ts";
import { openPool } from "../pool.ts";
import { type Account, closedTo, handOver, serverAccount } from "./account.ts";
import { checkCluster, clusterOf, initCluster, OWNER } from "./cluster.ts";
import { removeOtherPostgres, unpackPostgres } from "./distribution.ts";
import { EmbeddedDatabaseError } from "./fault.ts";
import { type DirectoryLock, type Role, readHolder, takeLock } from "./lock.ts";
import { type RunningServer, SOCKET_PORT, startServer, stopOrphan } from "./server.ts";

/** A unix socket's path holds 107 bytes at most. */
const SOCKET_PATH_BYTES = 107;
/** How long to wait for a command that has the directory, and for a serve that is still starting. */
const BUSY_WAIT_MS = 60_000;
/** Backends that a killed server left behind keep its memory for a moment. */
const START_ATTEMPTS = 5;

/** What to start, and for whom. */
export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly maxConnections: number;
  readonly role: Role;
  readonly signal?: AbortSignal;
  /** Server settings to initialise the cluster with, beside the usual ones. Tests switch fsync off. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Only a database that is there already: where there is none, nothing is made. */
  readonly existing?: boolean;
  /** Told, in one line, of what an operator may wonder about. */
  readonly notice?: (message: string) => void;
}

/** A server to work with. */
export interface EmbeddedDatabase {
  readonly target: SocketTarget;
  /** False: another process's server, which goes on without us. */
  readonly ours: boolean;
  /** Settles when the server's process ends; never for another process's. */
  readonly exited: Promise<void>;
  /** Stops the server if it is ours. */
  stop(): Promise<void>;
}

function noDatabase(dataDir: string): EmbeddedDatabaseError {
  return new EmbeddedDatabaseError(
    `there is no database in ${dataDir}: set TALLY_DATA_DIR to the directory that has one (tally serve makes one)`,
  );
}

/**
 * Looks for a database, and touches nothing. A Tally that has the directory may be making one just now, and who can't
 * look into it is told so later.
 * @throws {EmbeddedDatabaseError} where there is none
 */
function requireDatabase(dataDir: string): void {
  if (existsSync(dataDir)) {
    try {
      accessSync(dataDir, constants.R_OK | constants.X_OK);
    } catch {
      return;
    }
    if (!statSync(dataDir).isDirectory() || readHolder(dataDir) !== null) return;
    if (checkCluster(clusterOf(dataDir))) return;
  }
  throw noDatabase(dataDir);
}

function prepareDirectory(dataDir: string): { dataDir: string; account: Account | null } {
  let account: Account | null;
  try {
    // The mode is its own alone: the server's user, where that isn't whoever makes it, has to get through those above.
    mkdirSync(dirname(dataDir), { recursive: true });
    const made = mkdirSync(dataDir, { recursive: true, mode: 0o700 }) !== undefined;
    account = serverAccount(clusterOf(dataDir));
    const ours = made || readdirSync(dataDir).length === 0 || existsSync(join(dataDir, "tally.lock"));
    // Only a directory that is Tally's: whoever points TALLY_DATA_DIR at /root keeps owning it.
    if (account !== null && ours && statSync(dataDir).uid === 0) handOver(account, dataDir);
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (error instanceof EmbeddedDatabaseError) throw error;
    const why = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new EmbeddedDatabaseError(
      `the data directory ${dataDir} can't be used (${why}): run as its owner, or set TALLY_DATA_DIR`,
      { cause: error },
    );
  }
  const path = realpathSync(dataDir);
  const closed = account === null ? null : closedTo(account, path);
  if (account !== null && closed !== null) {
    throw new EmbeddedDatabaseError(
      `PostgreSQL refuses to run as root, and ${account.name}, as whom it would run, can't enter ${closed}: ` +
        "set TALLY_DATA_DIR to a directory below /var/lib, or run Tally as another user",
    );
  }
  return { dataDir: path, account };
}

/** A directory of mode 0700 for the socket: in the data directory where the path is short enough. */
function socketDirectoryFor(dataDir: string): string {
  const near = join(dataDir, "run");
  if (Buffer.byteLength(`${near}/.s.PGSQL.${SOCKET_PORT}`) <= SOCKET_PATH_BYTES) return near;
  const name = createHash("sha256").update(dataDir).digest("hex").slice(0, 16);
  return join(tmpdir(), `tally-${name}`);
}

function makeSocketDirectory(directory: string, account: Account | null): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  handOver(account, directory);
  const stat = lstatSync(directory);
  const owner = account?.uid ?? process.getuid?.();
  if (!stat.isDirectory() || stat.uid !== owner || (stat.mode & 0o077) !== 0) {
    throw new EmbeddedDatabaseError(`${directory} must be a directory of the server's user, of mode 0700`);
  }
}

async function reachable(target: SocketTarget, database: string): Promise<boolean> {
  const db = openPool({ ...target, database }, { maxConnections: 1 });
  try {
    await db`SELECT 1`;
    return true;
  } catch {
    return false;
  } finally {
    await db.close({ timeout: 0 });
  }
}

/** @returns false where it isn't there and isn't to be made */
async function ensureDatabase(target: SocketTarget, make: boolean): Promise<boolean> {
  const db = openPool({ ...target, database: "postgres" }, { maxConnections: 1 });
  try {
    const [found] = await db`SELECT 1 AS there FROM pg_database WHERE datname = ${target.database}`;
    if (found === undefined && make) await db.unsafe(`CREATE DATABASE ${OWNER}`);
    return found !== undefined || make;
  } finally {
    await db.close({ timeout: 0 });
  }
}

async function startOurs(
  options: EmbeddedOptions,
  place: { dataDir: string; account: Account | null; target: SocketTarget },
): Promise<RunningServer> {
  const { dataDir, account, target } = place;
  const cluster = clusterOf(dataDir);
  const there = checkCluster(cluster);
  if (!there && options.existing === true) throw noDatabase(dataDir);
  const home = await unpackPostgres(dataDir);
  handOver(account, home, statSync(home).uid !== (account?.uid ?? process.getuid?.()));
  if (!there) {
    const owner =
      account === null ? "" : `; PostgreSQL refuses to run as root, so ${account.name} owns it and runs it`;
    options.notice?.(`a new database is made in ${dataDir}${owner}`);
    await initCluster(home, dataDir, account, options.settings);
  }
  if (await stopOrphan(cluster, target.socketDirectory))
    options.notice?.("stopped a PostgreSQL that a killed Tally had left behind");
  // What an older Tally brought along is no longer needed once this one serves, and not because it was asked something.
  if (options.existing !== true) await removeOtherPostgres(dataDir);
  makeSocketDirectory(target.socketDirectory, account);
  const plan = {
    home,
    cluster,
    account,
    socketDirectory: target.socketDirectory,
    logFile: join(dataDir, "postgres.log"),
    maxConnections: options.maxConnections,
    signal: options.signal,
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return await startServer(plan);
    } catch (error) {
      const left = error instanceof Error && error.message.includes("shared memory block");
      if (!left || attempt >= START_ATTEMPTS) throw error;
      await Bun.sleep(1000);
    }
  }
}

/**
 * Makes the data directory's server available. `serve` must have it for itself; a `command` works beside a running
 * serve, through that one's socket, and otherwise starts the server for as long as it takes.
 * @throws {EmbeddedDatabaseError} when somebody else has the directory, it can't be used, or the database that has to
 *   be there isn't; one clear line
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  if (options.existing === true) requireDatabase(options.dataDir);
  const { dataDir, account } = prepareDirectory(options.dataDir);
  const socketDirectory = socketDirectoryFor(dataDir);
  const target = { socketDirectory, port: SOCKET_PORT, user: OWNER, database: OWNER };
  const holder = { pid: process.pid, role: options.role, socketDirectory };
  const until = performance.now() + BUSY_WAIT_MS;
  for (;;) {
    const lock = takeLock(dataDir, holder, account);
    if (lock !== null) return await ours(options, { dataDir, account, target }, lock);
    const other = readHolder(dataDir);
    if (other?.role === "serve") {
      if (options.role === "serve") {
        throw new EmbeddedDatabaseError(`tally serve already runs on ${dataDir} (pid ${other.pid})`);
      }
      const theirs = { ...target, socketDirectory: other.socketDirectory };
      if (await reachable(theirs, OWNER)) {
        return { target: theirs, ours: false, exited: new Promise(() => {}), stop: async () => {} };
      }
    }
    if (options.signal?.aborted === true || performance.now() > until) {
      throw new EmbeddedDatabaseError(
        `another Tally (pid ${other?.pid ?? "unknown"}) has ${dataDir} and doesn't let go of it`,
      );
    }
    await Bun.sleep(100);
  }
}

async function ours(
  options: EmbeddedOptions,
  place: { dataDir: string; account: Account | null; target: SocketTarget },
  lock: DirectoryLock,
): Promise<EmbeddedDatabase> {
  try {
    const server = await startOurs(options, place);
    const stop = async () => {
      await server.stop();
      lock.release();
    };
    try {
      if (!(await ensureDatabase(place.target, options.existing !== true))) throw noDatabase(place.dataDir);
    } catch (error) {
      await stop();
      throw error;
    }
    return { target: place.target, ours: true, exited: server.exited, stop };
  } catch (error) {
    lock.release();
    throw error;
  }
}
