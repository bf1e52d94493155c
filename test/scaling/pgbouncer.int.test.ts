/** Tally behind a pooler that lends a server for one transaction: nothing that a session would have kept is relied on. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Database } from "../../src/database/connection.ts";
import { migrateUp, schemaState } from "../../src/database/migrations.ts";
import { readPage } from "../../src/database/object-text.ts";
import { isPooled, openPool } from "../../src/database/pool.ts";
import { transaction } from "../../src/database/transaction.ts";
import { probeDatabase } from "../../src/telemetry/probe.ts";
import { importAll } from "../../src/transfer/import.ts";
import { StreamReader } from "../../src/transfer/reader.ts";
import { verify } from "../../src/verify/verify.ts";
import { itemText } from "../ingest/items.ts";
import { emptyDatabase, type TestDatabase } from "../support/database.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { digests, NEWEST, streaming, streamOf } from "../transfer/rich-database.ts";
import { type Pooler, startPgbouncer, WITHOUT_PGBOUNCER } from "./pgbouncer.ts";

if (WITHOUT_PGBOUNCER !== null) console.warn(WITHOUT_PGBOUNCER);

async function nameOf({ db }: TestDatabase): Promise<string> {
  const [row]: { name: string }[] = await db`SELECT quote_ident(current_database()) AS name`;
  return row?.name ?? "";
}

describe.skipIf(WITHOUT_PGBOUNCER !== null)("behind PgBouncer in transaction mode", () => {
  let own: TestDatabase;
  let pooler: Pooler;
  let pooled: Database;
  let server: TestServer;
  const pools: Database[] = [];
  const openPooled = (maxConnections: number) => {
    const db = openPool({ url: pooler.url }, { maxConnections });
    pools.push(db);
    return db;
  };
  beforeAll(async () => {
    own = await emptyDatabase();
    // The tests' own server is set not to wait for the disk.
    await own.db.unsafe(`ALTER DATABASE ${await nameOf(own)} SET synchronous_commit = on`);
    pooler = await startPgbouncer(own.url);
    pooled = openPooled(12);
    // Three processes migrate at once.
    await Promise.all([pooled, openPooled(2), openPooled(2)].map((db) => migrateUp(db)));
    server = await testServer({ db: { ...own, db: pooled } });
  });
  afterAll(async () => {
    await server?.stop();
    for (const pool of pools) await pool.close({ timeout: 0 });
    await pooler?.stop();
    await own?.drop();
  });

  test("migrations that three processes start are applied once", async () => {
    expect(await schemaState(own.db)).toBe("current");
    expect(isPooled(pooled)).toBe(true);
    expect(isPooled(own.db)).toBe(false);
  });

  test("it is ready", async () => {
    const answer = await server.request("/readyz");
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
  });

  test("twelve clients on three servers: every event is there once, every row is its history's", async () => {
    const token = await server.credentials.ingest("openstack", "os-1");
    const send = async (client: number): Promise<number> => {
      let accepted = 0;
      for (let n = 0; n < 6; n++) {
        // All over the same resources, one batch in each round also sent by the next client.
        const items = Array.from({ length: 20 }, (_, i) =>
          itemText({
            event_id: `"e-${(client + (n % 2)) % 12}-${n}-${i}"`,
            timestamp: `"2026-03-01T08:${String(n).padStart(2, "0")}:${String(i).padStart(2, "0")}Z"`,
            resource_id: `"vm-${i}"`,
          }),
        );
        const answer = await server.request("/api/v1/events", {
          method: "POST",
          token,
          body: `[${items.join(",")}]`,
        });
        expect(answer.status).toBe(200);
        const text = await answer.text();
        expect(text).toEndWith('"rejected":[]}');
        accepted += Number(/"accepted":(\d+)/.exec(text)?.[1]);
      }
      return accepted;
    };
    const sums = await Promise.all(Array.from({ length: 12 }, (_, client) => send(client)));
    const [row] = await own.db`SELECT count(*)::int AS n FROM events`;
    expect(row?.n).toBe(12 * 6 * 20);
    expect(sums.reduce((sum, n) => sum + n, 0)).toBe(12 * 6 * 20);
    const faults: unknown[] = [];
    await verify(own.db, (fault) => faults.push(fault));
    expect(faults).toEqual([]);
  });

  test("reads go through it, too", async () => {
    const { admin } = server.credentials;
    const paths = [
      "/api/v1/events?limit=7",
      "/api/v1/resources?limit=7",
      "/api/v1/resources/os-1/instance/vm-1/lifecycle",
      "/api/v1/stats/resources?group_by=cloud,resource_type",
      "/api/v1/audit-log?limit=7",
    ];
    const answers = await Promise.all(
      [...paths, ...paths, ...paths].map((path) => server.request(path, { token: admin })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });

  test("a page is what it is without the pooler, letter for letter", async () => {
    const list = `SELECT to_json(name)::text AS item
                    FROM json_array_elements_text($1::text::json) AS given (name) LIMIT $2::text::int`;
    const values = [JSON.stringify(["ü", "界", "💾", "\\x41", "a\n\u001e"]), "5"];
    // An old habit, of drivers that knew no hexadecimal digits.
    const page = await pooled.begin(async (tx) => {
      await tx`SET LOCAL bytea_output = 'escape'`;
      return await readPage(tx, list, values, 4);
    });
    expect(page.items.toString()).toBe('"ü","界","💾","\\\\x41"');
    expect(page).toEqual(await readPage(own.db, list, values, 4));
  });

  test("a transaction acknowledges what is on the disk only, whatever the role says; and readiness says so", async () => {
    const name = await nameOf(own);
    await own.db.unsafe(`ALTER DATABASE ${name} SET synchronous_commit = off`);
    await own.db.unsafe(`ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`);
    const fresh = await startPgbouncer(own.url);
    const db = openPool({ url: fresh.url }, { maxConnections: 2 });
    const [row] = await transaction(
      db,
      async (tx) =>
        await tx`
        SELECT current_setting('synchronous_commit') AS commit, current_setting('transaction_isolation') AS isolation,
               current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS statement`,
    );
    expect(row).toEqual({ commit: "on", isolation: "read committed", lock: "15s", statement: "1min" });
    expect(await probeDatabase(db)).toBe(
      "behind the pooler, synchronous_commit is not on: set it on Tally's role",
    );
    await db.close({ timeout: 0 });
    await fresh.stop();
    await own.db.unsafe(`ALTER DATABASE ${name} RESET ALL`);
  });

  test("a stream goes out and comes in through it", async () => {
    const target = await emptyDatabase();
    const second = await startPgbouncer(target.url);
    const db = openPool({ url: second.url }, { maxConnections: 2 });
    await importAll(db, "t", await StreamReader.open(streaming(...(await streamOf(pooled))), NEWEST));
    const { audit_log: _, ...rest } = await digests(target.db);
    expect(await digests(own.db)).toMatchObject(rest);
    await db.close({ timeout: 0 });
    await second.stop();
    await target.drop();
  });
});
