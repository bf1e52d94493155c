/** Work that lands whole or not at all. */
import type { Database, Transaction } from "./connection.ts";
import { faultOf, Overtaken } from "./faults.ts";
import { isPooled } from "./pool.ts";

const ATTEMPTS = 5;
/** A batch has at most so many rows that others could make before it does; more often, and it is a fault of ours. */
const OVERTAKINGS = 1_000;
/** The first pause is up to this long; each further one up to twice the one before. */
const FIRST_PAUSE_MS = 10;

/**
 * Runs `work` in one transaction (READ COMMITTED) and commits it. What `work` throws rolls everything back and is
 * thrown on. A transaction that lost against another one (serialization failure, deadlock) is run again, five times
 * in all, after a random pause: `work` must have no effect outside the database, and await every statement.
 *
 * One that was overtaken begins anew at once, and that is no attempt: the other one has committed, so each time there
 * is one thing less that could overtake it. Between senders whose batches share many new resources it happens often.
 */
export async function transaction<T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  for (let attempt = 1, overtakings = 0; ; ) {
    try {
      return await (isPooled(db) ? onBorrowedServer(db, work) : db.begin(work));
    } catch (error) {
      if (error instanceof Overtaken && ++overtakings <= OVERTAKINGS) continue;
      if (attempt >= ATTEMPTS || faultOf(error) !== "retry") throw error;
      // The pause is random so that two that collided don't collide again in step.
      await Bun.sleep(Math.random() * FIRST_PAUSE_MS * 2 ** (attempt - 1));
      attempt++;
    }
  }
}

/**
 * A server that a pooler lends for one transaction has whatever settings it has: what durability and isolation rest
 * on is set for this transaction, and its limits (see `openPool`).
 */
async function onBorrowedServer<T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return await db.begin("isolation level read committed read write", async (tx) => {
    await tx`
      SELECT set_config('synchronous_commit', 'on', true), set_config('statement_timeout', '60s', true),
             set_config('lock_timeout', '15s', true), set_config('idle_in_transaction_session_timeout', '60s', true)`;
    return await work(tx);
  });
}
