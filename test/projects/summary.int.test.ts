/** GET /api/v1/projects/{id}/summary. Minutes are worked out by hand. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Instant, parseInstant } from "../../src/event/instant.ts";
import { type Sent, send } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { call, project, refusalOf } from "./calls.ts";

const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const MARCH = "?from=2026-03-01T00:00:00Z&to=2026-04-01T00:00:00Z";

function instant(text: string): Instant {
  const value = parseInstant(text);
  if (typeof value === "string") throw new Error(value);
  return value;
}
const LONG_AFTER = instant("2026-12-01T00:00:00Z");
let clock = LONG_AFTER;
let server: TestServer;
beforeAll(async () => {
  server = await testServer({ now: () => clock });
});
afterAll(() => server.stop());

const summary = (id: string, query = MARCH, token = server.credentials.admin) =>
  call(server, "GET", `/api/v1/projects/${id}/summary${query}`, undefined, token);
async function types(id: string, query = MARCH): Promise<unknown> {
  const answer = await summary(id, query);
  if (answer.status !== 200) throw new Error(answer.text);
  return JSON.parse(answer.text).resource_types;
}
/** A row as it is answered. */
const row = (resourceType: string, created: number, deleted: number, minutes: number, active: number) => ({
  resource_type: resourceType,
  created,
  deleted,
  total_minutes: minutes,
  active_now: active,
});
let sent = 0;
/** An event of a project; its payload is a running server's unless told. */
function event(
  projectId: string,
  resource: string,
  at: string,
  type: string,
  more: Partial<Sent> = {},
): Sent {
  sent++;
  return {
    id: `s${sent}`,
    at,
    type: `thing.${type}`,
    project: projectId,
    resource,
    payload: type === "delete" ? null : '{"state":"active","size":{"n":1}}',
    ...more,
  };
}

test("the March of a resource that is resized and stopped: 14,400 + 14,400 + 15,840 minutes", async () => {
  const id = await project(server, "march");
  await send(server, [
    event("march", "m1", "2026-03-01T00:00:00Z", "create"),
    event("march", "m1", "2026-03-11T00:00:00Z", "resize", { payload: '{"state":"active","size":{"n":2}}' }),
    event("march", "m1", "2026-03-21T00:00:00Z", "stop", { payload: '{"state":"stopped","size":{"n":2}}' }),
  ]);
  const answer = await summary(id);
  expect(answer).toEqual({
    status: 200,
    location: null,
    text: `{"project":{"id":"${id}","cloud":"eu1","external_id":"march"},"resource_types":[{"resource_type":"thing","created":1,"deleted":0,"total_minutes":44640,"active_now":1}]}`,
  });
  expect(await types(id, "?from=2026-03-01T00:00:00Z&to=2026-03-11T00:00:00Z")).toEqual([
    row("thing", 1, 0, 14_400, 1),
  ]);
  expect(await types(id, "?from=2026-03-11T00:00:00Z&to=2026-03-21T00:00:00Z")).toEqual([
    row("thing", 0, 0, 14_400, 1),
  ]);
  expect(await types(id, "?from=2026-03-21T00:00:00Z&to=2026-04-01T00:00:00Z")).toEqual([
    row("thing", 0, 0, 15_840, 1),
  ]);
});

test("a transfer in the middle of the month moves the minutes and neither count", async () => {
  const [giver, taker] = [await project(server, "giver"), await project(server, "taker")];
  await send(server, [
    event("giver", "t1", "2026-03-01T00:00:00Z", "create"),
    event("taker", "t1", "2026-03-16T00:00:00Z", "update"),
    // A correction that repeats the create, by the new owner.
    event("taker", "t1", "2026-03-17T00:00:00Z", "create"),
  ]);
  expect(await types(giver)).toEqual([row("thing", 1, 0, 15 * 1_440, 0)]);
  expect(await types(taker)).toEqual([row("thing", 0, 0, 16 * 1_440, 1)]);
  await send(server, [event("taker", "t1", "2026-03-31T00:00:00Z", "delete")]);
  expect(await types(giver)).toEqual([row("thing", 1, 0, 15 * 1_440, 0)]);
  expect(await types(taker)).toEqual([row("thing", 0, 1, 15 * 1_440, 0)]);
});

test("a create and a delete that are repeated count once", async () => {
  const id = await project(server, "repeated");
  await send(server, [
    event("repeated", "r1", "2026-03-02T00:00:00Z", "create"),
    event("repeated", "r1", "2026-03-02T00:00:30Z", "create"),
    event("repeated", "r1", "2026-03-03T00:00:00Z", "delete"),
    event("repeated", "r1", "2026-03-04T00:00:00Z", "delete"),
    event("repeated", "r1", "2026-03-05T00:00:00Z", "create"),
    event("repeated", "r1", "2026-03-05T00:10:00Z", "delete"),
  ]);
  expect(await types(id)).toEqual([row("thing", 2, 2, 1_450, 0)]);
});

test("seconds are added up before the minute is cut off", async () => {
  const id = await project(server, "seconds");
  await send(server, [
    event("seconds", "s1", "2026-03-02T00:00:00Z", "create"),
    event("seconds", "s1", "2026-03-02T00:00:40Z", "delete"),
    event("seconds", "s2", "2026-03-02T00:00:00Z", "create"),
    event("seconds", "s2", "2026-03-02T00:01:19.999999Z", "delete"),
    event("seconds", "s3", "2026-03-02T00:00:00Z", "create"),
    event("seconds", "s3", "2026-03-02T00:00:00.000001Z", "delete"),
    event("seconds", "v1", "2026-03-02T00:00:00Z", "create", { resourceType: "disc" }),
    event("seconds", "v1", "2026-03-02T00:00:59.999999Z", "delete", { resourceType: "disc" }),
  ]);
  // 40 s + 79.999999 s + 0.000001 s are two minutes; 59.999999 s are none.
  expect(await types(id)).toEqual([row("disc", 1, 1, 0, 0), row("thing", 3, 3, 2, 0)]);
});

test("what is open counts up to now, and the future not at all", async () => {
  const id = await project(server, "open");
  await send(server, [event("open", "o1", "2026-03-01T00:00:00Z", "create")]);
  clock = instant("2026-03-01T01:00:59.999999Z");
  expect(await types(id)).toEqual([row("thing", 1, 0, 60, 1)]);
  clock = instant("2026-03-31T00:00:00Z");
  expect(await types(id)).toEqual([row("thing", 1, 0, 43_200, 1)]);
  expect(await types(id, "?from=2026-03-31T00:00:00Z&to=2026-04-30T00:00:00Z")).toEqual([
    row("thing", 0, 0, 0, 1),
  ]);
  expect(await types(id, "?from=2027-01-01T00:00:00Z&to=2028-01-01T00:00:00Z")).toEqual([
    row("thing", 0, 0, 0, 1),
  ]);
  clock = LONG_AFTER;
  expect(await types(id)).toEqual([row("thing", 1, 0, 44_640, 1)]);
});

test("what an event dated ahead of now ends counts up to now: nothing that has not been served yet does", async () => {
  const id = await project(server, "ahead");
  await send(server, [
    event("ahead", "a1", "2026-03-01T00:00:00Z", "create"),
    event("ahead", "a1", "2026-03-04T00:00:00Z", "stop", { payload: '{"state":"stopped","size":{"n":1}}' }),
    event("ahead", "a1", "2026-03-05T00:00:00Z", "resize", { payload: '{"state":"stopped","size":{"n":2}}' }),
    event("ahead", "a2", "2026-03-01T00:00:00Z", "create"),
    event("ahead", "a3", "2026-03-01T00:00:00Z", "create"),
    event("ahead", "a3", "2026-03-04T00:00:00Z", "delete"),
  ]);
  clock = instant("2026-03-03T00:00:00Z");
  try {
    // Two days each, whether a change of state ends the interval tomorrow, a delete does, or nothing.
    expect(await types(id)).toEqual([row("thing", 3, 1, 3 * 2 * 1440, 2)]);
  } finally {
    clock = LONG_AFTER;
  }
});

test("an empty window and an inverted one hold nothing, and every type is listed all the same", async () => {
  const id = await project(server, "windows");
  await send(server, [
    event("windows", "w1", "2026-03-01T00:00:00Z", "create"),
    event("windows", "w2", "2026-03-05T00:00:00Z", "create", { resourceType: "Disc" }),
    event("windows", "w2", "2026-03-06T00:00:00Z", "delete", { resourceType: "Disc" }),
  ]);
  const nothing = [row("Disc", 0, 0, 0, 0), row("thing", 0, 0, 0, 1)];
  for (const window of [
    "?from=2026-03-05T00:00:00Z&to=2026-03-05T00:00:00Z",
    "?from=2026-04-01T00:00:00Z&to=2026-03-01T00:00:00Z",
    "?from=2025-01-01T00:00:00Z&to=2026-01-01T00:00:00Z",
  ]) {
    expect(await types(id, window)).toEqual(nothing);
  }
  expect(await types(id)).toEqual([row("Disc", 1, 1, 1_440, 0), row("thing", 1, 0, 44_640, 1)]);
});

test("a type whose resources are all handed on stays listed", async () => {
  const id = await project(server, "left");
  await project(server, "heir");
  await send(server, [
    event("left", "l1", "2026-02-01T00:00:00Z", "create"),
    event("heir", "l1", "2026-02-02T00:00:00Z", "update"),
  ]);
  expect(await types(id)).toEqual([row("thing", 0, 0, 0, 0)]);
});

test("another cloud's project of the same external id is another one", async () => {
  const [eu, us] = [await project(server, "twin", "eu1"), await project(server, "twin", "us1")];
  await send(server, [event("twin", "same", "2026-03-01T00:00:00Z", "create")]);
  await send(server, [
    event("twin", "same", "2026-03-31T00:00:00Z", "create", { cloud: "us1" }),
    event("twin", "more", "2026-03-31T00:00:00Z", "create", { cloud: "us1" }),
  ]);
  expect(await types(eu)).toEqual([row("thing", 1, 0, 44_640, 1)]);
  expect(await types(us)).toEqual([row("thing", 2, 0, 2_880, 2)]);
});

test("a project with neither events nor resources has no rows", async () => {
  expect(await types(await project(server, "idle"))).toEqual([]);
});

describe("who may read it", () => {
  test("a project token its own projects; another one is the unknown one's 404, byte for byte", async () => {
    const [own, other, twin] = [
      await project(server, "mine"),
      await project(server, "other"),
      await project(server, "mine", "us1"),
    ];
    const token = await server.credentials.project([own]);
    expect((await summary(own, MARCH, token)).status).toBe(200);
    const unknown = await summary(UNKNOWN, MARCH, token);
    expect(refusalOf(unknown)).toEqual({ status: 404, type: "not_found", locs: [] });
    for (const id of [other, twin]) expect(await summary(id, MARCH, token)).toEqual(unknown);
    expect((await summary(other, MARCH, server.credentials.readAll)).status).toBe(200);
    expect(await summary(UNKNOWN, MARCH, server.credentials.readAll)).toEqual(unknown);
  });
});

describe("parameters", () => {
  const from = "from=2026-03-01T00:00:00Z";
  const to = "to=2026-04-01T00:00:00Z";
  test.each([
    ["", ["query.from", "query.to"]],
    [`?${from}`, ["query.to"]],
    [`?${to}`, ["query.from"]],
    [`?from=&${to}`, ["query.from"]],
    [`?from=2026-03-01&${to}`, ["query.from"]],
    [`?${from}&to=2026-04-01T00:00:00`, ["query.to"]],
    [`?${from}&to=2026-04-01T00:00:60Z`, ["query.to"]],
    [`?${from}&${from}&${to}`, ["query.from"]],
    [`?${from}&${to}&at=${to}`, ["query.at"]],
    [`?${from}&${to}&resource_type=thing`, ["query.resource_type"]],
  ])("%s: 400 at %p", async (query, locs) => {
    expect(refusalOf(await summary(UNKNOWN, query))).toEqual({ status: 400, type: "validation", locs });
  });

  test("offsets and fractions are read, with a bare plus, too", async () => {
    const id = await project(server, "offsets");
    await send(server, [event("offsets", "f1", "2026-03-01T00:00:00Z", "create")]);
    for (const plus of ["%2B", "+"]) {
      const query = `?from=2026-03-01T02:00:00${plus}02:00&to=2026-03-01T02:01:00.000001${plus}02:00`;
      expect(await types(id, query)).toEqual([row("thing", 1, 0, 1, 1)]);
    }
  });
});

describe("long histories", () => {
  /** Events straight into the table, `n` of one resource, each a second after the one before. */
  const store = (projectId: string, resource: string, n: number, from = "2026-03-01T00:00:00Z") => server.db
    .db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT ${from}::text::timestamptz + n * interval '1 second', now(), ${`${projectId}-${resource}-`} || n,
           CASE n WHEN 0 THEN 'thing.create' ELSE 'thing.update' END, 'openstack', 'eu1', 'thing', ${resource},
           ${projectId}, 'collector', jsonb_build_object('state', CASE n % 2 WHEN 0 THEN 'on' ELSE 'off' END,
                                                         'size', jsonb_build_object('n', n))
      FROM generate_series(0, ${n - 1}::int) n`;

  test("are read page by page: one longer than a page between short ones", async () => {
    const id = await project(server, "long");
    await store("long", "a", 10);
    await store("long", "b", 25_000, "2026-03-02T00:00:00Z");
    await store("long", "c", 2_000, "2026-03-03T00:00:00Z");
    await store("long", "d", 1);
    // From their creates to the end of March: 31, 30, 29 and 31 days.
    expect(await types(id)).toEqual([row("thing", 4, 0, 121 * 1_440, 0)]);
  }, 60_000);

  test("100,000 events are folded, one more is refused, whoever's it is", async () => {
    const id = await project(server, "longest");
    await project(server, "before");
    await store("before", "x", 60_000, "2026-02-01T00:00:00Z");
    await store("longest", "x", 40_000);
    // The resource was another's before: its first 28 days of February are not this project's.
    expect(await types(id)).toEqual([row("thing", 0, 0, 44_640, 0)]);
    await store("before", "y", 1);
    expect((await summary(id)).status).toBe(200);
    await server.db.db`
      INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                          project_id, source)
      VALUES ('2026-01-01Z', now(), 'one-more', 'thing.delete', 'openstack', 'eu1', 'thing', 'x', 'before', 'collector')`;
    expect(refusalOf(await summary(id))).toEqual({ status: 422, type: "history_too_long", locs: [] });
  }, 120_000);

  test("more than 100,000 of its own are refused before anything is read", async () => {
    const id = await project(server, "own");
    await store("own", "z", 100_001);
    const started = performance.now();
    expect(refusalOf(await summary(id, "?from=2026-04-01T00:00:00Z&to=2026-03-01T00:00:00Z"))).toMatchObject({
      status: 422,
      type: "history_too_long",
    });
    expect(performance.now() - started).toBeLessThan(5_000);
  }, 60_000);
});
