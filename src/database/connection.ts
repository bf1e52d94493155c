/**
 * The types that every query function takes. A query is one named function over a `Queryable`; work that must
 * land whole is a function over a `Transaction`.
 */
import type { SQL, TransactionSQL } from "bun";

/** The pool. One per process; `database/pool.ts` opens it. */
export type Database = SQL;
/** One open transaction. Everything inside is awaited, one statement after the other. */
export type Transaction = TransactionSQL;
/** Whatever can run a statement. */
export type Queryable = Database | Transaction;
