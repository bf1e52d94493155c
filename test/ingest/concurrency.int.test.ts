/** Concurrent batches over the same events and resources: stored once, no deadlock, rows = replay. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Database, Transaction } from "../../src/database/connection.ts";
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
import { itemText } from "./items.ts";
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

/** A sender that has done its work and commits only when it is let go. */
interface Held {
  commit(): Promise<void>;
}

async function held(pool: Database, cloud: string, items: readonly string[]): Promise<Held> {
  const worked = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  const late = new Proxy(pool, {
    apply: (target, _, parameters) => Reflect.apply(target, undefined, parameters),
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name !== "begin") return typeof value === "function" ? value.bind(target) : value;
      return (work: (tx: Transaction) => Promise<unknown>) =>
        target.begin(async (tx) => {
          const done = await work(tx);
          worked.resolve();
          await letGo.promise;
          return done;
        });
    },
  });
  const sending = ingestItems(late, items, cloud);
  await Promise.race([worked.promise, sending]);
  return {
    async commit() {
      letGo.resolve();
      expect((await sending).accepted).toBe(items.length);
    },
  };
}

test("a batch gets through however many of its new resources others make while it is being stored", async () => {
  const cloud = "os-overtaken";
  const resources = Array.from({ length: 12 }, (_, n) => `vm-${String(n).padStart(2, "0")}`);
  const item = (resource: string, by: string, minute: string) =>
    itemText({
      event_id: `"${by}-${resource}"`,
      timestamp: `"2026-03-01T08:${minute}:00Z"`,
      cloud: `"${cloud}"`,
      resource_id: `"${resource}"`,
    });
  const pool = database.pool(3);
  let done = false;
  const waiting = async (count: number) => {
    for (;;) {
      const [row]: { n: number }[] = await database.db`
        SELECT count(*)::int AS n FROM pg_stat_activity
         WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
      if (row?.n === count || done) return;
    }
  };
  // The batch makes its rows in order and waits at the last, which another one has made. The one before is the batch's
  // own: who wants to make it waits for the batch, and has it as soon as the batch begins anew. And so forth.
  const make = (resource: string) => held(pool, cloud, [item(resource, "theirs", "00")]);
  const [last = "", ...before] = resources.toReversed();
  let made = await make(last);
  const batch = ingestItems(
    pool,
    resources.map((resource) => item(resource, "ours", "05")),
    cloud,
  ).finally(() => {
    done = true;
  });
  for (const resource of before) {
    await waiting(1);
    const making = make(resource);
    await waiting(2);
    await made.commit();
    made = await making;
  }
  await waiting(1);
  await made.commit();

  expect(await batch).toMatchObject({ accepted: 12, duplicates: 0, rejected: [] });
  const rows: { resourceId: string; lastEventId: string; events: number }[] = await database.db`
    SELECT c.resource_id AS "resourceId", c.last_event_id AS "lastEventId",
           (SELECT count(*)::int FROM events e WHERE e.cloud = ${cloud} AND e.resource_id = c.resource_id) AS events
      FROM current_resources c WHERE cloud = ${cloud} ORDER BY resource_id`;
  expect(rows).toEqual(
    resources.map((resource) => ({ resourceId: resource, lastEventId: `ours-${resource}`, events: 2 })),
  );
}, 30_000);
