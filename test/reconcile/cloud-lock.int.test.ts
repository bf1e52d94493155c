/** The lock of a cloud, and what becomes of it when its connection does. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { FaultyNetwork } from "../../scripts/drills/rig/proxy.ts";
import { parseDatabaseUrl } from "../../src/database/address.ts";
import { faultOf } from "../../src/database/faults.ts";
import { openPool } from "../../src/database/pool.ts";
import { withCloudLock } from "../../src/reconcile/cloud-lock.ts";
import { startPgbouncer, WITHOUT_PGBOUNCER } from "../scaling/pgbouncer.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

/** Whether the lock is free. */
async function isFree(cloud: string): Promise<boolean> {
  return !(await withCloudLock(database.db, cloud, 10_000, async () => {})).held;
}

test("holds one cloud, for as long as the work lasts, and gives what the work gave", async () => {
  const done = await withCloudLock(database.db, "eu1", 10_000, async (held) => {
    await held.check();
    expect([await isFree("eu1"), await isFree("eu2")]).toEqual([false, true]);
    return 7;
  });
  expect(done).toEqual({ held: false, value: 7 });
  expect(await isFree("eu1")).toBe(true);
});

test("is free after work that throws, which is thrown on", async () => {
  const work = withCloudLock(database.db, "eu1", 10_000, () => Promise.reject(new Error("no")));
  expect(work).rejects.toThrow("no");
  await work.catch(() => {});
  expect(await isFree("eu1")).toBe(true);
});

test("takes no connection of the pool", async () => {
  const pool = database.pool(1);
  const done = await withCloudLock(pool, "eu1", 10_000, async () => {
    const [row]: { one: number }[] = await pool`SELECT 1 AS one`;
    return row?.one;
  });
  expect(done).toEqual({ held: false, value: 1 });
});

test("is lost with its connection: the check says so, and what was done stays done", async () => {
  const done = await withCloudLock(database.db, "eu1", 10_000, async (held) => {
    await database.db`
      SELECT pg_terminate_backend(pid) FROM pg_locks
      WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    expect(held.check()).rejects.toThrow();
    await held.check().catch(() => {});
    expect(await isFree("eu1")).toBe(true);
    return "done";
  });
  expect(done).toEqual({ held: false, value: "done" });
});

test("a network that swallows everything doesn't hold anybody up for long", async () => {
  const address = parseDatabaseUrl(database.url);
  if (typeof address === "string") throw new Error(address);
  const { host, port, user, password, database: name } = address;
  const target = host.startsWith("/") ? { path: join(host, `.s.PGSQL.${port}`) } : { host, port };
  const network = await FaultyNetwork.start(target);
  const url = `postgres://${user}:${password}@127.0.0.1:${network.port}/${name}?sslmode=disable`;
  const pool = openPool({ url }, { maxConnections: 1 });
  try {
    const done = await withCloudLock(pool, "eu1", 200, async (held) => {
      network.swallowing = true;
      return faultOf(await held.check().catch((error: unknown) => error));
    });
    expect(done).toEqual({ held: false, value: "unavailable" });
    const again = await withCloudLock(pool, "eu1", 200, async () => {}).catch((error: unknown) => error);
    expect(faultOf(again)).toBe("unavailable");
  } finally {
    await pool.close({ timeout: 0 });
    await network.stop();
  }
});

test.skipIf(WITHOUT_PGBOUNCER !== null)(
  "behind a pooler that lends a connection for one transaction, the lock is kept all the same",
  async () => {
    const pooler = await startPgbouncer(database.url);
    const pools = [1, 1].map((connections) => openPool({ url: pooler.url }, { maxConnections: connections }));
    const [one = database.db, other = database.db] = pools;
    try {
      const done = await withCloudLock(one, "eu1", 10_000, async (held) => {
        // Enough transactions that a lock of a session would have been somebody else's by now.
        for (let n = 0; n < 8; n++) await other.begin(async (tx) => await tx`SELECT`);
        await held.check();
        const again = await withCloudLock(other, "eu1", 10_000, async () => {});
        return again.held && !(await isFree("eu1"));
      });
      expect(done).toEqual({ held: false, value: true });
      expect(await isFree("eu1")).toBe(true);
    } finally {
      for (const pool of pools) await pool.close({ timeout: 0 });
      await pooler.stop();
    }
  },
);
