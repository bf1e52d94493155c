/** A run, from the lock to its row. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { booked, collect, collected, NOW, rows, run, runServices, syncRuns } from "./runs.ts";
import { at, ended, instance, LARGE, scriptedCloud } from "./scripted-adapter.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(async () => {
  const { db } = database;
  await db.unsafe("ALTER TABLE events DISABLE TRIGGER events_are_immutable");
  await db.unsafe("TRUNCATE events, current_resources, sync_runs, size_names, rejected_events, audit_log");
  await db.unsafe("ALTER TABLE events ENABLE TRIGGER events_are_immutable");
});
afterAll(() => database.drop());

const NOTHING = { transitional: 0, recent: 0 };

describe("a run", () => {
  test("books what differs, and a second one finds nothing", async () => {
    const services = runServices(database.db);
    await collect(
      services,
      collected("changed", "compute.instance.create.end", "2026-03-01T00:00:00Z"),
      collected("gone", "compute.instance.create.end", "2026-03-01T00:00:00Z"),
      collected("reported", "compute.instance.create.end", "2026-03-01T00:00:00Z"),
      collected("same", "compute.instance.create.end", "2026-03-01T00:00:00Z"),
    );
    const { cloud } = scriptedCloud("eu1", [
      instance("changed", { state: "shutoff", size: LARGE }),
      instance("new", { createdAt: at("2026-03-01T07:00:00Z"), changedAt: at("2026-03-01T07:01:00Z") }),
      instance("same"),
      ended("reported", "2026-03-02T03:00:00Z"),
    ]);
    const first = await run(services, cloud);
    expect(first).toMatchObject({ status: "completed", startedAt: NOW, compared: true, dryRun: false });
    expect(await booked(database.db)).toEqual([
      "sync.create new 2026-03-01T07:00:00.000000Z",
      "sync.delete reported 2026-03-02T03:00:00.000000Z",
      "sync.update changed 2026-03-02T12:00:00.000000Z",
      "sync.delete gone 2026-03-02T12:00:00.000000Z",
    ]);
    const projected = await rows(database.db);
    expect(projected.map(({ id, state, flavor, deleted }) => [id, state, flavor, deleted])).toEqual([
      ["changed", "shutoff", "m1.large", null],
      ["gone", "deleted", "m1.small", "2026-03-02T12:00:00.000000Z"],
      ["new", "active", "m1.small", null],
      ["reported", "deleted", "m1.small", "2026-03-02T03:00:00.000000Z"],
      ["same", "active", "m1.small", null],
    ]);
    const second = await run(services, cloud, { at: at("2026-03-02T12:10:00Z") });
    expect(second.stats).toMatchObject({
      created: 0,
      updated: 0,
      deleted: 0,
      deferred: NOTHING,
      errorCount: 0,
    });
    expect(await syncRuns(database.db)).toEqual([
      {
        id: first.runId,
        status: "completed",
        stats: { created: 1, updated: 1, deleted: 2, deferred: NOTHING, errors: [], error_count: 0 },
      },
      {
        id: second.runId,
        status: "completed",
        stats: { created: 0, updated: 0, deleted: 0, deferred: NOTHING, errors: [], error_count: 0 },
      },
    ]);
  });
});
