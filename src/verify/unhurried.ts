/** How the checker reads. */
import type { Database, Transaction } from "../database/connection.ts";
import { snapshot } from "../database/snapshot.ts";

/**
 * Reads as of one moment, and a statement takes as long as it takes: what the pool allows one is for requests, which
 * somebody waits for, and a check of a large database must not end at it.
 */
export async function unhurried<T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return await snapshot(db, async (tx) => {
    await tx`SELECT set_config('statement_timeout', '0', true)`;
    return await work(tx);
  });
}
