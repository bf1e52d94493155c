/** The one pool of a process. */
import { SQL } from "bun";
import { type DatabaseTarget, parseDatabaseUrl } from "./address.ts";
import type { Database } from "./connection.ts";

export type { DatabaseTarget, SocketTarget } from "./address.ts";

/** How long a connection may take to open. */
const CONNECTION_TIMEOUT_SECONDS = 5;

/** What a pool may be told. Times are milliseconds; 0 switches a limit off. */
export interface PoolOptions {
  readonly maxConnections: number;
  /** What `pg_stat_activity` shows. Default: tally. */
  readonly applicationName?: string;
  /** The longest that one statement may run. Default: 60,000. */
  readonly statementTimeoutMs?: number;
  /** The longest that a statement may wait for one lock. Default: 15,000. */
  readonly lockTimeoutMs?: number;
}

/**
 * Opens a pool. Nothing is connected before the first statement, and a server that went away and came back is
 * found again by itself; statements in flight fail then (see `faults.ts`).
 *
 * The limits travel as startup parameters, so that they hold from a connection's first statement on and cost no
 * round trip. A pooler that gives a server to each transaction (`pooler=transaction` in the URL) has no session that
 * could keep them, nor the statements that a session prepared: there, `transaction` sets them each time, nothing is
 * prepared, and what runs outside of a transaction has what the role was given (docs/scaling.md).
 *
 * No idleTimeout and no maxLifetime: bun:sql lets both kill a running query.
 * @throws {TypeError} for a URL that `parseDatabaseUrl` refuses
 */
export function openPool(target: DatabaseTarget, options: PoolOptions): Database {
  const limits = {
    application_name: options.applicationName ?? "tally",
    statement_timeout: options.statementTimeoutMs ?? 60_000,
    lock_timeout: options.lockTimeoutMs ?? 15_000,
    idle_in_transaction_session_timeout: 60_000,
    // What the server's own settings could weaken: an answer leaves only when its commit is on disk, and the fold
    // relies on each statement seeing what was committed before it.
    synchronous_commit: "on",
    default_transaction_isolation: "read committed",
    // A list over a project of fifty events and one over a project of fifty million want different plans. Planning
    // costs a statement a fraction of a millisecond, and a plan made for an average project sorts the fifty million.
    plan_cache_mode: "force_custom_plan",
    // Lists are answered with instants as the server writes them (object-text.ts).
    datestyle: "ISO",
  };
  const common = {
    adapter: "postgres",
    max: options.maxConnections,
    connectionTimeout: CONNECTION_TIMEOUT_SECONDS,
  } as const;
  if (!("url" in target)) {
    return opened({
      ...common,
      path: socketPath(target.socketDirectory, target.port),
      username: target.user,
      password: "",
      database: target.database,
      connection: limits,
    });
  }
  const address = parseDatabaseUrl(target.url);
  if (typeof address === "string") throw new TypeError(`the database URL ${address}`);
  const parts = {
    ...common,
    username: address.user,
    password: address.password,
    database: address.database,
    ...(address.pooled
      ? { prepare: false, connection: { application_name: limits.application_name, datestyle: "ISO, MDY" } }
      : { connection: address.options === null ? limits : { ...limits, options: address.options } }),
  };
  if (address.host.startsWith("/")) return opened({ ...parts, path: socketPath(address.host, address.port) });
  return opened({
    ...parts,
    // bun:sql takes `sslmode` only from a URL; every other part of this one is overridden.
    url: `postgres://-/?sslmode=${address.sslMode}`,
    hostname: address.host,
    port: address.port,
  });
}

type ClientOptions = SQL.PostgresOrMySQLOptions;

const optionsOf = new WeakMap<Database, ClientOptions>();

function opened(options: ClientOptions): Database {
  const db = new SQL(options);
  optionsOf.set(db, options);
  return db;
}

/** Whether a pool leads to a pooler, where no session keeps what it is told. */
export function isPooled(db: Database): boolean {
  return optionsOf.get(db)?.prepare === false;
}

/** Makes `openBeside` take another object for a pool. */
export function knownAs(other: Database, pool: Database): void {
  const options = optionsOf.get(pool);
  if (options !== undefined) optionsOf.set(other, options);
}

/**
 * Another connection to where a pool leads, outside of it: for what holds a connection for long, which would take
 * it from those who need one for a moment. The caller closes it.
 */
export function openBeside(pool: Database): Database {
  const options = optionsOf.get(pool);
  if (options === undefined) throw new Error("only a pool that openPool opened has another beside it");
  return opened({ ...options, max: 1 });
}

function socketPath(directory: string, port: number): string {
  return `${directory}/.s.PGSQL.${port}`;
}
