/** Work that lands whole or not at all. */
import type { Database, Transaction } from "./connection.ts";
import { faultOf } from "./faults.ts";

const ATTEMPTS = 5;
/** The first pause is up to this long; each further one up to twice the one before. */
const FIRST_PAUSE_MS = 10;

/**
 * Runs `work` in one transaction (READ COMMITTED) and commits it. What `work` throws rolls everything back and is
 * thrown on. A transaction that lost against another one (serialization failure, deadlock) is run again, five times
 * in all, after a random pause: `work` must have no effect outside the database, and await every statement.
 */
export async function transaction<T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.begin(work);
    } catch (error) {
      if (attempt >= ATTEMPTS || faultOf(error) !== "retry") throw error;
      // The pause is random so that two that collided don't collide again in step.
      await Bun.sleep(Math.random() * FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}
