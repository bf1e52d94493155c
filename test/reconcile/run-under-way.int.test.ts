/** Runs that meet another one, lose their lock, or are cancelled. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { RunFailure } from "../../src/reconcile/adapter.ts";
import { CloudHeld, runSync } from "../../src/reconcile/run.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { booked, emptied, run, runServices, syncRuns } from "./runs.ts";
import { instance, scriptedCloud } from "./scripted-adapter.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => emptied(database.db));
afterAll(() => database.drop());

describe("one run a cloud", () => {
  test("a second one is refused while the first is under way, another cloud's isn't", async () => {
    const services = runServices(database.db);
    const { cloud, script } = scriptedCloud();
    const listing = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    script.beforeListing = () => {
      listing.resolve();
      return goOn.promise;
    };
    const first = run(services, cloud);
    await listing.promise;
    expect(run(services, cloud)).rejects.toBeInstanceOf(CloudHeld);
    expect(run(services, cloud, { dryRun: true })).rejects.toBeInstanceOf(CloudHeld);
    expect((await run(services, scriptedCloud("eu2").cloud)).status).toBe("completed");
    goOn.resolve();
    expect((await first).status).toBe("completed");
    script.beforeListing = async () => {};
    expect((await run(services, cloud)).status).toBe("completed");
  });

  test("a row that a dead process left is closed by the next run", async () => {
    const services = runServices(database.db);
    await database.db`
      INSERT INTO sync_runs (id, started_at, cloud, platform, status, stats) VALUES
        ('00000000-0000-4000-8000-000000000001', '2026-03-02T11:00:00Z', 'eu1', 'openstack', 'running',
         ${'{"created": 1000, "updated": 0, "deleted": 0, "deferred": {"transitional": 0, "recent": 2}, "errors": [], "error_count": 0}'}::text::jsonb),
        ('00000000-0000-4000-8000-000000000002', '2026-03-02T11:00:00Z', 'eu2', 'openstack', 'running', '{}')`;
    await run(services, scriptedCloud().cloud);
    const kept = await syncRuns(database.db);
    expect(kept.map(({ id, status }) => [id.slice(-1), status]).slice(0, 2)).toEqual([
      ["1", "failed"],
      ["2", "running"],
    ]);
    expect(kept[0]?.stats).toEqual({
      created: 1_000,
      updated: 0,
      deleted: 0,
      deferred: { transitional: 0, recent: 2 },
      errors: ["the process that ran it ended before the run did"],
      error_count: 1,
    });
  });

  test("a run whose lock is lost books nothing", async () => {
    const services = runServices(database.db);
    const { cloud, script } = scriptedCloud("eu1", [instance("a")]);
    script.afterListing = async () => {
      await database.db`
        SELECT pg_terminate_backend(pid) FROM pg_locks
        WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    };
    const outcome = await run(services, cloud);
    expect(outcome).toMatchObject({ status: "failed", stats: { created: 0, errorCount: 1 } });
    expect(await booked(database.db)).toEqual([]);
    script.afterListing = async () => {};
    expect((await run(services, cloud)).stats.created).toBe(1);
  });
});

describe("a run that is cancelled", () => {
  test("before its listing is over books nothing", async () => {
    const services = runServices(database.db);
    const { cloud, script } = scriptedCloud("eu1", [instance("a")]);
    const cancel = new AbortController();
    script.afterListing = async () => cancel.abort();
    const outcome = await runSync(services, cloud, {}, cancel.signal);
    expect(outcome).toMatchObject({
      status: "failed",
      stats: { errors: ["the run was cancelled by its caller"] },
    });
    expect(await booked(database.db)).toEqual([]);
  });

  test("while a listing hangs that doesn't listen doesn't wait for it", async () => {
    const services = runServices(database.db);
    const { cloud, script } = scriptedCloud();
    const cancel = new AbortController();
    script.beforeListing = () => {
      setTimeout(() => cancel.abort(new RunFailure("Tally is stopping")), 1);
      return new Promise(() => {});
    };
    const outcome = await runSync(services, cloud, {}, cancel.signal);
    expect(outcome.stats.errors).toEqual(["Tally is stopping"]);
  });

  test("by its budget, whose signal the adapter has", async () => {
    const services = runServices(database.db, { budgetSeconds: 0.05 });
    const { cloud, script } = scriptedCloud("eu1", [instance("a")]);
    script.beforeListing = (signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const outcome = await run(services, cloud);
    expect(outcome.stats.errors).toEqual(["the run's budget of 0.05 s is spent"]);
    expect(await booked(database.db)).toEqual([]);
  });

  test("while its corrections are booked books all of them", async () => {
    const services = runServices(database.db);
    const ids = Array.from({ length: 2_500 }, (_, i) => `i${i}`);
    const { cloud } = scriptedCloud(
      "eu1",
      ids.map((id) => instance(id)),
    );
    const cancel = new AbortController();
    // The first batch waits for this lock: when it is seen waiting, booking has begun.
    const locked = Promise.withResolvers<void>();
    const letGo = Promise.withResolvers<void>();
    const lock = database.db.begin(async (tx) => {
      await tx`LOCK TABLE events IN EXCLUSIVE MODE`;
      locked.resolve();
      await letGo.promise;
    });
    await locked.promise;
    const running = runSync(services, cloud, {}, cancel.signal);
    for (;;) {
      const waiting: unknown[] = await database.db`
        SELECT FROM pg_locks WHERE relation = 'events'::regclass AND NOT granted`;
      if (waiting.length > 0) break;
      await Bun.sleep(5);
    }
    cancel.abort();
    letGo.resolve();
    await lock;
    const outcome = await running;
    expect(outcome.status).toBe("failed");
    expect(outcome.stats).toMatchObject({
      created: 2_500,
      errors: ["the run was cancelled by its caller, while its corrections were booked: all of them were"],
    });
    expect(await booked(database.db)).toHaveLength(2_500);
  });
});
