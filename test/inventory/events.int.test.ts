import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { column, faults, get, projectToken, readPage, send } from "./calls.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
  await send(server, [
    // Sent out of order; e2 and e10 share an instant: by bytes, "e10" comes before "e2".
    { id: "e2", at: "2026-03-02T00:00:00Z", type: "thing.resize", resource: "r1" },
    { id: "e10", at: "2026-03-02T00:00:00Z", type: "thing.update", resource: "r2", project: "p2" },
    { id: "e1", at: "2026-03-01T00:00:00Z", type: "thing.create", resource: "r1" },
    {
      id: "e3",
      at: "2026-03-03T00:00:00.000001Z",
      type: "thing.update",
      resourceType: "other",
      resource: "r 3/ü",
    },
  ]);
  await send(server, [{ id: "u1", at: "2026-03-01T12:00:00Z", cloud: "us1", resource: "r1", project: "p1" }]);
  // Reconciliation has no route of its own: its event comes by SQL.
  await server.db.db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    VALUES ('2026-03-04T00:00:00Z', '2026-03-04T00:00:01Z', 'recon-1', 'sync.update', 'vsphere', 'vc1', 'vm', 'r9',
            'p9', 'reconciliation', NULL)`;
});
afterAll(() => server.stop());

const ids = (query: string, token?: string) => column(server, `/api/v1/events${query}`, "event_id", token);

describe("GET /api/v1/events", () => {
  test("is ordered by timestamp, then by the bytes of event_id", async () => {
    expect(await ids("")).toEqual(["e1", "u1", "e10", "e2", "e3", "recon-1"]);
  });

  test.each([
    ["cloud=eu1", ["e1", "e10", "e2", "e3"]],
    ["cloud=us1", ["u1"]],
    ["cloud=EU1", []],
    ["platform=vsphere", ["recon-1"]],
    ["project_id=p1", ["e1", "u1", "e2", "e3"]],
    ["project_id=p1&cloud=eu1", ["e1", "e2", "e3"]],
    ["resource_type=other", ["e3"]],
    ["resource_id=r1", ["e1", "u1", "e2"]],
    ["resource_id=r%203%2F%C3%BC", ["e3"]],
    ["resource_id=r+3/%C3%BC", ["e3"]],
    ["event_type=thing.update", ["u1", "e10", "e3"]],
    ["event_type=thing", []],
    ["source=reconciliation", ["recon-1"]],
    ["source=collector&cloud=us1", ["u1"]],
    ["from=2026-03-02T00:00:00Z", ["e10", "e2", "e3", "recon-1"]],
    ["to=2026-03-02T00:00:00Z", ["e1", "u1"]],
    ["from=2026-03-02T00:00:00Z&to=2026-03-02T00:00:00.000001Z", ["e10", "e2"]],
    ["from=2026-03-03T00:00:00.000001Z&to=2026-03-04T00:00:00Z", ["e3"]],
    ["from=2026-03-03T00:00:00.000002Z&to=2026-03-04T00:00:00Z", []],
    // Digits past the microsecond are cut off.
    ["from=2026-03-03T00:00:00.0000019Z&to=2026-03-04T00:00:00Z", ["e3"]],
    ["from=2026-03-01T14:00:00%2B02:00&to=2026-03-01T07:00:01-05:00", ["u1"]],
    ["from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59.999999Z&resource_id=r1&cloud=eu1", ["e1", "e2"]],
    ["from=2026-03-05T00:00:00Z&to=2026-03-01T00:00:00Z", []],
  ])("?%s", async (query, expected) => {
    expect(await ids(`?${query}`)).toEqual(expected);
  });

  test.each([
    ["clouds=eu1", ["query.clouds"]],
    ["Cloud=eu1", ["query.Cloud"]],
    ["cloud=eu1&cloud=eu1", ["query.cloud"]],
    ["cloud=", ["query.cloud"]],
    ["cloud", ["query.cloud"]],
    ["cloud=%00", ["query.cloud"]],
    ["cloud=%ff", ["query.cloud"]],
    [`cloud=${"a".repeat(513)}`, ["query.cloud"]],
    [`resource_id=${"%C3%BC".repeat(257)}`, ["query.resource_id"]],
    ["source=collectors", ["query.source"]],
    ["from=2026-03-01", ["query.from"]],
    ["from=2026-03-01T00:00:00", ["query.from"]],
    ["to=2026-02-29T00:00:00Z", ["query.to"]],
    ["to=0000-01-01T00:00:00Z", ["query.to"]],
    ["limit=0", ["query.limit"]],
    ["limit=1001", ["query.limit"]],
    ["limit=1e2", ["query.limit"]],
    ["limit=-1", ["query.limit"]],
    ["limit=ten", ["query.limit"]],
    ["status=all&limit=x&from=y", ["query.from", "query.limit", "query.status"]],
  ])("?%s is refused at %p", async (query, locs) => {
    expect(await faults(server, `/api/v1/events?${query}`)).toEqual({ status: 400, locs });
  });

  test("holds what the record holds, digit for digit", async () => {
    const payload =
      '{"state": "on", "size": {"n": 12345678901234567890, "r": 0.1000, "e": 1e2, "z": -0, "deep": [1.50, {"x": 1E-3}]}, "näme": "\\u00fc\\n\\"\\\\😀"}';
    await send(server, [
      {
        id: 'di"g\\it',
        at: "2026-04-01T05:30:00.123456+05:30",
        type: "a.create",
        resource: "digits",
        payload,
      },
    ]);
    const { text } = await get(server, "/api/v1/events?resource_id=digits");
    const { items } = await readPage(server, "/api/v1/events?resource_id=digits");
    const received = String(items[0]?.received_at);
    expect(received).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/);
    expect(text).toBe(
      '{"items":[{"event_id":"di\\"g\\\\it","timestamp":"2026-04-01T00:00:00.123456Z","event_type":"a.create"' +
        ',"platform":"openstack","cloud":"eu1","resource_type":"thing","resource_id":"digits","project_id":"p1"' +
        ',"source":"collector","payload":{"size": {"e": 100, "n": 12345678901234567890, "r": 0.1000, "z": 0, "deep": ' +
        '[1.50, {"x": 0.001}]}, "näme": "ü\\n\\"\\\\😀", "state": "on"}' +
        `,"received_at":"${received}"}],"next_cursor":null}`,
    );
  });

  test("a delete without a payload has null", async () => {
    const { items } = await readPage(server, "/api/v1/events?source=reconciliation");
    expect(items).toEqual([
      {
        event_id: "recon-1",
        timestamp: "2026-03-04T00:00:00Z",
        event_type: "sync.update",
        platform: "vsphere",
        cloud: "vc1",
        resource_type: "vm",
        resource_id: "r9",
        project_id: "p9",
        source: "reconciliation",
        payload: null,
        received_at: "2026-03-04T00:00:01Z",
      },
    ]);
  });
});

describe("a project token", () => {
  test("reads the events of its own cloud's project, not those of another cloud's of the same id", async () => {
    const eu = await projectToken(server, ["eu1", "p1"]);
    expect(await ids("?to=2026-03-31T00:00:00Z", eu)).toEqual(["e1", "e2", "e3"]);
    const us = await projectToken(server, ["us1", "p1"]);
    expect(await ids("", us)).toEqual(["u1"]);
    expect(await ids("?project_id=p1", us)).toEqual(["u1"]);
    expect(await ids("?cloud=eu1", us)).toEqual([]);
  });

  test("of several projects reads them as one list", async () => {
    const both = await projectToken(server, ["us1", "p1"], ["eu1", "p2"], ["eu1", "nothing"]);
    expect(await ids("", both)).toEqual(["u1", "e10"]);
    expect(await ids("?cloud=eu1", both)).toEqual(["e10"]);
    expect(await ids("?project_id=p1", both)).toEqual(["u1"]);
    const first = await readPage(server, "/api/v1/events?limit=1", both);
    expect(first.items.map((item) => item.event_id)).toEqual(["u1"]);
    const second = await readPage(server, `/api/v1/events?limit=1&cursor=${first.next_cursor}`, both);
    expect(second.items.map((item) => item.event_id)).toEqual(["e10"]);
    expect(second.next_cursor).toBeNull();
  });

  test("may not filter by a project that isn't its own", async () => {
    const us = await projectToken(server, ["us1", "p1"]);
    for (const query of ["project_id=p2", "project_id=nobody", "project_id=p1&cloud=eu1"]) {
      for (const list of ["events", "resources"]) {
        const { status, text } = await get(server, `/api/v1/${list}?${query}`, us);
        expect([status, text]).toEqual([403, expect.stringContaining("urn:tally:error:forbidden")]);
      }
    }
    expect((await get(server, "/api/v1/events?project_id=p1&cloud=us1", us)).status).toBe(200);
  });
});
