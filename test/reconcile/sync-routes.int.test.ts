/** POST /internal/sync/{cloud}. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { booked, collect, collected, syncRuns } from "./runs.ts";
import { at, instance, LARGE, type ScriptedCloud, scriptedCloud } from "./scripted-adapter.ts";

const SYNC = {
  cloudsConfig: null,
  allowAt: true,
  budgetSeconds: 45,
  settleSeconds: 60,
  intervalSeconds: 600,
  maxAbsentPercent: 20,
};

let server: TestServer;
let strict: TestServer;
let eu1: ScriptedCloud;
beforeAll(async () => {
  eu1 = scriptedCloud("eu1");
  server = await testServer({
    clouds: [eu1.cloud, scriptedCloud("eu/2 ü").cloud],
    settings: { sync: SYNC },
    now: () => at("2026-03-02T12:00:00Z"),
  });
  strict = await testServer({
    db: server.db,
    clouds: [eu1.cloud],
    settings: { sync: { ...SYNC, allowAt: false } },
  });
});
afterAll(async () => {
  await strict.stop();
  await server.stop();
});

async function post(path: string, body?: string, token = server.credentials.internal, on = server) {
  const answer = await on.request(`/internal/sync/${path}`, {
    method: "POST",
    token,
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.text();
  return { status: answer.status, text, json: JSON.parse(text) };
}

const runs = () => syncRuns(server.db.db);

describe("is refused", () => {
  test.each([
    ["another scheme's token", "eu1", undefined, () => server.credentials.admin, 401],
    ["no token", "eu1", undefined, () => "x", 401],
    ["a cloud that isn't configured", "eu9", undefined, undefined, 404],
    ["a body that is no object", "eu1", "[]", undefined, 400],
    ["an unknown member", "eu1", '{"dryrun":true}', undefined, 400],
    ["an instant without an offset", "eu1", '{"at":"2026-03-01T00:00:00"}', undefined, 400],
    ["null for an instant", "eu1", '{"at":null}', undefined, 400],
    ["a switch that is none", "eu1", '{"dry_run":"yes"}', undefined, 400],
    ["another one", "eu1", '{"confirm_mass_delete":1}', undefined, 400],
  ])("%s", async (_, path, body, token, status) => {
    const before = await runs();
    const answer = await post(path, body, token?.());
    expect(answer.status).toBe(status);
    expect(await runs()).toEqual(before);
  });

  test("an instant, where the settings don't allow one: no run", async () => {
    const before = await runs();
    const answer = await post("eu1", '{"at":"2026-03-01T00:00:00Z"}', strict.credentials.internal, strict);
    expect(answer.status).toBe(400);
    expect(answer.json.errors).toEqual([
      { loc: "body.at", msg: "is taken only with TALLY_REPORTING_SYNC_ALLOW_AT=true" },
    ]);
    expect(await runs()).toEqual(before);
  });
});

describe("answers", () => {
  test("what the run did", async () => {
    eu1.script.resources = [instance("a"), instance("b")];
    const answer = await post("eu1");
    expect(answer.status).toBe(200);
    const id: string = answer.json.sync_run_id;
    expect(answer.text).toBe(`{"stats":{"created":2,"updated":0,"deleted":0},"sync_run_id":"${id}"}`);
    expect((await runs()).map((run) => [run.id, run.status])).toEqual([[id, "completed"]]);
  });

  test("a body whose members are all left out like none at all", async () => {
    expect((await post("eu1", "{}")).json.stats).toEqual({ created: 0, updated: 0, deleted: 0 });
  });

  test("a cloud whose name has to be encoded", async () => {
    expect((await post("eu%2F2%20%C3%BC")).status).toBe(200);
  });

  test("at the instant that it is asked for", async () => {
    eu1.script.resources = [instance("a", { state: "error" }), instance("b")];
    await post("eu1", '{"at":"2026-03-02T13:00:00.25Z"}');
    expect(await booked(server.db.db)).toContain("sync.update a 2026-03-02T13:00:00.250000Z");
  });

  test("a dry run with what would be booked, sizes digit for digit, and what would fail", async () => {
    eu1.script.resources = [
      instance("a", { state: "error", size: LARGE.replace("80", "80.00") }),
      instance("c", { size: null }),
    ];
    const before = [await runs(), await booked(server.db.db)];
    const { status, text, json } = await post("eu1", '{"dry_run":true,"at":"2026-03-02T14:00:00Z"}');
    expect(status).toBe(200);
    expect(json.stats).toEqual({ created: 0, updated: 1, deleted: 1 });
    expect(json.corrections).toEqual([
      {
        event_id: expect.stringMatching(/^recon-[0-9a-f]{64}$/),
        timestamp: "2026-03-02T14:00:00Z",
        event_type: "sync.update",
        resource_type: "instance",
        resource_id: "a",
        project_id: "shop",
        state: "error",
        size: { vcpus: 8, ram_gb: 16, disk_gb: 80, flavor: "m1.large" },
        reason: "size differs",
      },
      {
        event_id: expect.stringMatching(/^recon-[0-9a-f]{64}$/),
        timestamp: "2026-03-02T14:00:00Z",
        event_type: "sync.delete",
        resource_type: "instance",
        resource_id: "b",
        project_id: "shop",
        state: null,
        size: null,
        reason: "the cloud no longer lists it",
      },
    ]);
    expect(text).toContain('"disk_gb":80.00,');
    expect(json.errors).toEqual(["instance c: it is not in the record, and its size is unknown"]);
    expect([await runs(), await booked(server.db.db)]).toEqual(before);
  });

  test("500 where the run recorded an error; the reasons are in its row and the log", async () => {
    eu1.script.incomplete = { volume: "cinder said 503 and hunter2" };
    const { status, text } = await post("eu1");
    eu1.script.incomplete = {};
    expect(status).toBe(500);
    expect(text).not.toContain("hunter2");
    const kept = (await runs()).find((run) => text.includes(run.id));
    expect(kept).toMatchObject({
      status: "failed",
      stats: { errors: ["volume: cinder said 503 and hunter2", expect.any(String)] },
    });
    expect(server.logged).toContainEqual(
      expect.objectContaining({ message: "reconciliation run failed", sync_run_id: kept?.id }),
    );
  });

  test("500 for a dry run that got nowhere", async () => {
    eu1.script.refuses = new Error("no");
    const { status, text } = await post("eu1", '{"dry_run":true}');
    eu1.script.refuses = null;
    expect(status).toBe(500);
    expect(text).toContain("the dry run failed before anything could be compared");
  });

  test("a mass delete is withheld until it is confirmed", async () => {
    const services = { db: server.db.db, metrics: server.metrics };
    const ids = Array.from({ length: 20 }, (_, i) => `m${i}`);
    await collect(
      services,
      ...ids.map((id) => collected(id, "compute.instance.create.end", "2026-03-01T00:00:00Z")),
    );
    eu1.script.resources = [];
    expect((await post("eu1")).status).toBe(500);
    const { status, json } = await post("eu1", '{"confirm_mass_delete":true}');
    expect(status).toBe(200);
    expect(json.stats.deleted).toBeGreaterThanOrEqual(20);
  });
});

describe("while a run is under way", () => {
  test("another one is 409, and a caller that hangs up cancels it", async () => {
    eu1.script.resources = [instance("new")];
    const listing = Promise.withResolvers<void>();
    eu1.script.beforeListing = (signal) => {
      listing.resolve();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const hangUp = new AbortController();
    const first = server.request("/internal/sync/eu1", {
      method: "POST",
      token: server.credentials.internal,
      signal: hangUp.signal,
    });
    await listing.promise;
    const second = await post("eu1");
    expect(second.status).toBe(409);
    expect(second.json.type).toBe("urn:tally:error:conflict");
    hangUp.abort();
    expect(first).rejects.toThrow();
    for (;;) {
      const open = (await runs()).filter((run) => run.status === "running");
      if (open.length === 0) break;
      await Bun.sleep(5);
    }
    eu1.script.beforeListing = async () => {};
    expect(await runs()).toContainEqual(
      expect.objectContaining({
        status: "failed",
        stats: expect.objectContaining({ created: 0, errors: ["the run's caller hung up"] }),
      }),
    );
    expect((await booked(server.db.db)).filter((line) => line.includes(" new "))).toEqual([]);
  });
});
