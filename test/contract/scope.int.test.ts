/**
 * What a project token can see, over every route that reads, against a model that computes it from the events: two
 * clouds that use the same project ids, tokens of one and of two projects, resources that move to and fro.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pick, randomFrom, seedOfRun, shuffle } from "../ingest/history-generator.ts";
import { get, send } from "../inventory/calls.ts";
import { project } from "../projects/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { readContract } from "./document.ts";

const CLOUDS = ["eu1", "eu2"];
const PROJECTS = ["p1", "p2", "p3"];
const TYPES = ["disk", "thing"];
const RESOURCES = 24;
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 2, 1);
/** In every test's name, so that a failing one can be run again. */
const seed = seedOfRun();

/** An event as the model keeps it. */
interface ModelEvent {
  readonly id: string;
  readonly ms: number;
  readonly type: "thing.create" | "thing.update" | "thing.delete";
  readonly cloud: string;
  readonly resourceType: string;
  readonly resource: string;
  readonly project: string;
  readonly state: string;
}

interface Pair {
  readonly cloud: string;
  readonly project: string;
}

/** Histories of one create, moves and changes, and maybe a delete; a resource's instants all differ. */
function generate(): ModelEvent[] {
  const random = randomFrom(seed);
  const events: ModelEvent[] = [];
  for (const cloud of CLOUDS) {
    for (let n = 0; n < RESOURCES; n++) {
      // The first moves A→B→A, the second ends with another owner's delete; the others do as they like.
      const fixed = [
        ["p1", "p2", "p1"],
        ["p1", "p2", "p2"],
      ][n];
      const owners =
        fixed ?? Array.from({ length: 1 + Math.floor(random() * 5) }, () => pick(random, PROJECTS));
      const dies = n === 1 || (n > 1 && owners.length > 1 && random() < 0.3);
      for (const [step, owner] of owners.entries()) {
        const isDelete = dies && step === owners.length - 1;
        events.push({
          id: `${cloud}-${n}-${step}`,
          ms: START_MS + (n + step * 30) * HOUR_MS + Math.floor(random() * HOUR_MS),
          type: step === 0 ? "thing.create" : isDelete ? "thing.delete" : "thing.update",
          cloud,
          resourceType: TYPES[n % TYPES.length] ?? "",
          resource: `r${Math.floor(n / 2)}`,
          project: owner,
          state: isDelete ? "deleted" : pick(random, ["on", "off"]),
        });
      }
    }
  }
  return events;
}

const EVENTS = generate();
const byTime = (a: ModelEvent, b: ModelEvent) => a.ms - b.ms || (a.id < b.id ? -1 : 1);
const owned = (pairs: readonly Pair[], { cloud, project: owner }: ModelEvent) =>
  pairs.some((pair) => pair.cloud === cloud && pair.project === owner);
const keyOf = ({ cloud, resourceType, resource }: ModelEvent) => `${cloud}/${resourceType}/${resource}`;

/** Each resource's newest event up to an instant: it says whose the resource is, and how it is. */
function newest(untilMs = Number.POSITIVE_INFINITY): ModelEvent[] {
  const last = new Map<string, ModelEvent>();
  for (const event of EVENTS.filter(({ ms }) => ms <= untilMs).sort(byTime)) last.set(keyOf(event), event);
  return [...last].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, event]) => event);
}

/** How many of them are alike, in the order of what they are alike by. */
function counted(keys: readonly (readonly string[])[]): [string, number][] {
  const sums = new Map<string, number>();
  for (const key of keys) sums.set(JSON.stringify(key), (sums.get(JSON.stringify(key)) ?? 0) + 1);
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
}

let server: TestServer;
const ids = new Map<string, string>();
beforeAll(async () => {
  server = await testServer();
  const random = randomFrom(seed);
  for (const cloud of CLOUDS) {
    for (const name of PROJECTS) ids.set(`${cloud}/${name}`, await project(server, name, cloud));
    const batch = shuffle(
      random,
      EVENTS.filter((event) => event.cloud === cloud),
    );
    await send(
      server,
      batch.map(({ id, ms, type, resourceType, resource, project: owner, state }) => ({
        id,
        at: new Date(ms).toISOString(),
        type,
        cloud,
        resourceType,
        resource,
        project: owner,
        payload: type === "thing.delete" ? null : JSON.stringify({ state, size: { n: 1 } }),
      })),
    );
  }
});
afterAll(() => server.stop());

type Json = Record<string, unknown>;
async function items(path: string, token: string): Promise<Json[]> {
  const { status, text } = await get(server, path, token);
  expect(status, `${path}: ${text}`).toBe(200);
  const body: { items: Json[]; next_cursor?: string | null } = JSON.parse(text);
  expect(body.next_cursor ?? null).toBeNull();
  return body.items;
}
const idsOf = (list: readonly Json[]) => list.map(({ event_id }) => event_id);

const pair = (cloud: string, name: string): Pair => ({ cloud, project: name });
const SCOPES: { name: string; pairs: readonly Pair[] }[] = [
  ...CLOUDS.flatMap((cloud) =>
    PROJECTS.map((name) => ({ name: `${cloud}/${name}`, pairs: [pair(cloud, name)] })),
  ),
  { name: "two projects of one cloud", pairs: [pair("eu1", "p1"), pair("eu1", "p2")] },
  { name: "one project of each cloud", pairs: [pair("eu1", "p1"), pair("eu2", "p2")] },
  { name: "the same project of both clouds", pairs: [pair("eu1", "p1"), pair("eu2", "p1")] },
];

describe.each(SCOPES)(`TEST_SEED=${seed}: a token of $name`, ({ pairs }) => {
  let token: string;
  beforeAll(async () => {
    token = await server.credentials.project(
      pairs.map(({ cloud, project: name }) => ids.get(`${cloud}/${name}`) ?? ""),
    );
  });

  test("reads the events that name its projects, and no others", async () => {
    const mine = EVENTS.filter((event) => owned(pairs, event)).sort(byTime);
    expect(idsOf(await items("/api/v1/events?limit=1000", token))).toEqual(mine.map(({ id }) => id));
    for (const cloud of CLOUDS) {
      const there = mine.filter((event) => event.cloud === cloud).map(({ id }) => id);
      expect(idsOf(await items(`/api/v1/events?limit=1000&cloud=${cloud}`, token))).toEqual(there);
    }
  });

  test("filters by its own projects; another's is a 403, in the other cloud too", async () => {
    for (const list of ["events", "resources"]) {
      for (const name of PROJECTS) {
        const path = `/api/v1/${list}?limit=1000&project_id=${name}`;
        const own = pairs.some((one) => one.project === name);
        expect((await get(server, path, token)).status, path).toBe(own ? 200 : 403);
        for (const cloud of CLOUDS) {
          const there = pairs.some((one) => one.project === name && one.cloud === cloud);
          expect((await get(server, `${path}&cloud=${cloud}`, token)).status, path).toBe(there ? 200 : 403);
        }
        if (!own || list !== "events") continue;
        const mine = EVENTS.filter((event) => event.project === name && owned(pairs, event)).sort(byTime);
        expect(idsOf(await items(path, token))).toEqual(mine.map(({ id }) => id));
      }
    }
  });

  test("lists the resources that are its projects' now", async () => {
    const now = newest().filter((event) => owned(pairs, event));
    const found = async (query: string) =>
      (await items(`/api/v1/resources?limit=1000${query}`, token)).map(
        ({ cloud, resource_type, resource_id, project_id, state }) =>
          `${cloud}/${resource_type}/${resource_id} ${project_id} ${state}`,
      );
    const model = (such: (event: ModelEvent) => boolean) =>
      now.filter(such).map((event) => `${keyOf(event)} ${event.project} ${event.state}`);
    const dead = (event: ModelEvent) => event.type === "thing.delete";
    expect(await found("&status=all")).toEqual(model(() => true));
    expect(await found("&status=deleted")).toEqual(model(dead));
    expect(await found("")).toEqual(model((event) => !dead(event)));
  });

  test("reads what of a resource's history is its own, if the resource is now; else it is unknown", async () => {
    const unknown = await get(server, "/api/v1/resources/eu1/thing/none/events", token);
    expect(unknown.status).toBe(404);
    for (const last of newest()) {
      const path = `/api/v1/resources/${keyOf(last)}`;
      const history = await get(server, `${path}/events`, token);
      const lifecycle = await get(server, `${path}/lifecycle`, token);
      if (!owned(pairs, last)) {
        expect([history, lifecycle], path).toEqual([unknown, unknown]);
        continue;
      }
      const mine = EVENTS.filter((event) => keyOf(event) === keyOf(last) && owned(pairs, event)).sort(byTime);
      const listed: { items: Json[] } = JSON.parse(history.text);
      const told: { resource: Json; events: Json[]; intervals: Json[]; warnings: string[] } = JSON.parse(
        lifecycle.text,
      );
      expect(idsOf(listed.items), path).toEqual(mine.map(({ id }) => id));
      expect(told.events, path).toEqual(listed.items);
      expect(told.resource, path).toEqual(JSON.parse((await get(server, `${path}/lifecycle`)).text).resource);
      expect(told.intervals, path).toEqual(intervalsOf(mine));
      expect(told.warnings, path).toEqual(
        mine[0]?.type === "thing.create" ? [] : ["history_starts_without_create"],
      );
    }
  });

  test("counts its resources, now and at any instant, and its events", async () => {
    const group = "group_by=cloud,resource_type,state,project_id&status=all";
    const groupOf = (event: ModelEvent) => [event.cloud, event.resourceType, event.state, event.project];
    const found = async (query: string) =>
      (await items(`/api/v1/stats/resources?${group}${query}`, token))
        .map(({ cloud, resource_type, state, project_id, count }): [string, unknown] => [
          JSON.stringify([cloud, resource_type, state, project_id]),
          count,
        ])
        .sort(([a], [b]) => (a < b ? -1 : 1));
    const model = (untilMs?: number) =>
      counted(
        newest(untilMs)
          .filter((event) => owned(pairs, event))
          .map(groupOf),
      );
    expect(await found("")).toEqual(model());
    const random = randomFrom(seed);
    for (let n = 0; n < 12; n++) {
      // At the very instant of an event, and just before it.
      const { ms } = pick(random, EVENTS);
      for (const at of [ms, ms - 1])
        expect(await found(`&at=${new Date(at).toISOString()}`)).toEqual(model(at));
    }
    const window = "from=2026-03-01T00:00:00Z&to=2026-04-01T00:00:00Z&interval=1d";
    const counts = await items(`/api/v1/stats/events?group_by=cloud,event_type&${window}`, token);
    const perDay = EVENTS.filter((event) => owned(pairs, event)).map((event) => [
      `${new Date(event.ms).toISOString().slice(0, 10)}T00:00:00Z`,
      event.cloud,
      event.type,
    ]);
    expect(
      counts.map(({ bucket, cloud, event_type, count }) => [
        JSON.stringify([bucket, cloud, event_type]),
        count,
      ]),
    ).toEqual(counted(perDay));
  });

  test("reads its projects' summaries; another's is unknown", async () => {
    const window = "from=2026-03-01T00:00:00Z&to=2026-03-10T00:00:00Z";
    const summary = (id: string, as?: string) => get(server, `/api/v1/projects/${id}/summary?${window}`, as);
    const unknown = await summary("00000000-0000-4000-8000-00000000dead", token);
    expect(unknown.status).toBe(404);
    for (const [name, id] of ids) {
      const [cloud = "", external = ""] = name.split("/");
      const own = pairs.some((one) => one.cloud === cloud && one.project === external);
      expect(await summary(id, token), name).toEqual(own ? await summary(id) : unknown);
    }
  });

  test("reads nothing else but the registry of sizes", async () => {
    const { operations } = await readContract(server);
    const readable = /^GET \/api\/v1\/(events|resources|stats|resource-types|projects\/\{id\}\/summary)/;
    const others = operations.filter(
      ({ security, path, method }) =>
        "apiToken" in (security[0] ?? {}) && !readable.test(`${method} ${path}`),
    );
    expect(others.length).toBeGreaterThan(8);
    for (const { method, path } of others) {
      const answer = await server.request(path.replace(/\{\w+\}/g, [...ids.values()][0] ?? ""), {
        method,
        token,
        ...(method === "GET" ? {} : { body: "{}" }),
      });
      expect(answer.status, `${method} ${path}`).toBe(403);
    }
    expect((await get(server, "/api/v1/resource-types", token)).status).toBe(200);
  });
});

/** What such a history bills: nothing but state and owner changes here, and no two events share an instant. */
function intervalsOf(events: readonly ModelEvent[]): Json[] {
  const intervals: Json[] = [];
  for (const { ms, type, state, project: owner } of events) {
    const at = new Date(ms).toISOString().replace(/\.?0*Z$/, "Z");
    const open = intervals.at(-1);
    if (type !== "thing.delete" && open?.state === state && open.project_id === owner) continue;
    if (open !== undefined) open.to = at;
    if (type === "thing.delete") continue;
    intervals.push({ from: at, to: null, state, size: { n: 1 }, project_id: owner });
  }
  return intervals;
}
