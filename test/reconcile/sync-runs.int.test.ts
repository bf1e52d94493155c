/** GET /api/v1/sync-runs. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { faults, get, readPage } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
beforeAll(async () => {
  server = await testServer();
  const run = (
    n: number,
    started: string,
    finished: string | null,
    cloud: string,
    status: string,
    stats = "{}",
  ) =>
    server.db.db`
      INSERT INTO sync_runs (id, started_at, finished_at, cloud, platform, status, stats)
      VALUES (${id(n)}::uuid, ${started}::text::timestamptz, ${finished}::text::timestamptz, ${cloud}, 'openstack',
              ${status}, ${stats}::text::jsonb)`;
  await run(1, "2026-03-01T00:00:00Z", "2026-03-01T00:00:07.25Z", "eu1", "completed", '{"created":3}');
  await run(2, "2026-03-01T00:00:00Z", "2026-03-01T00:00:01Z", "eu2", "failed");
  await run(3, "2026-03-01T00:00:00.000001Z", null, "eu1", "running");
});
afterAll(() => server.stop());

const found = async (query = "", token = server.credentials.readAll) =>
  (await readPage(server, `/api/v1/sync-runs${query}`, token)).items.map((run) => run.id);

describe("GET /api/v1/sync-runs", () => {
  test("is newest first, by started_at and id", async () => {
    expect(await found()).toEqual([id(3), id(2), id(1)]);
  });

  test("carries a run whole", async () => {
    const { text } = await get(server, "/api/v1/sync-runs?status=completed");
    expect(text).toBe(
      `{"items":[{"id":"${id(1)}","cloud":"eu1","platform":"openstack","status":"completed"` +
        ',"started_at":"2026-03-01T00:00:00Z","finished_at":"2026-03-01T00:00:07.25Z","stats":{"created": 3}}]' +
        ',"next_cursor":null}',
    );
  });

  test("goes on behind the last one", async () => {
    const first = await readPage(server, "/api/v1/sync-runs?limit=2");
    expect(first.items.map((run) => run.id)).toEqual([id(3), id(2)]);
    expect(await found(`?limit=2&cursor=${first.next_cursor}`)).toEqual([id(1)]);
  });

  test("filters by cloud and status", async () => {
    expect(await found("?cloud=eu1")).toEqual([id(3), id(1)]);
    expect(await found("?status=running")).toEqual([id(3)]);
    expect(await found("?cloud=eu2&status=running")).toEqual([]);
  });

  test.each([
    ["cloud=", ["query.cloud"]],
    ["status=done", ["query.status"]],
    ["status=failed&status=failed", ["query.status"]],
    ["from=2026-03-01T00:00:00Z", ["query.from"]],
    ["limit=0", ["query.limit"]],
    ["cursor=x", ["query.cursor"]],
  ])("?%s is refused", async (query, locs) => {
    expect(await faults(server, `/api/v1/sync-runs?${query}`)).toEqual({ status: 400, locs });
  });
});
