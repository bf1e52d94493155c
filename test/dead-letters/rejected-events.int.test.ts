import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { faults, get, readPage } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

const deadLetter = (at: string, id: string, raw: string, reason = "schema: no object") => server.db.db`
  INSERT INTO rejected_events (id, received_at, reason, reason_kind, source, raw)
  VALUES (${id}::uuid, ${at}::text::timestamptz, ${reason}, 'schema', 'collector', ${raw})`;

describe("GET /api/v1/rejected-events", () => {
  // Several of these neither `json` nor `jsonb` would take, or would change.
  test.each([
    '"just a string"',
    "12345678901234567890.10",
    "1e400000",
    "-0",
    "true",
    "null",
    "[]",
    "[[1,{}],null]",
    '{"b":1,"a":0.1000,"b":2}',
    '{"half":"\\ud800"}',
    '{ "spaced" : [ 1 , 2 ] }',
    '"quote \\" and \\\\ and \\u00fc and 😀"',
  ])("carries %p as it came", async (raw) => {
    await server.db.db`DELETE FROM rejected_events`;
    await deadLetter(
      "2026-03-01T00:00:00.25Z",
      "00000000-0000-4000-8000-000000000001",
      raw,
      'a "reason" – ü',
    );
    expect(await get(server, "/api/v1/rejected-events")).toEqual({
      status: 200,
      text:
        '{"items":[{"id":"00000000-0000-4000-8000-000000000001","received_at":"2026-03-01T00:00:00.25Z"' +
        `,"reason":"a \\"reason\\" – ü","raw":${raw}}],"next_cursor":null}`,
    });
  });

  test("carries what ingest refused, and the reason that its sender was told", async () => {
    await server.db.db`DELETE FROM rejected_events`;
    const token = await server.credentials.ingest("openstack", "eu1");
    const item = '{"event_id": "x", "timestamp": "yesterday", "n": 0.1000}';
    const answer = await server.request("/api/v1/events", { method: "POST", token, body: `[${item}]` });
    const { rejected } = JSON.parse(await answer.text());
    const { items } = await readPage(server, "/api/v1/rejected-events");
    expect(items).toHaveLength(1);
    expect(items[0]?.reason).toBe(rejected[0].reason);
    expect((await get(server, "/api/v1/rejected-events")).text).toContain(`"raw":${item}}`);
  });

  test("is ordered by received_at and id, and cut by from and to", async () => {
    await server.db.db`DELETE FROM rejected_events`;
    const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
    await deadLetter("2026-03-01T00:00:00.000002Z", id(1), "1");
    await deadLetter("2026-03-01T00:00:00.000001Z", id(3), "3");
    await deadLetter("2026-03-01T00:00:00.000001Z", id(2), "2");
    const raws = async (query: string) =>
      (await readPage(server, `/api/v1/rejected-events${query}`)).items.map((item) => item.raw);
    expect(await raws("")).toEqual([2, 3, 1]);
    expect(await raws("?from=2026-03-01T00:00:00.000002Z")).toEqual([1]);
    expect(await raws("?to=2026-03-01T00:00:00.000002Z")).toEqual([2, 3]);
    expect(await raws("?from=2026-03-01T00:00:00.000001Z&to=2026-03-01T00:00:00.000001Z")).toEqual([]);
  });

  test.each([
    ["reason=other", ["query.reason"]],
    ["status=open&status=all", ["query.status"]],
    ["cloud=", ["query.cloud"]],
    ["from=now", ["query.from"]],
    ["from=2026-03-01T00:00:00Z&from=2026-03-01T00:00:00Z", ["query.from"]],
    ["limit=0&to=", ["query.to", "query.limit"]],
  ])("?%s is refused at %p", async (query, locs) => {
    expect(await faults(server, `/api/v1/rejected-events?${query}`)).toEqual({ status: 400, locs });
  });
});
