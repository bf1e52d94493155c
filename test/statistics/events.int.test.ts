/** GET /api/v1/stats/events. The database's sessions keep a zone of their own. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openPool } from "../../src/database/pool.ts";
import { faults, get, projectToken, send } from "../inventory/calls.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type TestServer, testServer } from "../support/server.ts";

let database: TestDatabase;
let server: TestServer;
const PATH = "/api/v1/stats/events";

beforeAll(async () => {
  database = await testDatabase();
  // Half an hour off, so that neither its hours nor its days begin where those of UTC do.
  await database.db.unsafe(
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Kolkata''', current_database()); END $$",
  );
  const db = openPool(database.target, { maxConnections: 4 });
  server = await testServer({ db: { ...database, db } });
  await send(server, [
    { id: "a", at: "0001-01-01T00:00:00Z", type: "x.create" },
    { id: "b", at: "1969-12-31T23:59:59.999999Z", type: "x.stop" },
    { id: "c", at: "1970-01-01T00:00:00Z", type: "x.stop" },
    { id: "d", at: "2026-02-28T23:59:59.999999Z", type: "x.stop" },
    { id: "e", at: "2026-03-01T00:00:00Z", type: "x.stop" },
    { id: "f", at: "2026-03-01T00:59:59.999999Z", type: "x.stop", project: "p2" },
    { id: "g", at: "2026-03-01T01:00:00Z", type: "x.stop" },
    { id: "h", at: "2026-03-01T01:00:00Z", type: "x.start" },
    { id: "i", at: "2026-03-01T23:30:00Z", type: "x.stop" },
    { id: "j", at: "2026-03-02T00:00:00Z", type: "x.stop" },
    { id: "k", at: "9999-12-31T23:30:00Z", type: "x.stop" },
    { id: "l", at: "9999-12-31T23:59:59.999999Z", type: "x.delete" },
  ]);
  await send(server, [{ id: "a", at: "2026-03-01T00:30:00Z", type: "x.stop", cloud: "us1" }]);
  await server.db.db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    VALUES ('2026-03-01T00:10:00Z', now(), 'recon', 'x.stop', 'openstack', 'eu1', 'thing', 'r1', 'p1',
            'reconciliation', '{"state":"off"}')`;
});
afterAll(async () => {
  await server.stop();
  await server.db.db.close({ timeout: 0 });
  await database.drop();
});

function query(from: string, to: string, interval: string, groupBy = "cloud,event_type"): string {
  return `${PATH}?group_by=${groupBy}&from=${from}&to=${to}&interval=${interval}`;
}

/** The groups as lines, `2026-03-01T00:00:00Z eu1 x.stop: 2`, in the order of the answer. */
async function groups(path: string, token?: string): Promise<string[]> {
  const { status, text } = await get(server, path, token);
  if (status !== 200) throw new Error(text);
  const { items }: { items: (Record<string, string> & { count: number })[] } = JSON.parse(text);
  return items.map(({ count, ...values }) => `${Object.values(values).join(" ")}: ${count}`);
}

test("the sessions are where they should be", async () => {
  const [row]: { zone: string }[] = await server.db.db`SELECT current_setting('timezone') AS zone`;
  expect(row?.zone).toBe("Asia/Kolkata");
});

describe("buckets", () => {
  test("days are those of UTC; empty ones are left out", async () => {
    expect(await groups(query("2026-02-28T00:00:00Z", "2026-03-03T00:00:00Z", "1d"))).toEqual([
      "2026-02-28T00:00:00Z eu1 x.stop: 1",
      "2026-03-01T00:00:00Z eu1 x.start: 1",
      "2026-03-01T00:00:00Z eu1 x.stop: 5",
      "2026-03-01T00:00:00Z us1 x.stop: 1",
      "2026-03-02T00:00:00Z eu1 x.stop: 1",
    ]);
  });

  test("hours are those of UTC", async () => {
    expect(await groups(query("2026-02-28T23:00:00Z", "2026-03-01T02:00:00Z", "1h"))).toEqual([
      "2026-02-28T23:00:00Z eu1 x.stop: 1",
      "2026-03-01T00:00:00Z eu1 x.stop: 3",
      "2026-03-01T00:00:00Z us1 x.stop: 1",
      "2026-03-01T01:00:00Z eu1 x.start: 1",
      "2026-03-01T01:00:00Z eu1 x.stop: 1",
    ]);
  });

  test("the first may begin before `from`, and counts nothing of before; `to` is exclusive", async () => {
    expect(await groups(query("2026-03-01T00:59:59.999999Z", "2026-03-01T01:00:00Z", "1d"))).toEqual([
      "2026-03-01T00:00:00Z eu1 x.stop: 1",
    ]);
    expect(
      await groups(query("2026-03-01T01:59:59.999999%2B01:00", "2026-03-01T01:00:00.000001Z", "1h")),
    ).toEqual([
      "2026-03-01T00:00:00Z eu1 x.stop: 1",
      "2026-03-01T01:00:00Z eu1 x.start: 1",
      "2026-03-01T01:00:00Z eu1 x.stop: 1",
    ]);
  });

  test.each(["1h", "1d"])("of %s begin before 1970 as after, and at both ends of time", async (interval) => {
    const start = interval === "1h" ? "23" : "00";
    expect(await groups(query("1969-12-31T00:00:00Z", "1970-01-02T00:00:00Z", interval))).toEqual([
      `1969-12-31T${start}:00:00Z eu1 x.stop: 1`,
      "1970-01-01T00:00:00Z eu1 x.stop: 1",
    ]);
    expect(await groups(query("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z", interval))).toEqual([
      "0001-01-01T00:00:00Z eu1 x.create: 1",
    ]);
    const last = "9999-12-31T23:59:59.999999Z";
    expect(await groups(query("9999-01-01T00:00:00Z", last, interval))).toEqual([
      `9999-12-31T${start}:00:00Z eu1 x.stop: 1`,
    ]);
    // Nothing can be asked for past the last instant; its event is in no window.
    expect(await groups(query(last, last, interval))).toEqual([]);
  });
});

test("by source, which is told only then", async () => {
  const path = query("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z", "1d", "source,event_type,cloud");
  expect(await get(server, path)).toEqual({
    status: 200,
    text:
      '{"items":[{"bucket":"2026-03-01T00:00:00Z","cloud":"eu1","event_type":"x.stop","source":"collector","count":2},' +
      '{"bucket":"2026-03-01T00:00:00Z","cloud":"eu1","event_type":"x.stop","source":"reconciliation","count":1},' +
      '{"bucket":"2026-03-01T00:00:00Z","cloud":"us1","event_type":"x.stop","source":"collector","count":1}]}',
  });
});

test("a project token counts the events that name its own cloud's project", async () => {
  const path = query("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z", "1h");
  const bucket = "2026-03-01T00:00:00Z";
  expect(await groups(path, await projectToken(server, ["eu1", "p2"]))).toEqual([`${bucket} eu1 x.stop: 1`]);
  expect(await groups(path, await projectToken(server, ["us1", "p1"]))).toEqual([`${bucket} us1 x.stop: 1`]);
  expect(await groups(path, await projectToken(server, ["us1", "p2"]))).toEqual([]);
  expect(await groups(path, await projectToken(server, ["eu1", "p1"], ["eu1", "p2"]))).toEqual([
    `${bucket} eu1 x.stop: 3`,
  ]);
});

describe("the window", () => {
  test("empty or inverted, it holds nothing", async () => {
    expect(await groups(query("2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "1h"))).toEqual([]);
    expect(await groups(query("2026-03-02T00:00:00Z", "2024-03-01T00:00:00Z", "1h"))).toEqual([]);
  });

  test("of 397 days is counted", async () => {
    expect(await groups(query("2025-02-28T00:00:00Z", "2026-04-01T00:00:00Z", "1d"))).toHaveLength(5);
  });

  test("a microsecond wider is refused, without a look at the events", async () => {
    const wide = query("2025-02-28T00:00:00Z", "2026-04-01T00:00:00.000001Z", "1d");
    const { status, text } = await get(server, wide);
    expect(status).toBe(422);
    expect(text).toContain("urn:tally:error:result_too_large");
    await server.db.db`ALTER TABLE events RENAME TO hidden`;
    try {
      expect((await get(server, wide)).status).toBe(422);
    } finally {
      await server.db.db`ALTER TABLE hidden RENAME TO events`;
    }
  });
});

const GOOD = "group_by=cloud,event_type&from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z&interval=1d";
test.each([
  ["", ["query.group_by", "query.from", "query.to", "query.interval"]],
  [GOOD.replace("cloud,event_type", "cloud"), ["query.group_by"]],
  [GOOD.replace("cloud,event_type", "event_type,source"), ["query.group_by"]],
  [GOOD.replace("cloud,event_type", "cloud,event_type,event_type"), ["query.group_by"]],
  [GOOD.replace("cloud,event_type", "cloud,event_type,bucket"), ["query.group_by"]],
  [GOOD.replace("cloud,event_type", "cloud,event_type,platform"), ["query.group_by"]],
  [GOOD.replace("cloud,event_type", ""), ["query.group_by"]],
  [`${GOOD}&group_by=cloud,event_type`, ["query.group_by"]],
  [GOOD.replace("from=2026-03-01T00:00:00Z", "from=2026-03-01"), ["query.from"]],
  [GOOD.replace("from=2026-03-01T00:00:00Z&", ""), ["query.from"]],
  [`${GOOD}&from=2026-03-01T00:00:00Z`, ["query.from"]],
  [GOOD.replace("to=2026-03-02T00:00:00Z", "to=2026-03-02T00:00:60Z"), ["query.to"]],
  [GOOD.replace("to=2026-03-02T00:00:00Z", "to="), ["query.to"]],
  [GOOD.replace("1d", "1w"), ["query.interval"]],
  [GOOD.replace("1d", "1D"), ["query.interval"]],
  [GOOD.replace("&interval=1d", ""), ["query.interval"]],
  [`${GOOD}&interval=1h`, ["query.interval"]],
  [`${GOOD}&cloud=eu1`, ["query.cloud"]],
  [`${GOOD}&status=all`, ["query.status"]],
])("?%s is refused at %p", async (path, locs) => {
  expect(await faults(server, `${PATH}?${path}`)).toEqual({ status: 400, locs });
});

test("it takes an API token", async () => {
  expect((await server.request(`${PATH}?${GOOD}`)).status).toBe(401);
  const token = await server.credentials.ingest("openstack", "eu1");
  expect((await server.request(`${PATH}?${GOOD}`, { token })).status).toBe(401);
  expect((await server.request(`${PATH}?${GOOD}`, { token: server.credentials.internal })).status).toBe(401);
  expect((await server.request(`${PATH}?${GOOD}`, { token: server.credentials.readAll })).status).toBe(200);
});
