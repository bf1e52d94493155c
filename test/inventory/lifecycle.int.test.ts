import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { column, faults, get, projectToken, send } from "./calls.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

const path = (resource: string, what: "events" | "lifecycle", cloud = "eu1") =>
  `/api/v1/resources/${cloud}/thing/${encodeURIComponent(resource)}/${what}`;

/** A lifecycle without its events' members but their ids. */
async function lifecycle(resource: string, token?: string) {
  const { status, text } = await get(server, path(resource, "lifecycle"), token);
  if (status !== 200) throw new Error(text);
  const { resource: row, events, intervals, warnings } = JSON.parse(text);
  return { row, ids: events.map((event: { event_id: string }) => event.event_id), intervals, warnings };
}

describe("a lifecycle", () => {
  test("tells the row, the events and the intervals, digit for digit", async () => {
    await send(server, [
      {
        id: "c",
        at: "2026-02-10T08:00:00.000001Z",
        type: "vm.create",
        resource: "digits",
        payload: '{"state":"on","size":{"n":12345678901234567890,"r":0.1000}}',
      },
      {
        id: "d",
        at: "2026-03-11T00:00:00Z",
        type: "vm.delete",
        resource: "digits",
        payload: null,
      },
    ]);
    const { status, text } = await get(server, path("digits", "lifecycle"));
    expect(status).toBe(200);
    const size = '{"n": 12345678901234567890, "r": 0.1000}';
    expect(text).toStartWith(
      '{"resource":{"cloud":"eu1","resource_type":"thing","resource_id":"digits","platform":"openstack"' +
        `,"project_id":"p1","state":"deleted","size":${size},"created_at":"2026-02-10T08:00:00.000001Z"` +
        ',"deleted_at":"2026-03-11T00:00:00Z","first_event_at":"2026-02-10T08:00:00.000001Z"' +
        ',"last_event_at":"2026-03-11T00:00:00Z","last_event_type":"vm.delete","last_payload":null},"events":[{',
    );
    expect(text).toEndWith(
      `],"intervals":[{"from":"2026-02-10T08:00:00.000001Z","to":"2026-03-11T00:00:00Z","state":"on"` +
        `,"size":${size},"project_id":"p1"}],"warnings":[]}`,
    );
    // Its events are exactly those of the other route.
    const { text: events } = await get(server, path("digits", "events"));
    expect(text).toContain(
      `"events":${events.slice('{"items":'.length, events.indexOf(',"next_cursor"'))},"intervals"`,
    );
  });

  test("orders by timestamp, then by arrival, then by id: not by id alone", async () => {
    await send(server, [{ id: "z", at: "2026-03-01T00:00:00Z", resource: "order", type: "x.create" }]);
    await send(server, [
      { id: "y", at: "2026-03-01T00:00:00Z", resource: "order", payload: '{"state":"off"}' },
      { id: "a", at: "2026-03-01T00:00:00Z", resource: "order", payload: '{"state":"on"}' },
      { id: "early", at: "2026-02-28T23:59:59.999999Z", resource: "order", payload: '{"state":"off"}' },
    ]);
    const { items, next_cursor } = JSON.parse((await get(server, path("order", "events"))).text);
    expect(items.map((item: { event_id: string }) => item.event_id)).toEqual(["early", "z", "y", "a"]);
    expect(next_cursor).toBeNull();
    const { intervals, warnings } = await lifecycle("order");
    expect(intervals).toEqual([
      {
        from: "2026-02-28T23:59:59.999999Z",
        to: "2026-03-01T00:00:00Z",
        state: "off",
        size: {},
        project_id: "p1",
      },
      { from: "2026-03-01T00:00:00Z", to: null, state: "on", size: { n: 1 }, project_id: "p1" },
    ]);
    expect(warnings).toEqual(["history_starts_without_create"]);
  });

  test.each([
    "a/b/../c",
    "with space",
    "😀 ünï",
    "100%",
    "%2F",
    "?cloud=us1#x",
    "..",
    "a+b",
    "semi;colon",
    '"\\',
  ])("of the id %p is found behind percent-encoding", async (resource) => {
    await send(server, [{ id: `odd-${resource}`, at: "2026-03-01T00:00:00Z", resource, type: "x.create" }]);
    // A browser's URL takes `.` and `..` as steps, encoded or not.
    if (resource === "..") return;
    const { row, ids } = await lifecycle(resource);
    expect(row.resource_id).toBe(resource);
    expect(ids).toEqual([`odd-${resource}`]);
  });

  test.each([
    ["%ff", ["path.resource_id"]],
    ["%00", ["path.resource_id"]],
    ["%zz", ["path.resource_id"]],
    ["a".repeat(513), ["path.resource_id"]],
    ["r1", ["query.limit"], "?limit=5"],
    ["r1", ["query.cursor"], "?cursor=x"],
  ] as [string, string[], string?][])("of %p is refused at %p", async (resource, locs, query = "") => {
    for (const what of ["events", "lifecycle"]) {
      const refused = await faults(server, `/api/v1/resources/eu1/thing/${resource}/${what}${query}`);
      expect(refused).toEqual({ status: 400, locs });
    }
  });

  test("of nothing is a 404", async () => {
    for (const what of ["events", "lifecycle"] as const) {
      expect(await get(server, path("nothing", what))).toEqual({
        status: 404,
        text: '{"type":"urn:tally:error:not_found","title":"No such path or thing","status":404}',
      });
      expect((await get(server, path("digits", what, "us1"))).status).toBe(404);
    }
  });
});

describe("a resource handed from project a to project b", () => {
  let a: string;
  let b: string;
  let both: string;
  beforeAll(async () => {
    await send(server, [
      { id: "t1", at: "2026-03-01T00:00:00Z", type: "x.create", resource: "handed", project: "a" },
      { id: "t2", at: "2026-03-02T00:00:00Z", type: "x.update", resource: "handed", project: "a" },
      { id: "t3", at: "2026-03-03T00:00:00Z", type: "x.transfer", resource: "handed", project: "b" },
      {
        id: "t4",
        at: "2026-03-04T00:00:00Z",
        type: "x.resize",
        resource: "handed",
        project: "b",
        payload: '{"state":"on","size":{"n":2}}',
      },
    ]);
    // Another cloud has projects and a resource of the same ids.
    await send(server, [
      {
        id: "us-t1",
        at: "2026-03-01T00:00:00Z",
        cloud: "us1",
        type: "x.create",
        resource: "handed",
        project: "a",
      },
    ]);
    a = await projectToken(server, ["eu1", "a"]);
    b = await projectToken(server, ["eu1", "b"]);
    both = await projectToken(server, ["eu1", "a"], ["eu1", "b"]);
  });

  test("is gone for a, as if it had never been: the answers are the same byte for byte", async () => {
    for (const what of ["events", "lifecycle"] as const) {
      const gone = await server.request(path("handed", what), {
        token: a,
        headers: { "x-request-id": "same" },
      });
      const never = await server.request(path("never", what), {
        token: a,
        headers: { "x-request-id": "same" },
      });
      expect(gone.status).toBe(404);
      expect(await gone.text()).toBe(await never.text());
      const headers = (answer: Response) => [...answer.headers].filter(([name]) => name !== "date");
      expect(headers(gone)).toEqual(headers(never));
    }
    expect(await column(server, "/api/v1/resources?status=all", "resource_id", a)).toEqual([]);
  });

  test("leaves a its own events in the list of events", async () => {
    expect(await column(server, "/api/v1/events", "event_id", a)).toEqual(["t1", "t2"]);
    expect(await column(server, "/api/v1/events?resource_id=handed&project_id=a", "event_id", a)).toEqual([
      "t1",
      "t2",
    ]);
  });

  test("is b's from the transfer on: its events, its intervals, a warning; the row is whole", async () => {
    const { row, ids, intervals, warnings } = await lifecycle("handed", b);
    expect(ids).toEqual(["t3", "t4"]);
    expect(intervals).toEqual([
      {
        from: "2026-03-03T00:00:00Z",
        to: "2026-03-04T00:00:00Z",
        state: "on",
        size: { n: 1 },
        project_id: "b",
      },
      { from: "2026-03-04T00:00:00Z", to: null, state: "on", size: { n: 2 }, project_id: "b" },
    ]);
    expect(warnings).toEqual(["history_starts_without_create"]);
    expect(row).toMatchObject({
      project_id: "b",
      created_at: "2026-03-01T00:00:00Z",
      first_event_at: "2026-03-01T00:00:00Z",
    });
    expect(await column(server, path("handed", "events"), "event_id", b)).toEqual(["t3", "t4"]);
    expect(await column(server, "/api/v1/events", "event_id", b)).toEqual(["t3", "t4"]);
  });

  test("is whole for who owns both, and for read_all", async () => {
    for (const token of [both, server.credentials.readAll]) {
      const { ids, intervals, warnings } = await lifecycle("handed", token);
      expect(ids).toEqual(["t1", "t2", "t3", "t4"]);
      expect(intervals.map((interval: { project_id: string }) => interval.project_id)).toEqual([
        "a",
        "b",
        "b",
      ]);
      expect(warnings).toEqual([]);
    }
  });

  test("is nobody's by another cloud's project of the same id", async () => {
    const us = await projectToken(server, ["us1", "b"], ["us1", "a"]);
    expect((await get(server, path("handed", "lifecycle"), us)).status).toBe(404);
    expect((await get(server, path("handed", "lifecycle", "us1"), us)).status).toBe(200);
  });

  test("comes back to a: a sees both of its spans and not b's between them", async () => {
    await send(server, [
      { id: "t5", at: "2026-03-06T00:00:00Z", type: "x.transfer", resource: "handed", project: "a" },
    ]);
    const { ids, intervals, warnings } = await lifecycle("handed", a);
    expect(ids).toEqual(["t1", "t2", "t5"]);
    // Folded from a's own events alone: what b did in between shows nowhere, so a's span runs through.
    expect(intervals).toEqual([
      { from: "2026-03-01T00:00:00Z", to: null, state: "on", size: { n: 1 }, project_id: "a" },
    ]);
    expect(warnings).toEqual([]);
    expect((await get(server, path("handed", "events"), b)).status).toBe(404);
    expect(await column(server, "/api/v1/events", "event_id", b)).toEqual(["t3", "t4"]);
  });
});

describe("a long history", () => {
  /** Adds n events of a resource by SQL. */
  const grow = (resource: string, n: number) => server.db.db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-01-01T00:00:00Z' + i * interval '1 second', now(), ${resource} || i, 'x.update', 'openstack',
           'eu1', 'thing', ${resource}, CASE WHEN i < 9000 THEN 'old' ELSE 'new' END, 'collector', '{"state":"on"}'
      FROM generate_series(1, ${n}::int) i`;

  test("is read up to 10,000 stored events, and refused beyond, whoever's they are", async () => {
    await grow("long", 9_999);
    await send(server, [{ id: "long-last", at: "2026-02-01T00:00:00Z", resource: "long", project: "new" }]);
    const owner = await projectToken(server, ["eu1", "new"]);
    expect((await lifecycle("long")).ids).toHaveLength(10_000);
    expect((await lifecycle("long", owner)).ids).toHaveLength(1_001);
    await send(server, [{ id: "long-over", at: "2026-02-02T00:00:00Z", resource: "long", project: "new" }]);
    const stranger = await projectToken(server, ["eu1", "old"]);
    for (const what of ["events", "lifecycle"] as const) {
      for (const token of [undefined, owner]) {
        const { status, text } = await get(server, path("long", what), token);
        expect(status).toBe(422);
        expect(JSON.parse(text)).toMatchObject({ type: "urn:tally:error:history_too_long", status: 422 });
      }
      expect((await get(server, path("long", what), stranger)).status).toBe(404);
    }
    // The pages know no bound.
    expect(
      await column(server, "/api/v1/events?resource_id=long&limit=1000", "event_id", owner),
    ).toHaveLength(1_000);
  });

  test("is refused past 256 MiB of payloads, which one answer couldn't carry; its pages are read", async () => {
    await send(server, [{ id: "wide-0", at: "2026-01-01T00:00:00Z", resource: "wide", project: "new" }]);
    const widen = (from: number, to: number) => server.db.db`
      INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                          project_id, source, payload)
      SELECT timestamptz '2025-01-01T00:00:00Z' + i * interval '1 second', now(), 'wide' || i, 'x.update', 'openstack',
             'eu1', 'thing', 'wide', 'new', 'collector',
             jsonb_build_object('state', 'on', 'note', CASE WHEN i > 1050 THEN repeat('x', 254000) ELSE '' END)
        FROM generate_series(${from}::int, ${to}::int) i`;
    await widen(1, 1_060);
    expect((await get(server, path("wide", "events"))).status).toBe(200);
    await widen(1_061, 2_130);
    for (const what of ["events", "lifecycle"] as const) {
      const { status, text } = await get(server, path("wide", what));
      expect([status, JSON.parse(text).type]).toEqual([422, "urn:tally:error:history_too_long"]);
    }
    expect((await get(server, "/api/v1/events?resource_id=wide&limit=10")).status).toBe(200);
  });
});
