import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { encodeCursor } from "../../src/http/page.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { faults, projectToken, readPage, type Sent, send } from "./calls.ts";

let server: TestServer;
let project: string;
const NUMBERS = Array.from({ length: 20 }, (_, i) => i);
/** Twenty events over four instants, a microsecond apart. */
const EVENTS: Sent[] = NUMBERS.map((i) => ({
  id: `e${String(i).padStart(2, "0")}`,
  at: `2026-03-01T00:00:00.00000${i % 4}Z`,
  type: "thing.create",
  resource: `r${String(i).padStart(2, "0")}`,
  project: i % 2 === 0 ? "p1" : "p2",
}));
/** By instant, then by id. */
const IN_ORDER = [0, 1, 2, 3].flatMap((micros) =>
  NUMBERS.filter((i) => i % 4 === micros).map((i) => `e${String(i).padStart(2, "0")}`),
);

beforeAll(async () => {
  server = await testServer();
  await send(server, EVENTS);
  project = await projectToken(server, ["eu1", "p1"], ["eu1", "p2"]);
});
afterAll(() => server.stop());

/** Walks a list to its end; `between` runs after each page. */
async function walk(path: string, member: string, token?: string, between = async (_page: number) => {}) {
  const seen: unknown[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < 100; page++) {
    const query: string = cursor === null ? path : `${path}&cursor=${encodeURIComponent(cursor)}`;
    const read = await readPage(server, query, token);
    seen.push(...read.items.map((item) => item[member]));
    cursor = read.next_cursor;
    if (cursor === null) return { seen, pages: page + 1 };
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
    await between(page);
  }
  throw new Error("the walk doesn't end");
}

describe.each([
  ["an admin", () => undefined],
  ["a token of two projects", () => project],
])("a walk by %s", (_, token) => {
  test.each([
    [1, 20],
    [7, 3],
    [10, 2],
    [20, 1],
    [1_000, 1],
  ])("over instants that many events share, %i at a time: each once, and %i pages", async (limit, pages) => {
    expect(await walk(`/api/v1/events?limit=${limit}&to=2026-03-02T00:00:00Z`, "event_id", token())).toEqual({
      seen: IN_ORDER,
      pages,
    });
  });

  test("over resources, 3 at a time", async () => {
    const { seen, pages } = await walk(
      "/api/v1/resources?limit=3&cloud=eu1&resource_type=thing",
      "resource_id",
      token(),
    );
    expect(seen).toEqual(NUMBERS.map((i) => `r${String(i).padStart(2, "0")}`));
    expect(pages).toBe(7);
  });
});

test("what is inserted before and behind the walk's place moves nothing", async () => {
  let n = 0;
  const insert = async (page: number) => {
    await send(server, [
      { id: `before-${n++}`, at: "2026-02-01T00:00:00Z", resource: "moving" },
      // Between the events that stood there; behind the place of some pages, before that of others.
      {
        id: `e${String(page % 20).padStart(2, "0")}-${n}`,
        at: "2026-03-01T00:00:00.000001Z",
        resource: "moving",
      },
      { id: `after-${n++}`, at: "2026-03-01T12:00:00Z", resource: "moving" },
    ]);
  };
  const { seen } = await walk(
    "/api/v1/events?limit=1&to=2026-03-01T06:00:00Z",
    "event_id",
    undefined,
    insert,
  );
  const stood = seen.filter((id) => IN_ORDER.includes(String(id)));
  expect(stood).toEqual(IN_ORDER);
  expect(new Set(seen).size).toBe(seen.length);
});

test("dead letters page by arrival and id", async () => {
  const token = await server.credentials.ingest("openstack", "eu1");
  for (const text of ["[1,2,3]", "[4,5]"]) {
    await server.request("/api/v1/events", { method: "POST", token, body: text });
  }
  const all = await walk("/api/v1/rejected-events?limit=1000", "id");
  expect(all.seen).toHaveLength(5);
  expect(await walk("/api/v1/rejected-events?limit=2", "id")).toEqual({ seen: all.seen, pages: 3 });
  expect((await walk("/api/v1/rejected-events?limit=1", "raw")).seen.toSorted()).toEqual([1, 2, 3, 4, 5]);
});

describe("a cursor", () => {
  const cursorOf = async (path: string) => String((await readPage(server, path)).next_cursor);

  test("holds a position: with other filters the list goes on from there", async () => {
    const cursor = await cursorOf("/api/v1/events?limit=3&from=2026-03-01T00:00:00Z");
    const { items } = await readPage(
      server,
      `/api/v1/events?project_id=p2&resource_type=thing&limit=2&cursor=${cursor}`,
    );
    // The third of IN_ORDER is e08; the odd events at .000001 follow.
    expect(items.map((item) => item.event_id)).toEqual(["e01", "e05"]);
  });

  test("of another list is refused", async () => {
    const events = await cursorOf("/api/v1/events?limit=1");
    const resources = await cursorOf("/api/v1/resources?limit=1");
    const dead = await cursorOf("/api/v1/rejected-events?limit=1");
    const refused = { status: 400, locs: ["query.cursor"] };
    for (const [list, cursors] of [
      ["events", [resources, dead]],
      ["resources", [events, dead]],
      ["rejected-events", [events, resources]],
    ] as const) {
      for (const cursor of cursors) {
        expect(await faults(server, `/api/v1/${list}?cursor=${cursor}`)).toEqual(refused);
      }
    }
  });

  test.each([
    ["nonsense", "nonsense"],
    ["a number", "1"],
    ["no list's", encodeCursor("projects", ["a", "b"])],
    ["too few parts", encodeCursor("events", ["1772323200000000"])],
    ["too many parts", encodeCursor("events", ["1772323200000000", "e1", "e2"])],
    ["no instant", encodeCursor("events", ["yesterday", "e1"])],
    ["an instant with a fraction", encodeCursor("events", ["1.5", "e1"])],
    ["an instant before all instants", encodeCursor("events", ["-99999999999999999", "e1"])],
    ["an instant after all instants", encodeCursor("events", ["999999999999999999", "e1"])],
    ["an instant of many digits", encodeCursor("events", ["9".repeat(400), "e1"])],
  ])("that is %s is refused", async (_, cursor) => {
    expect(await faults(server, `/api/v1/events?cursor=${cursor}`)).toEqual({
      status: 400,
      locs: ["query.cursor"],
    });
  });

  test("that was cut or altered is refused", async () => {
    const cursor = await cursorOf("/api/v1/events?limit=1");
    for (const forged of [cursor.slice(0, -1), `${cursor}A`, `A${cursor.slice(1)}`, cursor.toLowerCase()]) {
      expect(await faults(server, `/api/v1/events?cursor=${forged}`)).toEqual({
        status: 400,
        locs: ["query.cursor"],
      });
    }
  });

  test("of a dead letter holds a UUID", async () => {
    const cursor = encodeCursor("rejected-events", ["1772323200000000", "x'; DROP TABLE events; --"]);
    expect(await faults(server, `/api/v1/rejected-events?cursor=${cursor}`)).toEqual({
      status: 400,
      locs: ["query.cursor"],
    });
  });
});
