import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { column, faults, get, projectToken, send } from "./calls.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
  await send(server, [
    {
      id: "v1-create",
      at: "2026-03-01T00:00:00.000001Z",
      type: "volume.create.end",
      resourceType: "disk",
      resource: "b",
      payload:
        '{"state":"available","size":{"size_gb":10.50,"big":12345678901234567890},"provider":{"az":"nova"}}',
    },
    {
      id: "v1-attach",
      at: "2026-03-02T00:00:00Z",
      type: "volume.attach.end",
      resourceType: "disk",
      resource: "b",
      payload: '{"state":"in-use","note":1e2}',
    },
    {
      id: "a-create",
      at: "2026-03-01T00:00:00Z",
      type: "x.create",
      resourceType: "disk",
      resource: "a",
      project: "p2",
    },
    {
      id: "a-delete",
      at: "2026-03-05T00:00:00Z",
      type: "x.delete",
      resourceType: "disk",
      resource: "a",
      project: "p2",
      payload: null,
    },
    // Capitals come before small letters: the order is by bytes.
    { id: "z-update", at: "2026-03-01T00:00:00Z", type: "x.update", resourceType: "disk", resource: "Z" },
    {
      id: "addr",
      at: "2026-03-01T00:00:00Z",
      type: "x.create",
      resourceType: "address",
      resource: "10.0.0.1",
    },
  ]);
  await send(server, [
    { id: "us", at: "2026-03-01T00:00:00Z", cloud: "us1", type: "x.create", resource: "b" },
  ]);
});
afterAll(() => server.stop());

const ids = (query: string, token?: string) =>
  column(server, `/api/v1/resources${query}`, "resource_id", token);

describe("GET /api/v1/resources", () => {
  test.each([
    ["", ["10.0.0.1", "Z", "b", "b"]],
    ["?status=active", ["10.0.0.1", "Z", "b", "b"]],
    ["?status=deleted", ["a"]],
    ["?status=all", ["10.0.0.1", "Z", "a", "b", "b"]],
    ["?status=all&cloud=eu1&resource_type=disk", ["Z", "a", "b"]],
    ["?cloud=us1", ["b"]],
    ["?platform=openstack&resource_type=address", ["10.0.0.1"]],
    ["?platform=vsphere", []],
    ["?project_id=p2", []],
    ["?project_id=p2&status=all", ["a"]],
    ["?state=in-use", ["b"]],
    ["?state=in", []],
    ["?state=deleted", []],
    ["?state=deleted&status=all", ["a"]],
    ["?state=deleted&status=deleted", ["a"]],
    ["?state=in-use&status=deleted", []],
  ])("%p", async (query, expected) => {
    expect(await ids(query)).toEqual(expected);
  });

  test.each([
    ["status=living", ["query.status"]],
    ["status=", ["query.status"]],
    ["status=all&status=all", ["query.status"]],
    ["from=2026-03-01T00:00:00Z", ["query.from"]],
    ["event_type=x.create", ["query.event_type"]],
    ["resource_id=b", ["query.resource_id"]],
    ["state=%00", ["query.state"]],
    [`state=${"%C3%BC".repeat(257)}`, ["query.state"]],
    ["limit=1001&projectid=p1", ["query.limit", "query.projectid"]],
  ])("?%s is refused at %p", async (query, locs) => {
    expect(await faults(server, `/api/v1/resources?${query}`)).toEqual({ status: 400, locs });
  });

  test("tells each resource with its newest event's payload, digit for digit", async () => {
    expect(await get(server, "/api/v1/resources?cloud=eu1&state=in-use")).toEqual({
      status: 200,
      text:
        '{"items":[{"cloud":"eu1","resource_type":"disk","resource_id":"b","platform":"openstack","project_id":"p1"' +
        ',"state":"in-use","size":{"big": 12345678901234567890, "size_gb": 10.50}' +
        ',"created_at":"2026-03-01T00:00:00.000001Z","deleted_at":null,"first_event_at":"2026-03-01T00:00:00.000001Z"' +
        ',"last_event_at":"2026-03-02T00:00:00Z","last_event_type":"volume.attach.end"' +
        ',"last_payload":{"note": 100, "state": "in-use"}}],"next_cursor":null}',
    });
  });

  test("a deleted one keeps its row; one that never showed a create has no created_at", async () => {
    const { text } = await get(server, "/api/v1/resources?status=all&cloud=eu1&resource_type=disk&limit=2");
    const { items } = JSON.parse(text);
    expect(items).toEqual([
      {
        cloud: "eu1",
        resource_type: "disk",
        resource_id: "Z",
        platform: "openstack",
        project_id: "p1",
        state: "on",
        size: { n: 1 },
        created_at: null,
        deleted_at: null,
        first_event_at: "2026-03-01T00:00:00Z",
        last_event_at: "2026-03-01T00:00:00Z",
        last_event_type: "x.update",
        last_payload: { state: "on", size: { n: 1 } },
      },
      {
        cloud: "eu1",
        resource_type: "disk",
        resource_id: "a",
        platform: "openstack",
        project_id: "p2",
        state: "deleted",
        size: { n: 1 },
        created_at: "2026-03-01T00:00:00Z",
        deleted_at: "2026-03-05T00:00:00Z",
        first_event_at: "2026-03-01T00:00:00Z",
        last_event_at: "2026-03-05T00:00:00Z",
        last_event_type: "x.delete",
        last_payload: null,
      },
    ]);
  });

  test("a project token sees its own cloud's project only", async () => {
    expect(await ids("?status=all", await projectToken(server, ["us1", "p1"]))).toEqual(["b"]);
    expect(await ids("?status=all", await projectToken(server, ["us1", "p1"], ["eu1", "p2"]))).toEqual([
      "a",
      "b",
    ]);
    expect(await ids("?status=all", await projectToken(server, ["us1", "p2"]))).toEqual([]);
  });
});

test("the schema's instants at both ends survive the way through cursor and answer", async () => {
  await send(server, [
    { id: "first", at: "0001-01-01T00:00:00.000001Z", resource: "ends", type: "x.create" },
    { id: "last", at: "9999-12-31T23:59:59.999999Z", resource: "ends" },
    { id: "last-2", at: "9999-12-31T23:59:59.999999Z", resource: "ends" },
  ]);
  const seen: unknown[] = [];
  let cursor = "";
  for (let page = 0; page < 3; page++) {
    const { text } = await get(server, `/api/v1/events?resource_id=ends&limit=1${cursor}`);
    const { items, next_cursor } = JSON.parse(text);
    seen.push(items[0].event_id, items[0].timestamp);
    cursor = `&cursor=${next_cursor}`;
    expect(next_cursor === null).toBe(page === 2);
  }
  expect(seen).toEqual([
    "first",
    "0001-01-01T00:00:00.000001Z",
    "last",
    "9999-12-31T23:59:59.999999Z",
    "last-2",
    "9999-12-31T23:59:59.999999Z",
  ]);
});
