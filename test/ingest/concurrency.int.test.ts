/** Concurrent batches over the same events and resources: stored once, no deadlock, rows = replay. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Transaction } from "../../src/database/connection.ts";
import { Overtaken } from "../../src/database/faults.ts";
import { openPool } from "../../src/database/pool.ts";
import { together } from "../../src/database/together.ts";
import type { Instant } from "../../src/event/instant.ts";
import type { KeyedEvent } from "../../src/projection/histories.ts";
import { projectEvents } from "../../src/projection/project.ts";
import { type KeyedRow, lockRows, transactionInstant } from "../../src/projection/queries.ts";
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

/** One resource's first event, received when the transaction began. */
function born(resourceId: string, receivedAt: Instant): KeyedEvent {
  return {
    resourceType: "instance",
    resourceId,
    event: {
      timestamp: receivedAt,
      receivedAt,
      eventId: `born-${resourceId}-${receivedAt}`,
      eventType: "compute.instance.create.end",
      platform: "openstack",
      projectId: "p1",
      state: "active",
      size: "{}",
    },
  };
}

test("a batch that found a row made late waits for no batch that is to begin anew on its account", async () => {
  const cloud = "os-circle";
  const keys = ["a", "b"].map((resourceId) => ({ resourceType: "instance", resourceId }));
  const project = async (tx: Transaction, ids: readonly string[], locked: readonly KeyedRow[]) => {
    const now = await transactionInstant(tx);
    return (
      await projectEvents(
        tx,
        cloud,
        ids.map((id) => born(id, now)),
        locked,
      )
    ).writes;
  };
  const pool = database.pool(3);
  const inserted = Promise.withResolvers<void>();
  const waits = Promise.withResolvers<void>();
  // The first batch has both resources and sees neither; the second one finds "b" there.
  const first = pool.begin(async (tx) => {
    expect(await lockRows(tx, cloud, keys)).toEqual([]);
    await pool.begin(async (other) => await together(await project(other, ["b"], [])));
    // One statement inserts both, one after the other: here it is held in between.
    await together(await project(tx, ["a"], []));
    inserted.resolve();
    await waits.promise;
    await together(await project(tx, ["b"], []));
  });
  await inserted.promise;
  const second = pool.begin(async (tx) => {
    const locked = await lockRows(tx, cloud, keys);
    expect(locked.map(({ resourceId }) => resourceId)).toEqual(["b"]);
    const [me]: { pid: number }[] = await tx`SELECT pg_backend_pid() AS pid`;
    const writing = together(await project(tx, ["a", "b"], locked));
    for (;;) {
      const [row]: { waits: boolean }[] = await database.db`
        SELECT cardinality(pg_blocking_pids(${me?.pid})) > 0 AS waits`;
      if (row?.waits === true) break;
    }
    waits.resolve();
    await writing;
  });
  // The first one hears that it was overtaken, at once and by no deadlock, and the second one goes on.
  expect(await Promise.allSettled([first, second])).toEqual([
    { status: "rejected", reason: expect.any(Overtaken) },
    { status: "fulfilled", value: undefined },
  ]);
});
