/**
 * One holder per data directory. The lock is the kernel's: SQLite's exclusive lock on an empty file, which vanishes
 * with its process however that ends, so there is no stale lock to break and no race in breaking it. (Bun has no
 * flock of its own.) A file beside it says who holds it.
 */
import { Database as Sqlite } from "bun:sqlite";
import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Account, handOver } from "./account.ts";
import { EmbeddedDatabaseError } from "./fault.ts";

/** `serve` keeps the directory for long; a `command` starts the server, works, and stops it again. */
export type Role = "serve" | "command";

/** Who holds a directory, by its own words. */
export interface Holder {
  readonly pid: number;
  readonly role: Role;
  /** Where the holder's server listens. */
  readonly socketDirectory: string;
}

/** The held lock. */
export interface DirectoryLock {
  release(): void;
}

function holderFile(dataDir: string): string {
  return join(dataDir, "holder.json");
}

/** What the holder wrote; null while nobody did. It means something only while the lock is held. */
export function readHolder(dataDir: string): Holder | null {
  try {
    const read: unknown = JSON.parse(readFileSync(holderFile(dataDir), "utf8"));
    if (typeof read !== "object" || read === null) return null;
    if (!("pid" in read && "role" in read && "socketDirectory" in read)) return null;
    const { pid, role, socketDirectory } = read;
    if (typeof pid !== "number" || typeof socketDirectory !== "string") return null;
    return role === "serve" || role === "command" ? { pid, role, socketDirectory } : null;
  } catch {
    return null;
  }
}

/**
 * Takes the directory's lock, or says that somebody has it.
 * @returns null when another process (or another part of this one) holds it
 * @throws {EmbeddedDatabaseError} when the directory can't be written
 */
export function takeLock(dataDir: string, holder: Holder, account: Account | null): DirectoryLock | null {
  const path = join(dataDir, "tally.lock");
  let lock: Sqlite | undefined;
  try {
    lock = new Sqlite(path);
    lock.run("PRAGMA busy_timeout = 0");
    // Nothing is ever written: no journal beside the lock. (Bun's SQLite ignores OFF.)
    lock.run("PRAGMA journal_mode = MEMORY");
    lock.run("BEGIN EXCLUSIVE");
  } catch (error) {
    lock?.close();
    if (error instanceof Error && "code" in error && error.code === "SQLITE_BUSY") return null;
    throw new EmbeddedDatabaseError(`${path} can't be locked: ${String(error)}`, { cause: error });
  }
  const held = lock;
  // Renamed into place: a reader sees the former holder or this one, never half a file.
  const file = holderFile(dataDir);
  writeFileSync(`${file}.new`, JSON.stringify(holder));
  chmodSync(`${file}.new`, 0o600);
  renameSync(`${file}.new`, file);
  handOver(account, path);
  handOver(account, file);
  return {
    release: () => {
      rmSync(file, { force: true });
      held.close();
    },
  };
}
