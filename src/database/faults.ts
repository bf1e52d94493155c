/**
 * What the database's errors mean, in one place. bun:sql throws what the server said as `code`
 * ERR_POSTGRES_SERVER_ERROR with the SQLSTATE in `errno`, and its own troubles as ERR_POSTGRES_… or, for sockets
 * and TLS, under the operating system's or the TLS library's name.
 */

/**
 * - `unavailable`: the server can't be reached, refuses to work for us, or is out of space: try again later.
 * - `retry`: this transaction lost against another one: run it again at once.
 * - `data`: what was written breaks a rule of the database: running it again changes nothing.
 * - `timeout`: a statement or a wait for a lock took too long.
 * - `other`: a fault of ours, or no error of the database at all.
 */
export type Fault = "unavailable" | "retry" | "data" | "timeout" | "other";

/** Whole states first, then classes (a state's first two characters). */
const BY_STATE: Readonly<Record<string, Fault>> = {
  "40001": "retry", // serialization_failure
  "40P01": "retry", // deadlock_detected
  "57014": "timeout", // query_canceled, which is what statement_timeout says
  "55P03": "timeout", // lock_not_available, which is what lock_timeout says
  "25P03": "timeout", // idle_in_transaction_session_timeout
  "25006": "unavailable", // read_only_sql_transaction: a standby, or a server whose disk is full
  "3D000": "unavailable", // the database doesn't exist (yet)
  "08": "unavailable", // connection exceptions
  "28": "unavailable", // the server doesn't let us in
  "53": "unavailable", // out of disk, memory or connections
  "57": "unavailable", // terminated, shutting down, starting up, dropped
  "58": "unavailable", // I/O errors
  "40": "unavailable", // 40003: whether it was committed is unknown
  "22": "data", // data exceptions
  "23": "data", // constraints
  "54": "data", // too complex, too deep, too large for an index
};

/** The client's own codes that say nothing about the server's health. */
const OWN_FAULTS =
  /^ERR_POSTGRES_(SYNTAX|UNSUPPORTED|INVALID_QUERY|TOO_MANY_PARAMETERS|QUERY_CANCELLED|INVALID_TRANSACTION|UNSAFE_TRANSACTION|NOT_TAGGED)/;
const UNREACHABLE =
  /^(ERR_POSTGRES_|ECONN|EPIPE|ENOENT|ENOTFOUND|EAI_|EHOST|ENET|ETIMEDOUT|ENOSPC$|EACCES$|ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

/** Thrown by a transaction's work that saw another one come in between and commit: it has to begin anew. */
export class Overtaken extends Error {
  override readonly name = "Overtaken";
  override readonly message = "another transaction made a row that this one was about to make";
}

/** The SQLSTATE that the server answered with, or null if the error did not come from a server. */
export function sqlStateOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("errno" in error)) return null;
  return typeof error.errno === "string" && /^[0-9A-Z]{5}$/.test(error.errno) ? error.errno : null;
}

/** Classifies an error that a statement, a transaction or a connection attempt threw. */
export function faultOf(error: unknown): Fault {
  if (error instanceof Overtaken) return "retry";
  const state = sqlStateOf(error);
  if (state !== null) return BY_STATE[state] ?? BY_STATE[state.slice(0, 2)] ?? "other";
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return "other";
  if (OWN_FAULTS.test(error.code)) return "other";
  return UNREACHABLE.test(error.code) ? "unavailable" : "other";
}
