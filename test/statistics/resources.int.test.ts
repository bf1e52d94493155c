/** GET /api/v1/stats/resources, present and past. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { faults, get, projectToken, type Sent, send } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
const PATH = "/api/v1/stats/resources";
const state = (name: string) => `{"state":"${name}","size":{"n":1}}`;
const EU: Sent[] = [
  // a: born, handed on, switched off, gone on the fifth of March.
  { id: "1", at: "2026-03-01T00:00:00Z", type: "x.create", resource: "a", payload: state("on") },
  {
    id: "2",
    at: "2026-03-02T00:00:00.000001Z",
    type: "x.give",
    resource: "a",
    project: "p2",
    payload: state("on"),
  },
  {
    id: "3",
    at: "2026-03-03T00:00:00Z",
    type: "x.stop",
    resource: "a",
    project: "p2",
    payload: state("off"),
  },
  { id: "4", at: "2026-03-05T00:00:00Z", type: "x.delete", resource: "a", project: "p2", payload: null },
  // b: dead on the second, a straggler on the third, alive again on the fourth.
  { id: "5", at: "2026-03-01T00:00:00Z", type: "x.create", resource: "b", payload: state("on") },
  { id: "6", at: "2026-03-02T00:00:00Z", type: "x.delete", resource: "b", payload: null },
  { id: "7", at: "2026-03-03T00:00:00Z", type: "x.stop", resource: "b", payload: state("off") },
  { id: "8", at: "2026-03-04T00:00:00Z", type: "x.create", resource: "b", payload: state("on") },
  // c: no create; d: nothing but a delete; e: what deletes a snapshot deletes no volume.
  { id: "9", at: "2026-03-02T00:00:00Z", type: "x.update", resource: "c", payload: state("on") },
  { id: "10", at: "2026-03-04T00:00:00Z", type: "x.update", resource: "c", payload: state("off") },
  { id: "11", at: "2026-03-02T00:00:00Z", type: "x.delete.end", resource: "d", payload: null },
  { id: "12", at: "2026-03-01T00:00:00Z", type: "x.create", resource: "e", payload: state("on") },
  {
    id: "13",
    at: "2026-03-02T00:00:00Z",
    type: "x.delete_snapshot.end",
    resource: "e",
    payload: state("busy"),
  },
  { id: "14", at: "2026-03-06T00:00:00Z", type: "x.update", resource: "e", payload: state("on") },
  {
    id: "15",
    at: "2026-03-01T00:00:00Z",
    type: "x.create",
    resource: "z",
    resourceType: "Disk",
    payload: state("on"),
  },
];
const US: Sent[] = [
  {
    id: "us-1",
    at: "2026-03-01T00:00:00Z",
    type: "x.create",
    resource: "a",
    cloud: "us1",
    payload: state("on"),
  },
];

beforeAll(async () => {
  server = await testServer();
  await send(server, EU);
  await send(server, US);
});
afterAll(() => server.stop());

/** The groups as lines, `eu1 thing on p1: 2`, in the order of the answer. */
async function groups(query: string, token?: string): Promise<string[]> {
  const { status, text } = await get(server, `${PATH}?${query}`, token);
  if (status !== 200) throw new Error(text);
  const { items }: { items: (Record<string, string> & { count: number })[] } = JSON.parse(text);
  return items.map(({ count, ...values }) => `${Object.values(values).join(" ")}: ${count}`);
}

describe("now", () => {
  test("counts what lives, and tells only what was grouped by", async () => {
    expect(await get(server, `${PATH}?group_by=resource_type,cloud`)).toEqual({
      status: 200,
      text:
        '{"items":[{"cloud":"eu1","resource_type":"Disk","count":1},{"cloud":"eu1","resource_type":"thing","count":3},' +
        '{"cloud":"us1","resource_type":"thing","count":1}]}',
    });
  });

  test.each([
    ["status=deleted", ["eu1 thing: 2"]],
    ["status=all", ["eu1 Disk: 1", "eu1 thing: 5", "us1 thing: 1"]],
  ])("%s", async (query, expected) => {
    expect(await groups(`group_by=cloud,resource_type&${query}`)).toEqual(expected);
  });

  test("orders by every dimension, whatever their order in the request", async () => {
    expect(await groups("status=all&group_by=project_id,platform,state,resource_type,cloud")).toEqual([
      "eu1 Disk on openstack p1: 1",
      "eu1 thing deleted openstack p1: 1",
      "eu1 thing deleted openstack p2: 1",
      "eu1 thing off openstack p1: 1",
      "eu1 thing on openstack p1: 2",
      "us1 thing on openstack p1: 1",
    ]);
    expect(await groups("status=all&group_by=cloud,resource_type,project_id")).toEqual([
      "eu1 Disk p1: 1",
      "eu1 thing p1: 4",
      "eu1 thing p2: 1",
      "us1 thing p1: 1",
    ]);
  });

  test("a project token counts its own cloud's project only", async () => {
    const of = (...pairs: [string, string][]) => projectToken(server, ...pairs);
    const query = "status=all&group_by=cloud,resource_type";
    expect(await groups(query, await of(["us1", "p1"]))).toEqual(["us1 thing: 1"]);
    expect(await groups(query, await of(["eu1", "p2"]))).toEqual(["eu1 thing: 1"]);
    expect(await groups(query, await of(["us1", "p1"], ["eu1", "p2"]))).toEqual([
      "eu1 thing: 1",
      "us1 thing: 1",
    ]);
    expect(await groups(query, await of(["us1", "p2"]))).toEqual([]);
    expect(await groups(query, server.credentials.readAll)).toHaveLength(3);
  });
});

describe("at an instant", () => {
  const at = (instant: string, query = "", token?: string) =>
    groups(`group_by=cloud,resource_type,state,project_id&status=all&at=${instant}${query}`, token);

  test("nothing is there before the first event", async () => {
    expect(await at("2026-02-28T23:59:59.999999Z")).toEqual([]);
    expect(await at("0001-01-01T00:00:00Z")).toEqual([]);
  });

  test("an event at the very instant has happened", async () => {
    expect(await at("2026-03-01T00:00:00Z")).toEqual([
      "eu1 Disk on p1: 1",
      "eu1 thing on p1: 3",
      "us1 thing on p1: 1",
    ]);
  });

  test("deletes, deletes only, histories without a create, and a snapshot's delete", async () => {
    expect(await at("2026-03-02T00:00:00Z")).toEqual([
      "eu1 Disk on p1: 1",
      "eu1 thing busy p1: 1",
      "eu1 thing deleted p1: 2",
      "eu1 thing on p1: 2",
      "us1 thing on p1: 1",
    ]);
  });

  test("a microsecond later the next owner has it", async () => {
    const one = await projectToken(server, ["eu1", "p1"]);
    const two = await projectToken(server, ["eu1", "p2"]);
    expect(await at("2026-03-02T00:00:00Z", "", two)).toEqual([]);
    expect(await at("2026-03-02T00:00:00.000001Z", "", two)).toEqual(["eu1 thing on p2: 1"]);
    expect(await at("2026-03-02T00:00:00Z", "", one)).toContain("eu1 thing on p1: 2");
    expect(await at("2026-03-02T00:00:00.000001Z", "", one)).toContain("eu1 thing on p1: 1");
    expect(await at("9999-12-31T23:59:59.999999Z", "", two)).toEqual(["eu1 thing deleted p2: 1"]);
    expect(await at("2026-03-05T00:00:00Z", "", await projectToken(server, ["us1", "p2"]))).toEqual([]);
  });

  test("a straggler revives nothing, a later create does", async () => {
    expect(await at("2026-03-03T12:00:00Z")).toContain("eu1 thing deleted p1: 2");
    expect(await at("2026-03-04T00:00:00Z")).toEqual([
      "eu1 Disk on p1: 1",
      "eu1 thing busy p1: 1",
      "eu1 thing deleted p1: 1",
      "eu1 thing off p1: 1",
      "eu1 thing off p2: 1",
      "eu1 thing on p1: 1",
      "us1 thing on p1: 1",
    ]);
  });

  test("status is what it was then", async () => {
    const query = (status: string) => `group_by=cloud,resource_type&at=2026-03-03T12:00:00Z&status=${status}`;
    expect(await groups(query("active"))).toEqual(["eu1 Disk: 1", "eu1 thing: 3", "us1 thing: 1"]);
    expect(await groups(query("deleted"))).toEqual(["eu1 thing: 2"]);
    expect(await groups(query("all"))).toEqual(["eu1 Disk: 1", "eu1 thing: 5", "us1 thing: 1"]);
  });

  test("after everything it is what there is now", async () => {
    for (const group of ["cloud,resource_type", "cloud,resource_type,state,platform,project_id"]) {
      for (const status of ["active", "deleted", "all"]) {
        const query = `group_by=${group}&status=${status}`;
        expect(await groups(`${query}&at=2026-03-06T00:00:00Z`)).toEqual(await groups(query));
      }
    }
  });
});

test.each([
  ["", ["query.group_by"]],
  ["group_by=", ["query.group_by"]],
  ["group_by=cloud", ["query.group_by"]],
  ["group_by=resource_type,state", ["query.group_by"]],
  ["group_by=cloud,resource_type,cloud", ["query.group_by"]],
  ["group_by=cloud,resource_type,colour", ["query.group_by"]],
  ["group_by=cloud,resource_type,", ["query.group_by"]],
  ["group_by=cloud,%20resource_type", ["query.group_by"]],
  ["group_by=Cloud,resource_type", ["query.group_by"]],
  ["group_by=cloud,resource_type%00", ["query.group_by"]],
  ["group_by=cloud,resource_type&group_by=cloud,resource_type", ["query.group_by"]],
  ["group_by=cloud,resource_type&status=living", ["query.status"]],
  ["group_by=cloud,resource_type&status=", ["query.status"]],
  ["group_by=cloud,resource_type&status=all&status=all", ["query.status"]],
  ["group_by=cloud,resource_type&at=", ["query.at"]],
  ["group_by=cloud,resource_type&at=2026-03-01", ["query.at"]],
  ["group_by=cloud,resource_type&at=2026-03-01T00:00:00", ["query.at"]],
  ["group_by=cloud,resource_type&at=0000-12-31T00:00:00Z", ["query.at"]],
  ["group_by=cloud,resource_type&at=2026-03-01T00:00:00Z&at=2026-03-01T00:00:00Z", ["query.at"]],
  ["group_by=cloud,resource_type&cloud=eu1", ["query.cloud"]],
  ["group_by=cloud,resource_type&limit=10", ["query.limit"]],
  ["status=x&at=y&colour=z", ["query.group_by", "query.status", "query.at", "query.colour"]],
])("?%s is refused at %p", async (query, locs) => {
  expect(await faults(server, `${PATH}?${query}`)).toEqual({ status: 400, locs });
});

test.each([
  ["no token", undefined, 401],
  ["a made-up one", "tly_a_00", 401],
  ["a collector's", "ingest", 401],
  ["the internal one", "internal", 401],
])("%s is no credential here", async (_, kind, status) => {
  const token =
    kind === "ingest"
      ? await server.credentials.ingest("openstack", "eu1")
      : kind === "internal"
        ? server.credentials.internal
        : kind;
  const init = token === undefined ? {} : { token };
  expect((await server.request(`${PATH}?group_by=cloud,resource_type`, init)).status).toBe(status);
});
