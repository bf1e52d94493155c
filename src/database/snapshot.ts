/** How lists and histories are read. */
import type { Database, Transaction } from "./connection.ts";

/**
 * Reads as of one moment: a batch that lands between two statements must not show in one and not in the other.
 *
 * Every statement is planned for its own values. A list over a project of fifty events and one over a project of
 * fifty million want different plans, but a prepared statement is soon planned once for all values, as for an
 * average project, and then sorts the fifty million for each page.
 */
export async function snapshot<T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return await db.begin("isolation level repeatable read read only", async (tx) => {
    await tx`SET LOCAL plan_cache_mode = force_custom_plan`;
    return await work(tx);
  });
}
