/** How busy a pool is, for the metrics. */
import type { Database } from "./connection.ts";
import { knownAs } from "./pool.ts";

/**
 * The same pool, but each transaction is told of: with 1 when it is asked for, though it may still wait for a connection,
 * and with -1 when it is over, however it ends.
 */
export function countingTransactions(db: Database, changed: (by: 1 | -1) => void): Database {
  const counted = new Proxy(db, {
    get(pool, name) {
      const value: unknown = Reflect.get(pool, name);
      if (typeof value !== "function") return value;
      if (name !== "begin") return value.bind(pool);
      return async (...parameters: unknown[]) => {
        changed(1);
        try {
          return await Reflect.apply(value, pool, parameters);
        } finally {
          changed(-1);
        }
      };
    },
  });
  knownAs(counted, db);
  return counted;
}
