/**
 * Room on the disk. A PostgreSQL that can't write its log any more crashes, and can't even recover until there is room
 * again. So Tally stops writing while there still is some: what reads goes on, and what writes is told to come back.
 */
import { statfsSync } from "node:fs";
import type { Database } from "../connection.ts";
import { knownAs } from "../pool.ts";

/** Kept free: more than the log of all batches in flight, and a checkpoint, can take. Bytes. */
export const LEAST_ROOM = 256 * 2 ** 20;

/** What a write is told; `code` is what a full disk is told by, too. */
export class NoRoom extends Error {
  override readonly name = "NoRoom";
  readonly code = "ENOSPC";
}

/** Why nothing is written, in words; null while there is room. */
export function roomFinding(directory: string, least = LEAST_ROOM): string | null {
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  return free >= least
    ? null
    : `the disk that holds the database is full: ${Math.floor(free / 2 ** 20)} MiB are left, and ${least / 2 ** 20} MiB are kept free`;
}

/** The same pool, but transactions that may write are refused with `NoRoom` while `finding` says why. */
export function refusingWrites(db: Database, finding: () => string | null): Database {
  const guarded = new Proxy(db, {
    get(pool, name) {
      if (name === "begin") {
        return (...parameters: unknown[]) => {
          // With a mode before the work, it is a snapshot that only reads.
          const why = typeof parameters[0] === "function" ? finding() : null;
          return why === null ? Reflect.apply(pool.begin, pool, parameters) : Promise.reject(new NoRoom(why));
        };
      }
      const value: unknown = Reflect.get(pool, name);
      return typeof value === "function" ? value.bind(pool) : value;
    },
  });
  knownAs(guarded, db);
  return guarded;
}
