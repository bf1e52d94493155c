/** A run, from the lock to its row: what it asks, decides and tells. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { RunFailure } from "../../src/reconcile/adapter.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import {
  auditRows,
  booked,
  collect,
  collected,
  created,
  emptied,
  NONE_DEFERRED,
  NOW,
  payloads,
  rows,
  run,
  runServices,
  syncRuns,
} from "./runs.ts";
import { at, ended, instance, LARGE, type ScriptedCloud, scriptedCloud } from "./scripted-adapter.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => emptied(database.db));
afterAll(() => database.drop());

describe("a run", () => {
  test("books what differs, and a second one finds nothing", async () => {
    const services = runServices(database.db);
    await collect(services, created("changed"), created("gone"), created("reported"), created("same"));
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
    expect(second.corrections).toEqual([]);
    const none = { created: 0, updated: 0, deleted: 0, deferred: NONE_DEFERRED, errors: [], error_count: 0 };
    expect(await syncRuns(database.db)).toEqual([
      { id: first.runId, status: "completed", stats: { ...none, created: 1, updated: 1, deleted: 2 } },
      { id: second.runId, status: "completed", stats: none },
    ]);
  });

  test("names its corrections after itself, and each says why it is there", async () => {
    const services = runServices(database.db);
    await collect(services, created("gone"));
    const { cloud } = scriptedCloud("eu1", [instance("new", { provider: { name: "web" } })]);
    const { runId, corrections } = await run(services, cloud);
    const id = (rest: string) =>
      `recon-${createHash("sha256").update(`${runId}:eu1:instance:${rest}`).digest("hex")}`;
    expect(corrections.map(({ eventId }) => eventId)).toEqual([id("new:create"), id("gone:delete")]);
    const reconciliation = (reason: string) => ({ run_id: runId, reason });
    expect(await payloads(database.db)).toEqual({
      [id("new:create")]: {
        state: "active",
        size: { vcpus: 2, ram_gb: 4, disk_gb: 40, flavor: "m1.small" },
        provider: { name: "web" },
        reconciliation: reconciliation("it is not in the record"),
      },
      [id("gone:delete")]: { reconciliation: reconciliation("the cloud no longer lists it") },
    });
  });

  test("takes `at` for its one clock", async () => {
    const services = runServices(database.db);
    await collect(services, created("a"));
    const virtual = at("2031-01-01T00:00:00Z");
    const { cloud } = scriptedCloud("eu1", []);
    const { startedAt, finishedAt } = await run(services, cloud, { at: virtual });
    expect(startedAt).toBe(virtual);
    expect(finishedAt - virtual).toBeLessThan(60_000_000n);
    expect(finishedAt).toBeGreaterThanOrEqual(virtual);
    expect(await booked(database.db)).toEqual(["sync.delete a 2031-01-01T00:00:00.000000Z"]);
  });

  test("books more than a batch of corrections, and a record of more than a page", async () => {
    const services = runServices(database.db);
    const ids = Array.from({ length: 2_500 }, (_, i) => `i${i}`);
    await collect(services, ...ids.slice(0, 2_200).map(created));
    const { cloud } = scriptedCloud(
      "eu1",
      ids.map((id, i) => instance(id, i % 4 === 0 ? { state: "shutoff" } : {})),
    );
    const outcome = await run(services, cloud);
    expect(outcome.stats).toMatchObject({ created: 300, updated: 550, deleted: 0, errorCount: 0 });
    expect(outcome.corrections).toHaveLength(850);
    expect((await run(services, cloud)).corrections).toEqual([]);
  });

  test("leaves one audit row of its own beside those of its batches", async () => {
    const services = runServices(database.db);
    const { cloud } = scriptedCloud("eu1", [instance("a")]);
    const { runId } = await run(services, cloud, { actor: "admin-cli", confirmMassDelete: true });
    expect(await auditRows(database.db)).toEqual([
      {
        actor: "admin-cli",
        action: "sync.run",
        object: `sync_run ${runId}`,
        details: { cloud: "eu1", confirm_mass_delete: true },
      },
      {
        actor: "admin-cli",
        action: "events.ingest",
        object: "batch ",
        details: { source: "reconciliation", accepted: 1, duplicates: 0, rejected: 0 },
      },
    ]);
  });

  test("counts itself", async () => {
    const services = runServices(database.db);
    await collect(services, created("a"), created("b"));
    const { cloud, script } = scriptedCloud("eu1", [
      instance("a", { state: "error" }),
      instance("c", { inTransition: true }),
      instance("d", { changedAt: NOW }),
    ]);
    await run(services, cloud);
    script.refuses = new RunFailure("no");
    await run(services, cloud);
    const text = await services.metrics.registry.metrics();
    for (const line of [
      'tally_sync_runs_total{cloud="eu1",status="completed"} 1',
      'tally_sync_runs_total{cloud="eu1",status="failed"} 1',
      'tally_sync_resources_reconciled_total{cloud="eu1",action="create"} 0',
      'tally_sync_resources_reconciled_total{cloud="eu1",action="update"} 1',
      'tally_sync_resources_reconciled_total{cloud="eu1",action="delete"} 1',
      'tally_sync_resources_deferred_total{cloud="eu1",reason="transitional"} 1',
      'tally_sync_resources_deferred_total{cloud="eu1",reason="recent"} 1',
      'tally_sync_errors_total{cloud="eu1"} 1',
      'tally_sync_duration_seconds_count{cloud="eu1"} 2',
      `tally_sync_last_success_timestamp_seconds{cloud="eu1"} ${NOW / 1_000_000n}`,
      'tally_sync_withheld_deletes_total{cloud="eu1"} 0',
    ]) {
      expect(text.split("\n")).toContain(line);
    }
  });
});

describe("what ended is asked for", () => {
  test("never on the first run; later since the last completed one's start, less the settle window", async () => {
    const services = runServices(database.db);
    const { cloud, script, asked } = scriptedCloud();
    await run(services, cloud, { at: at("2026-03-01T00:00:00Z") });
    await run(services, cloud, { at: at("2026-03-01T00:10:00Z") });
    script.incomplete = { instance: "503" };
    await run(services, cloud, { at: at("2026-03-01T00:20:00Z") });
    script.incomplete = {};
    await run(services, cloud, { at: at("2026-03-01T00:30:00Z") });
    expect(asked).toEqual([
      null,
      at("2026-02-28T23:59:00Z"),
      at("2026-03-01T00:09:00Z"),
      at("2026-03-01T00:09:00Z"),
    ]);
  });

  test("a day back at most", async () => {
    const services = runServices(database.db);
    const { cloud, asked } = scriptedCloud();
    await run(services, cloud, { at: at("2026-03-01T00:00:00Z") });
    await run(services, cloud, { at: at("2026-03-05T00:00:00Z") });
    expect(asked[1]).toBe(at("2026-03-04T00:00:00Z"));
  });

  test("another cloud's run is none", async () => {
    const services = runServices(database.db);
    await run(services, scriptedCloud("eu2").cloud);
    const { cloud, asked } = scriptedCloud("eu1");
    await run(services, cloud);
    expect(asked).toEqual([null]);
  });
});

describe("not answering is not empty", () => {
  test("a type that was not read to its end loses nothing, and the run fails", async () => {
    const services = runServices(database.db);
    await collect(services, created("seen"), created("unseen"));
    const { cloud, script } = scriptedCloud("eu1", [instance("seen", { state: "error" })]);
    script.incomplete = { instance: "page 2: HTTP 503" };
    const outcome = await run(services, cloud);
    expect(outcome.status).toBe("failed");
    expect(await booked(database.db)).toEqual(["sync.update seen 2026-03-02T12:00:00.000000Z"]);
    expect(await syncRuns(database.db)).toMatchObject([
      {
        status: "failed",
        stats: { updated: 1, deleted: 0, errors: ["instance: page 2: HTTP 503"], error_count: 1 },
      },
    ]);
    script.incomplete = {};
    await run(services, cloud);
    expect((await rows(database.db)).map(({ id, state }) => [id, state])).toEqual([
      ["seen", "error"],
      ["unseen", "deleted"],
    ]);
  });

  test.each([
    ["without a state", instance("seen", { state: null })],
    ["under a name that no row can have", instance("s".repeat(513))],
  ])("a resource that is told of %s leaves its type incomplete: nothing is gone", async (_, told) => {
    const services = runServices(database.db);
    await collect(services, created("seen"));
    const { cloud } = scriptedCloud("eu1", [told]);
    const outcome = await run(services, cloud);
    expect(outcome).toMatchObject({ status: "failed", stats: { deleted: 0, errorCount: 1 } });
    expect(await rows(database.db)).toMatchObject([{ id: "seen", deleted: null }]);
  });

  test.each([
    [
      "refuses the login",
      (cloud: ScriptedCloud) => (cloud.script.refuses = new RunFailure("Keystone refused: 401")),
    ],
    [
      "breaks off in the middle",
      (cloud: ScriptedCloud) => {
        cloud.script.afterListing = () => Promise.reject(new RunFailure("Keystone refused: 401"));
      },
    ],
  ])("a cloud that %s: nothing is booked", async (_, breakIt) => {
    const services = runServices(database.db);
    await collect(services, created("a"));
    const scripted = scriptedCloud("eu1", [instance("b")]);
    breakIt(scripted);
    const outcome = await run(services, scripted.cloud);
    expect(outcome).toMatchObject({ status: "failed", compared: false });
    expect(await booked(database.db)).toEqual([]);
    expect(await syncRuns(database.db)).toMatchObject([
      { status: "failed", stats: { errors: ["Keystone refused: 401"], error_count: 1 } },
    ]);
  });

  test("an adapter's own fault is told, and logged with its stack", async () => {
    const services = runServices(database.db);
    const { cloud, script } = scriptedCloud();
    script.refuses = new TypeError("x is not a function");
    const { stats } = await run(services, cloud);
    expect(stats.errors).toEqual(["x is not a function"]);
    expect(services.logged).toContainEqual(
      expect.objectContaining({ level: "ERROR", message: "a reconciliation run broke off", cloud: "eu1" }),
    );
  });

  test("errors are bounded, and counted all the same", async () => {
    const services = runServices(database.db);
    const nameless = Array.from({ length: 80 }, () => instance("", { resourceType: `t${"x".repeat(600)}` }));
    const { cloud } = scriptedCloud("eu1", nameless);
    await run(services, cloud);
    const [kept] = await syncRuns(database.db);
    const errors = kept?.stats.errors as string[];
    expect(kept?.stats.error_count).toBe(80);
    expect(errors).toHaveLength(50);
    expect(Math.max(...errors.map((error) => error.length))).toBeLessThanOrEqual(501);
  });
});

describe("what can't be booked is told", () => {
  test("a size that its schema refuses: a dead letter, and an error of the run", async () => {
    const services = runServices(database.db);
    const { cloud } = scriptedCloud("eu1", [instance("a", { size: '{"vcpus":0}' }), instance("b")]);
    const { stats } = await run(services, cloud);
    expect(stats).toMatchObject({ created: 1, errorCount: 1 });
    expect(stats.errors).toEqual([
      "instance a: its sync.create was refused: size_schema: 'ram_gb' is a required property; " +
        "'disk_gb' is a required property; 'flavor' is a required property; vcpus: must be >= 1",
    ]);
    const letters: unknown[] = await database.db`SELECT FROM rejected_events WHERE source = 'reconciliation'`;
    expect(letters).toHaveLength(1);
    expect(await booked(database.db)).toEqual(["sync.create b 2026-03-01T00:00:00.000000Z"]);
  });

  test("a project that no event can name", async () => {
    const services = runServices(database.db);
    const { cloud } = scriptedCloud("eu1", [instance("a", { projectId: "" })]);
    const { stats } = await run(services, cloud);
    expect(stats.errors).toEqual([
      "instance a: its sync.create was refused: schema: project_id: must be 1 to 512 bytes, got 0",
    ]);
  });

  test("a resource whose size is unknown", async () => {
    const services = runServices(database.db);
    const { cloud } = scriptedCloud("eu1", [instance("a", { size: null })]);
    const outcome = await run(services, cloud);
    expect(outcome.status).toBe("failed");
    expect(outcome.stats.errors).toEqual(["instance a: it is not in the record, and its size is unknown"]);
  });
});

describe("the mass-delete brake", () => {
  test("withholds, fails the run with the counts, and yields to a confirmation", async () => {
    const services = runServices(database.db);
    const ids = Array.from({ length: 40 }, (_, i) => `i${i}`);
    await collect(services, ...ids.map(created));
    const { cloud } = scriptedCloud(
      "eu1",
      ids.slice(0, 25).map((id) => instance(id)),
    );
    const withheld = await run(services, cloud);
    expect(withheld.status).toBe("failed");
    expect(withheld.stats.errors).toEqual([
      "instance: 15 of 40 living resources are not listed, more than 20 %: 15 deletes are withheld until a run confirms the mass delete",
    ]);
    expect(await booked(database.db)).toEqual([]);
    expect(await services.metrics.registry.metrics()).toContain(
      'tally_sync_withheld_deletes_total{cloud="eu1"} 15',
    );
    const confirmed = await run(services, cloud, { confirmMassDelete: true });
    expect(confirmed).toMatchObject({ status: "completed", stats: { deleted: 15 } });
  });
});

describe("size names", () => {
  const NAMES = [{ resourceType: "volume", member: "type", value: "0d5c", name: "fast" }];
  const volume = instance("v", { resourceType: "volume", size: '{"size_gb":10,"type":"fast"}' });
  const reported = (id: string) =>
    collected(id, "volume.create.end", "2026-03-01T00:00:00Z", {
      resourceType: "volume",
      size: '{"size_gb":10,"type":"0d5c"}',
    });
  const stored = async (): Promise<{ name: string }[]> =>
    await database.db`SELECT name FROM size_names WHERE cloud = 'eu1'`;

  test("an id that came before the first run is corrected by it, and one that comes after is named at once", async () => {
    const services = runServices(database.db);
    await collect(services, reported("v"));
    const { cloud, script } = scriptedCloud("eu1", [volume]);
    script.sizeNames = NAMES;
    expect((await run(services, cloud)).stats).toMatchObject({ updated: 1, errorCount: 0 });
    await collect(services, reported("w"));
    const sizes: { size: string }[] = await database.db`
      SELECT size::text AS size FROM current_resources WHERE cloud = 'eu1' ORDER BY resource_id`;
    expect(sizes.map(({ size }) => JSON.parse(size))).toEqual([
      { size_gb: 10, type: "fast" },
      { size_gb: 10, type: "fast" },
    ]);
  });

  test("are replaced whole", async () => {
    const services = runServices(database.db);
    const { cloud, script } = scriptedCloud();
    script.sizeNames = NAMES;
    await run(services, cloud);
    script.sizeNames = [{ resourceType: "volume", member: "type", value: "77aa", name: "slow" }];
    await run(services, cloud);
    expect(await stored()).toEqual([{ name: "slow" }]);
  });

  test.each([
    ["that could not be read", new Error("cinder: HTTP 503"), "size names: cinder: HTTP 503"],
    ["that can't be stored", [{ ...NAMES[0], name: "a\0b" }], "size names: "],
  ])("%s: the old ones stay, the run fails, what it decided is booked", async (_, names, error) => {
    const services = runServices(database.db);
    const { cloud, script } = scriptedCloud("eu1", [instance("a")]);
    script.sizeNames = NAMES;
    await run(services, cloud);
    script.sizeNames = names as Error;
    script.resources = [instance("a", { state: "error" })];
    const outcome = await run(services, cloud);
    expect(outcome).toMatchObject({ status: "failed", stats: { updated: 1, errorCount: 1 } });
    expect(outcome.stats.errors[0]).toStartWith(error);
    expect(await stored()).toEqual([{ name: "fast" }]);
  });

  test("a dry run leaves them alone", async () => {
    const { cloud, script } = scriptedCloud();
    script.sizeNames = NAMES;
    await run(runServices(database.db), cloud, { dryRun: true });
    expect(await stored()).toEqual([]);
  });
});

describe("a dry run", () => {
  test("says what would be booked, and writes nothing", async () => {
    const services = runServices(database.db);
    await collect(services, created("gone"));
    const { cloud } = scriptedCloud("eu1", [instance("new")]);
    const before = await auditRows(database.db);
    const outcome = await run(services, cloud, { dryRun: true });
    expect(outcome).toMatchObject({
      dryRun: true,
      status: "completed",
      compared: true,
      stats: { created: 1, updated: 0, deleted: 1 },
    });
    expect(outcome.corrections.map(({ action, resourceId }) => [action, resourceId])).toEqual([
      ["create", "new"],
      ["delete", "gone"],
    ]);
    expect(await booked(database.db)).toEqual([]);
    expect(await syncRuns(database.db)).toEqual([]);
    expect(await auditRows(database.db)).toEqual(before);
    expect(await services.metrics.registry.metrics()).not.toContain("tally_sync_runs_total{");
  });
});
