/** GET /api/v1/audit-log. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { faults, get, readPage } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await server.db.db`DELETE FROM audit_log`;
});

const entry = (at: string, id: string, actor = "a", action = "thing.put", type = "thing", details = "{}") =>
  server.db.db`
    INSERT INTO audit_log (at, actor, action, object_type, object_id, details)
    VALUES (${at}::text::timestamptz, ${actor}, ${action}, ${type}, ${id}, ${details}::text::jsonb)`;
const found = async (query = "") =>
  (await readPage(server, `/api/v1/audit-log${query}`)).items.map(({ object_id }) => object_id);

describe("GET /api/v1/audit-log", () => {
  test("carries an entry with every digit of its details", async () => {
    await entry("2026-03-01T00:00:00.25Z", 'o"1', "á", "x.y", "t", '{"n":12345678901234567890.10}');
    const { text } = await get(server, "/api/v1/audit-log");
    expect(text).toMatch(
      /^\{"items":\[\{"id":\d+,"at":"2026-03-01T00:00:00\.25Z","actor":"á","action":"x\.y","object_type":"t","object_id":"o\\"1","details":\{"n": 12345678901234567890\.10\}\}\],"next_cursor":null\}$/,
    );
  });

  test("is oldest first; entries of one instant are in the order in which they were written", async () => {
    await entry("2026-03-01T00:00:00.000002Z", "late");
    await entry("2026-03-01T00:00:00.000001Z", "first");
    await entry("2026-03-01T00:00:00.000001Z", "second");
    expect(await found()).toEqual(["first", "second", "late"]);
    const page = await readPage(server, "/api/v1/audit-log?limit=1");
    expect(page.items.map(({ object_id }) => object_id)).toEqual(["first"]);
    expect(await found(`?cursor=${page.next_cursor}`)).toEqual(["second", "late"]);
  });

  test("filters by actor, action, kind of object and time, and by all of them at once", async () => {
    await entry("2026-03-01T00:00:00Z", "1");
    await entry("2026-03-02T00:00:00Z", "2", "b");
    await entry("2026-03-03T00:00:00Z", "3", "a", "thing.close");
    await entry("2026-03-04T00:00:00Z", "4", "a", "thing.put", "other");
    expect(await found("?actor=a")).toEqual(["1", "3", "4"]);
    expect(await found("?action=thing.put")).toEqual(["1", "2", "4"]);
    expect(await found("?object_type=other")).toEqual(["4"]);
    expect(await found("?from=2026-03-02T00:00:00Z")).toEqual(["2", "3", "4"]);
    expect(await found("?to=2026-03-02T00:00:00Z")).toEqual(["1"]);
    const all =
      "?actor=a&action=thing.put&object_type=thing&from=2026-01-01T00:00:00Z&to=2026-04-01T00:00:00Z";
    expect(await found(all)).toEqual(["1"]);
    expect(await found("?actor=nobody")).toEqual([]);
  });

  test("tells of a write through the API, by the token that made it", async () => {
    const answer = await server.request("/api/v1/resource-types/openstack/logged", {
      method: "PUT",
      token: server.credentials.admin,
      body: '{"size_schema":{}}',
    });
    expect(answer.status).toBe(200);
    const [token]: { id: string }[] = await server.db.db`
      SELECT id::text AS id FROM api_tokens WHERE role = 'admin'`;
    const { items } = await readPage(server, `/api/v1/audit-log?actor=${token?.id}`);
    expect(items).toMatchObject([{ action: "resource_type.put", object_id: "openstack/logged" }]);
  });

  test.each([
    ["actor=", ["query.actor"]],
    ["actor=a&actor=b", ["query.actor"]],
    ["action=a%00b", ["query.action"]],
    [`object_type=${"x".repeat(513)}`, ["query.object_type"]],
    ["from=now&to=2026-03-01", ["query.from", "query.to"]],
    ["limit=1001", ["query.limit"]],
    ["object_id=1", ["query.object_id"]],
    ["cursor=x", ["query.cursor"]],
  ])("?%s is refused", async (query, locs) => {
    expect(await faults(server, `/api/v1/audit-log?${query}`)).toEqual({ status: 400, locs });
  });
});
