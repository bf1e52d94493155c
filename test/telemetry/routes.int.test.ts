/** /readyz, /healthz and /metrics over a real database, and what happens when that goes away. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { openPool } from "../../src/database/pool.ts";
import { refreshResourceGauge } from "../../src/telemetry/resource-gauge.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

async function told(path: string, of = server): Promise<[status: number, text: string]> {
  const answer = await of.request(path);
  expect(answer.headers.get("content-type")).toStartWith("text/plain");
  return [answer.status, await answer.text()];
}

/** A database as the app sees it: the same one through another pool, or none at all. */
function seenThrough(db: TestDatabase, url: string): TestDatabase {
  const pool = openPool({ url }, { maxConnections: 2 });
  return { ...db, db: pool, drop: () => pool.close({ timeout: 0 }) };
}

describe("/readyz", () => {
  test("is ready over a database of this schema", async () => {
    expect(await told("/readyz")).toEqual([200, "ready\n"]);
    expect(await told("/healthz")).toEqual([200, "healthy\n"]);
  });

  test("is not ready with a schema that is behind, and is again when it isn't", async () => {
    const db = await testDatabase();
    const own = await testServer({ db });
    const [last] = await db.db`SELECT max(version) AS version FROM schema_migrations`;
    await db.db`UPDATE schema_migrations SET version = -version WHERE version = ${last.version}`;
    await Bun.sleep(1_050);
    const [status] = await told("/readyz", own);
    expect(status).toBe(503);
    await db.db`UPDATE schema_migrations SET version = -version WHERE version = ${-last.version}`;
    await Bun.sleep(1_050);
    expect(await told("/readyz", own)).toEqual([200, "ready\n"]);
    await own.stop();
    await db.drop();
  });

  test("is not ready when the database takes no writes; one that does nothing else is still healthy", async () => {
    const db = await testDatabase();
    const readOnly = `${db.url}${db.url.includes("?") ? "&" : "?"}options=-c%20default_transaction_read_only%3Don`;
    const writing = await testServer({ db });
    const own = seenThrough(db, readOnly);
    const reader = await startOver(own);
    expect(await told("/readyz", reader)).toEqual([503, "the database is read-only\n"]);
    expect(await told("/healthz", reader)).toEqual([200, "healthy\n"]);
    expect(await told("/readyz", writing)).toEqual([200, "ready\n"]);
    await reader.stop();
    await own.drop();
    await writing.stop();
    await db.drop();
  });

  test("says so when nothing listens, and the API's own routes are 503 with Retry-After", async () => {
    const own = seenThrough(server.db, "postgres://tally:secret@127.0.0.1:1/tally");
    const alone = await startOver(own);
    expect(await told("/readyz", alone)).toEqual([503, "the database can't be reached\n"]);
    const answer = await alone.request("/api/v1/resources", { token: `tly_a_${"0".repeat(64)}` });
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("5");
    const text = await answer.text();
    expect(JSON.parse(text)).toMatchObject({ type: "urn:tally:error:unavailable", status: 503 });
    expect(text).not.toContain("secret");
    await alone.stop();
  });

  test("answers within three seconds when the database swallows everything", async () => {
    const hole = await blackHole();
    const own = seenThrough(server.db, `postgres://tally:x@127.0.0.1:${hole.port}/tally`);
    const alone = await startOver(own);
    const start = performance.now();
    expect(await told("/readyz", alone)).toEqual([503, "the database does not answer\n"]);
    expect(performance.now() - start).toBeLessThan(3_000);
    await alone.stop();
    hole.server.close();
  });
});

describe("/healthz", () => {
  test("fails once readiness has failed for longer than the threshold, without anyone asking /readyz", async () => {
    const own = seenThrough(server.db, "postgres://tally:x@127.0.0.1:1/tally");
    const alone = await startOver(own, 1);
    await Bun.sleep(1_300);
    expect(await told("/healthz", alone)).toEqual([
      503,
      "not ready for 1 seconds: the database can't be reached\n",
    ]);
    await alone.stop();
  });
});

describe("/metrics", () => {
  test("is Prometheus text with Tally's metrics", async () => {
    const answer = await server.request("/metrics");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
    const text = await answer.text();
    for (const name of [
      "tally_events_ingested_total",
      "tally_events_deduplicated_total",
      "tally_events_rejected_total",
      "tally_ingest_unvalidated_size_total",
      "tally_projection_replays_total",
      "tally_current_resources",
      "tally_http_request_duration_seconds",
      "tally_db_pool_max_connections",
      "tally_db_transactions",
    ]) {
      expect(text).toContain(`# TYPE ${name} `);
    }
    expect(text).toContain("\ntally_db_pool_max_connections 10\n");
    expect(text).toContain("\ntally_ready 1\n");
  });

  test("is no path when switched off", async () => {
    const own = await testServer({
      db: server.db,
      settings: { metrics: { enabled: false, refreshSeconds: 60 } },
    });
    const answer = await own.request("/metrics");
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ type: "urn:tally:error:not_found" });
    const document: { paths: object } = JSON.parse(await (await own.request("/openapi.json")).text());
    expect(Object.keys(document.paths)).not.toContain("/metrics");
    await own.stop();
  });

  test("tells how many transactions are open or wait, and forgets those that are over", async () => {
    const db = await testDatabase();
    const own = await testServer({ db });
    const token = await own.credentials.ingest("openstack", "os-prod");
    const open = async () => {
      const text = await own.metrics.registry.getSingleMetricAsString("tally_db_transactions");
      return Number(/^tally_db_transactions (\d+)$/m.exec(text)?.[1]);
    };
    const post = (body: string) => own.request("/api/v1/events", { method: "POST", token, body });
    const other = await db.db.reserve();
    await other`BEGIN`;
    await other`LOCK TABLE rejected_events IN EXCLUSIVE MODE`;
    const waiting = [post('["refused"]'), post('["refused"]')];
    while ((await open()) < 2) await Bun.sleep(10);
    await other`COMMIT`;
    other.release();
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200);
    expect(await open()).toBe(0);
    // Nor does one stay that fails.
    await db.db`ALTER TABLE audit_log RENAME TO gone`;
    expect((await post('["refused"]')).status).toBe(500);
    expect(await open()).toBe(0);
    await own.stop();
    await db.drop();
  });

  test("counts a batch as it was judged", async () => {
    const db = await testDatabase();
    const own = await testServer({ db });
    const token = await own.credentials.ingest("openstack", "os-prod");
    const item = (id: string, more: object = {}) => ({
      event_id: id,
      timestamp: "2026-03-01T08:00:00Z",
      event_type: "volume.create.end",
      platform: "openstack",
      cloud: "os-prod",
      resource_type: "volume",
      resource_id: id,
      project_id: "p1",
      payload: { state: "available", size: { size_gb: 10, type: "ssd" } },
      ...more,
    });
    const batch = [
      item("1"),
      item("2"),
      item("2"),
      item("3", { cloud: "elsewhere", resource_type: "made-up" }),
      item("4", { payload: { state: "available", size: {} } }),
      item("", { resource_type: "made-up-too" }),
      item("5", { resource_type: "router", event_type: "router.create.end" }),
    ];
    const answer = await own.request("/api/v1/events", {
      method: "POST",
      token,
      body: JSON.stringify(batch),
    });
    expect(answer.status).toBe(200);
    const text = await (await own.request("/metrics")).text();
    const lines = text.split("\n").filter((line) => /^tally_(events|ingest)/.test(line));
    expect(lines.sort()).toEqual([
      'tally_events_deduplicated_total{cloud="os-prod"} 1',
      'tally_events_ingested_total{platform="openstack",cloud="os-prod",resource_type="router",event_type="router.create.end",source="collector"} 1',
      'tally_events_ingested_total{platform="openstack",cloud="os-prod",resource_type="volume",event_type="volume.create.end",source="collector"} 2',
      'tally_events_rejected_total{cloud="os-prod",reason="schema"} 1',
      'tally_events_rejected_total{cloud="os-prod",reason="scope"} 1',
      'tally_events_rejected_total{cloud="os-prod",reason="size_schema"} 1',
      'tally_ingest_unvalidated_size_total{platform="openstack",resource_type="router"} 1',
    ]);

    await refreshResourceGauge(db.db, own.metrics);
    const gauge = await own.metrics.registry.getSingleMetricAsString("tally_current_resources");
    const volumes =
      'tally_current_resources{platform="openstack",cloud="os-prod",resource_type="volume",state="available"} 2';
    expect(gauge).toContain(volumes);
    // A state that nothing is in any more leaves the metric; it isn't served for ever as it last was.
    const gone = ["1", "2"].map((id) => ({
      ...item(id),
      event_id: `${id}-gone`,
      timestamp: "2026-03-02T08:00:00Z",
      event_type: "volume.delete.end",
    }));
    await own.request("/api/v1/events", { method: "POST", token, body: JSON.stringify(gone) });
    await refreshResourceGauge(db.db, own.metrics);
    const after = await own.metrics.registry.getSingleMetricAsString("tally_current_resources");
    expect(after).not.toContain('state="available"} 2');
    expect(after).toContain('resource_type="volume",state="deleted"} 2');
    await own.stop();
    await db.drop();
  });
});

test("what is logged of a request holds no token, nothing of its body and nothing of its query", async () => {
  const token = await server.credentials.ingest("openstack", "os-prod");
  const { admin } = server.credentials;
  const item = (more: object) => ({
    event_id: "hush-id",
    timestamp: "2026-03-01T08:00:00Z",
    event_type: "volume.create.end",
    platform: "openstack",
    cloud: "os-prod",
    resource_type: "volume",
    resource_id: "hush-resource",
    project_id: "hush-project",
    payload: { state: "hush-state", size: { size_gb: 10, type: "hush-type" }, note: "hush-note" },
    ...more,
  });
  // Stored, stored already, refused, out of scope; and a body that is no JSON.
  const batch = [
    item({}),
    item({}),
    item({ payload: { note: "hush-refused" } }),
    item({ cloud: "hush-cloud" }),
  ];
  for (const [path, init] of [
    ["/api/v1/events", { method: "POST", token, body: JSON.stringify(batch) }],
    ["/api/v1/events", { method: "POST", token, body: '{"hush' }],
    ["/api/v1/events?project_id=hush-filter", { token: admin }],
    ["/api/v1/events?hush=1", { token: admin }],
    ["/api/v1/resources/os-prod/volume/hush-resource/lifecycle", { token: admin }],
  ] as const) {
    expect((await server.request(path, init)).status).toBeLessThan(500);
  }
  const text = JSON.stringify(server.logged);
  expect(server.logged.length).toBeGreaterThan(8);
  expect(text).not.toContain("hush");
  expect(text).not.toContain("tly_");
});

/** A server over any database; testServer would want to write credentials into it. */
async function startOver(db: TestDatabase, thresholdSeconds = 600): Promise<TestServer> {
  return await testServer({
    db,
    settings: { unhealthyThresholdSeconds: thresholdSeconds },
    credentials: false,
  });
}

/** Takes connections and never says a word. */
async function blackHole(): Promise<{ server: Server; port: number }> {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  server.unref();
  return { server, port: address.port };
}
