/**
 * Who the server runs as. PostgreSQL refuses root, so a Tally that root starts gives its server to an unprivileged
 * user and hands it the files that it needs.
 */
import { chownSync, existsSync, lstatSync, readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { EmbeddedDatabaseError } from "./fault.ts";

/** A user of the system, by number. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  /** For messages. */
  readonly name: string;
}

const PREFERRED = ["tally", "nobody"];

function passwd(): Account[] {
  return readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .map(([name = "", , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
    .filter(({ name, uid, gid }) => name !== "" && uid > 0 && gid > 0);
}

/**
 * The account to run the server as, or null to run it as whoever runs Tally. As root: the owner of the data that is
 * already there, else the user `tally`, else `nobody`.
 * @throws {EmbeddedDatabaseError} when root finds no such user
 */
export function serverAccount(cluster: string): Account | null {
  if (process.getuid?.() !== 0) return null;
  const accounts = passwd();
  if (existsSync(cluster)) {
    const { uid, gid } = statSync(cluster);
    if (uid !== 0)
      return accounts.find((account) => account.uid === uid) ?? { uid, gid, name: `user ${uid}` };
  }
  for (const name of PREFERRED) {
    const account = accounts.find((candidate) => candidate.name === name);
    if (account !== undefined) return account;
  }
  throw new EmbeddedDatabaseError("PostgreSQL refuses to run as root, and there is no user tally or nobody");
}

/**
 * The command that runs `command` as `account`. Where setpriv is at hand the kernel also sends the server SIGINT (a
 * fast, clean shutdown) when Tally dies without stopping it.
 * @throws {EmbeddedDatabaseError} when an account is asked for and setpriv isn't there
 */
export function runAs(account: Account | null, command: readonly string[]): string[] {
  const setpriv = Bun.which("setpriv", { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" });
  if (setpriv === null) {
    if (account === null) return [...command];
    throw new EmbeddedDatabaseError(
      "PostgreSQL refuses to run as root, and setpriv (util-linux) is not there",
    );
  }
  const become =
    account === null ? [] : [`--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups"];
  return [setpriv, ...become, "--pdeathsig", "INT", "--", ...command];
}

/** Gives `path`, and everything below it, to `account`. Symbolic links are not followed. */
export function handOver(account: Account | null, path: string, recursive = false): void {
  if (account === null) return;
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return;
  if (stat.uid !== account.uid) chownSync(path, account.uid, account.gid);
  if (!recursive || !stat.isDirectory()) return;
  for (const name of readdirSync(path)) handOver(account, join(path, name), true);
}

function mayEnter(account: Account, stat: Stats): boolean {
  if (stat.uid === account.uid) return (stat.mode & 0o100) !== 0;
  if (stat.gid === account.gid) return (stat.mode & 0o010) !== 0;
  return (stat.mode & 0o001) !== 0;
}

/** The nearest directory above `path` (or `path` itself) that the account can't enter; null: it can enter all. */
export function closedTo(account: Account, path: string): string | null {
  for (let at = path; ; at = dirname(at)) {
    if (existsSync(at) && !mayEnter(account, statSync(at))) return at;
    if (at === dirname(at)) return null;
  }
}
