import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Database } from "../../src/database/connection.ts";
import { openPool } from "../../src/database/pool.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let own: TestDatabase;
beforeAll(async () => {
  own = await testDatabase();
});
afterAll(() => own.drop());

async function limits(db: Database): Promise<unknown> {
  const [row] = await db`
    SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
           current_setting('idle_in_transaction_session_timeout') AS idle,
           current_setting('application_name') AS name, current_setting('search_path') AS path`;
  await db.close({ timeout: 0 });
  return row;
}

test("every connection has its limits", async () => {
  expect(await limits(openPool(own.target, { maxConnections: 1 }))).toEqual({
    statement: "1min",
    lock: "15s",
    idle: "1min",
    name: "tally",
    path: '"$user", public',
  });
});

test("a database that would acknowledge early, or isolate otherwise, is overruled", async () => {
  const [named]: { name: string }[] = await own.db`SELECT quote_ident(current_database()) AS name`;
  await own.db.unsafe(`ALTER DATABASE ${named?.name} SET synchronous_commit = off`);
  await own.db.unsafe(`ALTER DATABASE ${named?.name} SET default_transaction_isolation = 'serializable'`);
  const db = openPool(own.target, { maxConnections: 1 });
  const [row] = await db`
    SELECT current_setting('synchronous_commit') AS commit, current_setting('transaction_isolation') AS isolation`;
  await db.close();
  await own.db.unsafe(`ALTER DATABASE ${named?.name} RESET ALL`);
  expect(row).toEqual({ commit: "on", isolation: "read committed" });
});

test("also where the URL carries options of its own", async () => {
  const joiner = own.url.includes("?") ? "&" : "?";
  const url = `${own.url}${joiner}options=-c%20search_path%3Dbills%20-c%20statement_timeout%3D1&application_name=x`;
  expect(await limits(openPool({ url }, { maxConnections: 1, applicationName: "tally-cli" }))).toEqual({
    statement: "1min",
    lock: "15s",
    idle: "1min",
    name: "tally-cli",
    path: "bills",
  });
});

test("the environment's PG variables change nothing", async () => {
  const script = `
    import { openPool } from "${import.meta.dir}/../../src/database/pool.ts";
    const db = openPool({ url: process.argv[1] }, { maxConnections: 1 });
    const [row] = await db\`SELECT current_database() AS database, current_user AS who\`;
    console.log(row.database, row.who);
    await db.close();`;
  const env = {
    DATABASE_URL: "postgres://x:x@127.0.0.1:1/x",
    POSTGRES_URL: "postgres://x:x@127.0.0.1:1/x",
    PGHOST: "127.0.0.1",
    PGPORT: "1",
    PGDATABASE: "x",
    PGUSER: "x",
    PGPASSWORD: "x",
    PGSSLMODE: "require",
  };
  const run = Bun.spawn([process.execPath, "-e", script, own.url], {
    env,
    stdout: "pipe",
    stderr: "inherit",
  });
  const [expected] = await own.db`SELECT current_database() || ' ' || current_user AS text`;
  expect((await run.stdout.text()).trim()).toBe(expected.text);
});

test("a URL that can't be read is refused at once", () => {
  expect(() => openPool({ url: "postgres://" }, { maxConnections: 1 })).toThrow(
    "the database URL names no host",
  );
});
