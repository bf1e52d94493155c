/** How what takes more than one statement is read. */
import type { Database, Transaction } from "./connection.ts";

/**
 * Reads as of one moment: a batch that lands between two statements must not show in one and not in the other. One
 * statement is of one moment by itself, and needs no snapshot.
 */
export async function snapshot<T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return await db.begin("isolation level repeatable read read only", work);
}
