/**
 * Real PostgreSQL for tests: one server a run, started by the preload, and one database a test file, copied from a
 * migrated template. TALLY_TEST_DB_URL names another server to use instead.
 */
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packPostgres } from "../../scripts/pack-postgres.ts";
import { type DatabaseTarget, parseDatabaseUrl } from "../../src/database/address.ts";
import type { Database } from "../../src/database/connection.ts";
import { type EmbeddedDatabase, openEmbedded } from "../../src/database/embedded/embedded.ts";
import { migrateUp } from "../../src/database/migrations.ts";
import { openPool } from "../../src/database/pool.ts";

/** A database of a test's own. */
export interface TestDatabase {
  /** A pool of ten connections. */
  readonly db: Database;
  readonly target: DatabaseTarget;
  /** The same as a URL, for TALLY_REPORTING_DB_URL. */
  readonly url: string;
  /** Another pool on it; closed by `drop`. */
  pool(maxConnections: number): Database;
  /** Closes the pools and drops the database. */
  drop(): Promise<void>;
}

/** The run's server. */
interface TestServer {
  readonly embedded: EmbeddedDatabase | null;
  readonly admin: Database;
  readonly template: string;
  urlOf(database: string): string;
}

let running: Promise<TestServer> | null = null;
let made = 0;

/** Removes a directory when this process has ended, in whatever way: not every way leaves it time to do so itself. */
function removeAtEnd(directory: string): void {
  const script = 'tail --pid="$0" -f /dev/null; sleep 1; rm -rf -- "$1"';
  const command = ["sh", "-c", script, String(process.pid), directory];
  Bun.spawn(command, { stdio: ["ignore", "ignore", "ignore"], detached: true }).unref();
}

async function startServer(): Promise<TestServer> {
  const external = process.env.TALLY_TEST_DB_URL;
  const template = `tally_template_${process.pid}`;
  let embedded: EmbeddedDatabase | null = null;
  let urlOf: (database: string) => string;
  if (external === undefined) {
    await packPostgres();
    const directory = mkdtempSync(join(tmpdir(), `tally-test-${process.pid}-`));
    chmodSync(directory, 0o755);
    removeAtEnd(directory);
    // A test's data need not survive a power cut.
    const settings = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
    embedded = await openEmbedded({ dataDir: directory, maxConnections: 230, role: "command", settings });
    const { user, port, socketDirectory } = embedded.target;
    urlOf = (database) =>
      `postgres://${user}@/${database}?host=${encodeURIComponent(socketDirectory)}&port=${port}`;
  } else {
    const address = parseDatabaseUrl(external);
    if (typeof address === "string") throw new Error(`TALLY_TEST_DB_URL ${address}`);
    urlOf = (database) => {
      const url = new URL(external);
      url.pathname = `/${database}`;
      return url.href;
    };
  }
  const admin = openPool({ url: external ?? urlOf("postgres") }, { maxConnections: 2 });
  await admin.unsafe(`DROP DATABASE IF EXISTS ${template} WITH (FORCE)`);
  await admin.unsafe(`CREATE DATABASE ${template}`);
  const pool = openPool({ url: urlOf(template) }, { maxConnections: 1 });
  await migrateUp(pool);
  await pool.close({ timeout: 0 });
  return { embedded, admin, template, urlOf };
}

function server(): Promise<TestServer> {
  running ??= startServer();
  return running;
}

async function create(template: string | null): Promise<TestDatabase> {
  const { admin, urlOf } = await server();
  const name = `tally_test_${process.pid}_${++made}`;
  await admin.unsafe(`CREATE DATABASE ${name}${template === null ? "" : ` TEMPLATE ${template}`}`);
  const target = { url: urlOf(name) };
  const pools: Database[] = [];
  const pool = (maxConnections: number) => {
    const opened = openPool(target, { maxConnections });
    pools.push(opened);
    return opened;
  };
  return {
    db: pool(10),
    target,
    url: target.url,
    pool,
    drop: async () => {
      await Promise.all(pools.map((opened) => opened.close({ timeout: 0 })));
      await admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** A fresh database with this binary's schema. */
export async function testDatabase(): Promise<TestDatabase> {
  return await create((await server()).template);
}

/** A fresh database with nothing in it. */
export async function emptyDatabase(): Promise<TestDatabase> {
  return await create(null);
}

/** Starts the run's server. */
export async function startTestServer(): Promise<void> {
  await server();
}

/** Stops the run's server. */
export async function stopTestServer(): Promise<void> {
  if (running === null) return;
  const { embedded, admin, template } = await running;
  running = null;
  if (embedded === null) await admin.unsafe(`DROP DATABASE IF EXISTS ${template} WITH (FORCE)`);
  await admin.close({ timeout: 0 });
  await embedded?.stop();
}
