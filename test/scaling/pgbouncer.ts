/** Debian's pgbouncer in transaction mode before a test's database. */
import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseDatabaseUrl } from "../../src/database/address.ts";

/** Where Debian puts it, which isn't in everybody's PATH. */
const PROGRAM = Bun.which("pgbouncer", { PATH: `${process.env.PATH ?? ""}:/usr/sbin:/usr/local/sbin` });
/** Fewer than the clients: a server changes hands between any two transactions. */
const SERVERS = 3;

/** Why there is no pooler to test with; null: there is one. */
export const WITHOUT_PGBOUNCER =
  PROGRAM === null ? "SKIPPED, not tested: pgbouncer isn't installed (apt-get install pgbouncer)" : null;

/** A running one. */
export interface Pooler {
  /** The database's URL through it, for Tally. */
  readonly url: string;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** @param url the database's own */
export async function startPgbouncer(url: string): Promise<Pooler> {
  const address = parseDatabaseUrl(url);
  if (typeof address === "string" || PROGRAM === null) throw new Error(WITHOUT_PGBOUNCER ?? String(address));
  const directory = mkdtempSync(join(tmpdir(), `tally-test-${process.pid}-`));
  const port = await freePort();
  const password = address.password === "" ? "" : ` password='${address.password}'`;
  const file = join(directory, "pgbouncer.ini");
  const log = join(directory, "log");
  writeFileSync(
    file,
    [
      "[databases]",
      `tally = host='${address.host}' port=${address.port} dbname='${address.database}' user='${address.user}'${password}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = any",
      "pool_mode = transaction",
      `default_pool_size = ${SERVERS}`,
      "max_client_conn = 200",
      `logfile = ${log}`,
    ].join("\n"),
  );
  // It refuses root, and a socket lets in its owner only.
  const owner = address.host.startsWith("/") ? statSync(address.host).uid : 65_534;
  const become =
    process.getuid?.() === 0 ? ["setpriv", `--reuid=${owner}`, "--regid=65534", "--clear-groups", "--"] : [];
  if (process.getuid?.() === 0) for (const path of [directory, file]) chownSync(path, owner, 65_534);
  const child = Bun.spawn([...become, PROGRAM, "--quiet", file], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  const stop = async () => {
    child.kill("SIGKILL");
    await child.exited;
    rmSync(directory, { recursive: true, force: true });
  };
  for (const until = performance.now() + 10_000; ; await Bun.sleep(20)) {
    const open = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } }).catch(() => null);
    if (open !== null) {
      open.end();
      return {
        url: `postgres://${address.user}@127.0.0.1:${port}/tally?sslmode=disable&pooler=transaction`,
        stop,
      };
    }
    if (child.exitCode !== null || performance.now() > until) {
      const said = readFileSync(log, "utf8").slice(-500);
      await stop();
      throw new Error(`pgbouncer does not come up: ${said}`);
    }
  }
}
