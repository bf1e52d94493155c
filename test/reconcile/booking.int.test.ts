/** Booking what a run decided: what moves meanwhile, what breaks off, what is handed in again. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Transaction } from "../../src/database/connection.ts";
import { ingest } from "../../src/ingest/pipeline.ts";
import type { ObservedResource } from "../../src/reconcile/adapter.ts";
import { book, bookingPipeline, correctionEvent } from "../../src/reconcile/booking.ts";
import { RunStats } from "../../src/reconcile/stats.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import {
  booked,
  collect,
  collected,
  created,
  emptied,
  NONE_DEFERRED,
  rows,
  run,
  runServices,
  syncRuns,
} from "./runs.ts";
import { instance, scriptedCloud } from "./scripted-adapter.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => emptied(database.db));
afterAll(() => database.drop());

describe("a booking that breaks off", () => {
  test("at a commit that the database refuses: the row counts what landed, and no more", async () => {
    const services = runServices(database.db);
    // Created in the order of their ids: the first batch holds i0000 to i0999, the second one the refused one.
    const ids = Array.from({ length: 1_500 }, (_, i) => `i${String(i).padStart(4, "0")}`);
    const { cloud } = scriptedCloud(
      "eu1",
      ids.map((id) => instance(id)),
    );
    await database.db.unsafe(`
      CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
      CREATE CONSTRAINT TRIGGER full_at_commit AFTER INSERT ON current_resources DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.resource_id = 'i1400') EXECUTE FUNCTION disk_is_full()`);
    try {
      const { status, stats } = await run(services, cloud);
      expect(status).toBe("failed");
      expect(stats).toMatchObject({
        created: 1_000,
        errors: ["the database failed: no space left on device"],
      });
    } finally {
      await database.db.unsafe("DROP FUNCTION disk_is_full CASCADE");
    }
    expect(await booked(database.db)).toHaveLength(1_000);
    expect(await syncRuns(database.db)).toMatchObject([{ status: "failed", stats: { created: 1_000 } }]);
    expect(await services.metrics.registry.metrics()).toContain(
      'tally_sync_resources_reconciled_total{cloud="eu1",action="create"} 1000',
    );
    expect((await run(services, cloud)).stats).toMatchObject({ created: 500, errorCount: 0 });
  });

  test("after a commit whose answer was lost: the row counts what landed", async () => {
    const services = runServices(database.db);
    const { cloud } = scriptedCloud("eu1", [instance("a")]);
    let answers = 0;
    const { db } = database;
    const begin = db.begin.bind(db);
    // Its row, the size names, the batch: the last one's answer is lost.
    const losing = async (work: (tx: Transaction) => Promise<unknown>) => {
      const result = await begin(work);
      if (++answers < 3) return result;
      throw Object.assign(new Error("Connection closed"), { code: "ERR_POSTGRES_CONNECTION_CLOSED" });
    };
    Object.defineProperty(db, "begin", { value: losing, configurable: true, writable: true });
    try {
      const { status, stats } = await run(services, cloud);
      expect(answers).toBe(3);
      expect({ status, stats }).toMatchObject({
        status: "failed",
        stats: { created: 1, errors: ["the database failed: Connection closed"] },
      });
    } finally {
      Object.defineProperty(db, "begin", { value: begin, configurable: true, writable: true });
    }
    expect(await booked(database.db)).toHaveLength(1);
    expect(await syncRuns(database.db)).toMatchObject([{ status: "failed", stats: { created: 1 } }]);
  });

  test("a run whose row another one has closed meanwhile has failed", async () => {
    const services = runServices(database.db);
    const { cloud, script } = scriptedCloud("eu1", [instance("a")]);
    script.afterListing = async () => {
      await database.db`UPDATE sync_runs SET status = 'failed', finished_at = now() WHERE status = 'running'`;
    };
    const { status, stats } = await run(services, cloud);
    expect(status).toBe("failed");
    expect(stats.errors).toEqual(["its lock was lost, and another run has closed its row"]);
  });
});

describe("events that come in between the comparison and the booking", () => {
  /** What a run decides; then something comes in; then what was decided is booked. */
  async function decideAndBook(seen: ObservedResource[], before: string[], between: string[]) {
    const services = runServices(database.db);
    await collect(services, ...before);
    const { cloud } = scriptedCloud("eu1", seen);
    const { runId, corrections } = await run(services, cloud, { dryRun: true });
    await collect(services, ...between);
    const stats = new RunStats();
    const of = { id: runId, cloud: "eu1", platform: "openstack", actor: "internal" };
    await book(bookingPipeline(services), of, [...corrections], stats, 10);
    return stats;
  }

  test("are none: all is booked", async () => {
    const stats = await decideAndBook(
      [instance("a", { state: "shutoff" }), instance("b")],
      [created("a")],
      [],
    );
    expect(stats).toMatchObject({ created: 1, updated: 1, deferred: NONE_DEFERRED, errorCount: 0 });
  });

  test("move a resource on: its correction is left to the next run, its neighbours' aren't", async () => {
    const stats = await decideAndBook(
      [instance("a", { state: "shutoff" }), instance("b", { state: "shutoff" })],
      [created("a"), created("b")],
      [collected("a", "compute.instance.power_off.end", "2026-03-02T10:00:00Z", { state: "shutoff" })],
    );
    expect(stats).toMatchObject({ updated: 1, deferred: { transitional: 0, recent: 1 }, errorCount: 0 });
    expect(await booked(database.db)).toEqual(["sync.update b 2026-03-02T12:00:00.000000Z"]);
  });

  test("make a resource known: it is not created a second time", async () => {
    const stats = await decideAndBook([instance("a")], [], [created("a")]);
    expect(stats).toMatchObject({ created: 0, deferred: { transitional: 0, recent: 1 } });
  });

  test("end a resource that was seen alive: it is not brought back", async () => {
    const end = collected("a", "compute.instance.delete.end", "2026-03-02T10:00:00Z");
    const stats = await decideAndBook([instance("a")], [], [created("a"), end]);
    expect(stats).toMatchObject({ created: 0, deferred: { transitional: 0, recent: 1 } });
    expect(await rows(database.db)).toMatchObject([{ id: "a", deleted: "2026-03-02T10:00:00.000000Z" }]);
  });

  test("end a resource that was gone: it is not ended a second time", async () => {
    const end = collected("a", "compute.instance.delete.end", "2026-03-02T10:00:00Z");
    const stats = await decideAndBook([], [created("a")], [end]);
    expect(stats).toMatchObject({ deleted: 0, deferred: { transitional: 0, recent: 1 } });
  });

  test("older than the row's newest event move nothing: the correction stands", async () => {
    const late = collected("a", "compute.instance.update", "2026-02-28T00:00:00Z", { state: "building" });
    const stats = await decideAndBook([instance("a", { state: "shutoff" })], [created("a")], [late]);
    expect(stats).toMatchObject({ updated: 1, deferred: NONE_DEFERRED });
    expect(await rows(database.db)).toMatchObject([{ id: "a", state: "shutoff" }]);
  });
});

test("the corrections of one run, handed in again, add nothing", async () => {
  const services = runServices(database.db);
  await collect(services, created("changed"), created("gone"));
  const { cloud } = scriptedCloud("eu1", [instance("changed", { state: "error" }), instance("new")]);
  const { runId, corrections } = await run(services, cloud);
  expect(corrections).toHaveLength(3);
  const before = await rows(database.db);
  const of = { id: runId, cloud: "eu1", platform: "openstack", actor: "internal" };
  const text = `[${corrections.map((correction) => correctionEvent(of, correction)).join(",")}]`;
  const sender = { actor: "internal", scope: null, source: "reconciliation" } as const;
  expect(await ingest(bookingPipeline(services), sender, text, JSON.parse(text))).toEqual({
    accepted: 0,
    duplicates: 3,
    rejected: [],
  });
  expect(await rows(database.db)).toEqual(before);
});
