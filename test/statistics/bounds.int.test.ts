/** Fifty thousand groups are answered, one more is not: counted by every dimension, whatever was asked for. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { get, projectToken } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

/** Resources with a project and an event type of their own each: created on the first, changed on the second. */
async function seed(from: number, to: number): Promise<void> {
  await server.db.db.begin(async (tx) => {
    await tx`
      INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                          project_id, source, payload)
      SELECT timestamptz '2026-03-01T00:00:00Z' + day * interval '1 day', now(), 'e' || i,
             CASE day WHEN 0 THEN 'x.create' ELSE 'x.t' || i END, 'openstack', 'eu1', 'thing', 'r' || i, 'p' || i,
             'collector', '{"state":"on"}'
        FROM generate_series(${from}::int, ${to}::int) i, generate_series(0, 1) day`;
    await tx`
      INSERT INTO current_resources (created_at, first_event_at, last_event_at, last_received_at, cloud, resource_type,
                                     resource_id, platform, project_id, state, last_event_id, last_event_type, size)
      SELECT '2026-03-01T00:00:00Z', '2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z', now(), 'eu1', 'thing', 'r' || i,
             'openstack', 'p' || i, 'on', 'e' || i, 'x.t' || i, '{}'
        FROM generate_series(${from}::int, ${to}::int) i`;
  });
}

const NOW = "/api/v1/stats/resources?group_by=cloud,resource_type";
const BY_ALL = `${NOW},state,platform,project_id`;
const THEN = "&at=2026-03-01T12:00:00Z";
const EVENTS =
  "/api/v1/stats/events?from=2026-03-02T00:00:00Z&to=2026-03-03T00:00:00Z&interval=1d&group_by=cloud,event_type";

async function counted(path: string, token?: string): Promise<{ groups: number; things: number }> {
  const { status, text } = await get(server, path, token);
  if (status !== 200) throw new Error(text);
  const { items }: { items: { count: number }[] } = JSON.parse(text);
  return { groups: items.length, things: items.reduce((sum, { count }) => sum + count, 0) };
}

async function refused(path: string): Promise<void> {
  const { status, text } = await get(server, path);
  expect({ path, status }).toEqual({ path, status: 422 });
  expect(JSON.parse(text)).toMatchObject({ type: "urn:tally:error:result_too_large", status: 422 });
}

describe.serial("groups", () => {
  test("fifty thousand are answered", async () => {
    await seed(1, 50_000);
    await server.db.db`ANALYZE events, current_resources`;
    for (const when of ["", THEN, "&at=2026-03-02T00:00:00Z"]) {
      expect(await counted(NOW + when)).toEqual({ groups: 1, things: 50_000 });
      expect(await counted(BY_ALL + when)).toEqual({ groups: 50_000, things: 50_000 });
    }
    expect(await counted(EVENTS)).toEqual({ groups: 50_000, things: 50_000 });
    expect(await counted(`${EVENTS},source`)).toEqual({ groups: 50_000, things: 50_000 });
  }, 60_000);

  test("one more is refused", async () => {
    await seed(50_001, 50_001);
    for (const when of ["", THEN, "&at=2026-03-02T00:00:00Z"]) {
      await refused(NOW + when);
      await refused(BY_ALL + when);
      // It is resources that are counted: nothing of this status is there.
      expect(await counted(`${NOW}${when}&status=deleted`)).toEqual({ groups: 0, things: 0 });
    }
    await refused(EVENTS);
    await refused(`${EVENTS},source`);
    // The day before, all events were of one type.
    expect(await counted(EVENTS.replace("03-02", "03-01").replace("03-03", "03-02"))).toEqual({
      groups: 1,
      things: 50_001,
    });
  }, 60_000);

  test("what a token can't see is not counted against it", async () => {
    const token = await projectToken(server, ["eu1", "p1"], ["eu1", "p50001"]);
    for (const when of ["", THEN])
      expect(await counted(BY_ALL + when, token)).toEqual({ groups: 2, things: 2 });
    expect(await counted(EVENTS, token)).toEqual({ groups: 2, things: 2 });
  });
});
