/** Concurrent batches over the same events and resources: stored once, no deadlock, rows = replay. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openPool } from "../../src/database/pool.ts";
import { rebuild } from "../../src/projection/rebuild.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { eventText, generateHistory, randomFrom, seedOfRun, shuffle } from "./history-generator.ts";
import { ingestItems, projectionRows } from "./record.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => {
  await database.drop();
});

async function deadlocks(): Promise<number> {
  // Statistics of other backends arrive when they go idle; each pool is closed before this is read.
  const [row]: { n: number }[] = await database.db`
    SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()`;
  return row?.n ?? -1;
}

test("8 clients send the same 50 batches in random orders, a rebuild running beside", async () => {
  const seed = seedOfRun();
  const random = randomFrom(seed);
  try {
    // 120 resources share all batches, so nearly every batch meets every other one.
    const events = shuffle(
      random,
      Array.from({ length: 120 }, (_, n) => generateHistory(random, `c${n}`)).flat(),
    ).map((event) => eventText(event, "os-1"));
    const batches = Array.from({ length: 50 }, (_, n) =>
      shuffle(
        random,
        events.filter((_, i) => i % 50 === n || random() < 0.2),
      ),
    );
    let accepted = 0;
    let told = 0;
    let done = false;
    const clients = Array.from({ length: 8 }, async () => {
      const pool = openPool(database.target, { maxConnections: 1 });
      for (const batch of shuffle(random, batches)) {
        const outcome = await ingestItems(pool, batch);
        accepted += outcome.accepted;
        told += outcome.accepted + outcome.duplicates + outcome.rejected.length;
      }
      await pool.close();
    });
    const rebuilding = (async () => {
      const pool = openPool(database.target, { maxConnections: 1 });
      while (!done) await rebuild(pool, "test", { cloud: null, resourceType: null });
      await pool.close();
    })();
    await Promise.all(clients);
    done = true;
    await rebuilding;

    expect(accepted).toBe(events.length);
    expect(told).toBe(8 * batches.reduce((sum, batch) => sum + batch.length, 0));
    const [stored]: { n: number }[] = await database.db`SELECT count(*)::int AS n FROM events`;
    expect(stored?.n).toBe(events.length);
    const before = await projectionRows(database.db);
    expect(before).toHaveLength(120);
    await rebuild(database.db, "test", { cloud: null, resourceType: null });
    expect(await projectionRows(database.db)).toEqual(before);
    expect(await deadlocks()).toBe(0);
  } catch (error) {
    console.error(`TEST_SEED=${seed}`);
    throw error;
  }
}, 120_000);
