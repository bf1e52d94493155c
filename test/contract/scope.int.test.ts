/**
 * What a project token can see, over every route that reads, against a model that computes it from the events: two
 * clouds that use the same project ids, tokens of one and of two projects, resources that move to and fro. All of it
 * is in one file because the model is one.
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
const SIZE = { n: 1 };
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
        payload: type === "thing.delete" ? null : JSON.stringify({ state, size: SIZE }),
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
/** Events as they are answered, but for when they were received, which no model knows. */
const withoutReceipt = (list: readonly Json[]) =>
  list.map(({ received_at, ...event }) => {
    expect(received_at).toBeString();
    return event;
  });

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

  /** Every list of these filters, and whether the project filter names one of the token's projects. */
  function* filtered() {
    for (const cloud of [null, ...CLOUDS]) {
      for (const projectId of [null, ...PROJECTS]) {
        const named = (one: Pair) =>
          (projectId ?? one.project) === one.project && (cloud ?? one.cloud) === one.cloud;
        const query =
          (cloud === null ? "" : `&cloud=${cloud}`) + (projectId === null ? "" : `&project_id=${projectId}`);
        const such = (event: ModelEvent) => owned(pairs, event) && named(event);
        yield { query, such, allowed: projectId === null || pairs.some(named) };
      }
    }
  }

  async function forbidden(path: string): Promise<void> {
    const { status, text } = await get(server, path, token);
    const { type, items: none } = JSON.parse(text);
    expect([status, type, none], path).toEqual([403, "urn:tally:error:forbidden", undefined]);
  }

  test("reads the events that name its projects, and no others, whatever the filters; another's is a 403", async () => {
    for (const { query, such, allowed } of filtered()) {
      const path = `/api/v1/events?limit=1000${query}`;
      if (!allowed) {
        await forbidden(path);
        continue;
      }
      const mine = EVENTS.filter(such).sort(byTime);
      expect(withoutReceipt(await items(path, token)), path).toEqual(mine.map(eventAnswer));
      const disks = mine.filter(({ resourceType }) => resourceType === "disk");
      const narrowed = `${path}&resource_type=disk`;
      expect(withoutReceipt(await items(narrowed, token)), narrowed).toEqual(disks.map(eventAnswer));
    }
  });

  test("lists the resources that are its projects' now, whatever the filters; another's is a 403", async () => {
    const dead = (event: ModelEvent) => event.type === "thing.delete";
    const statuses: [query: string, such: (event: ModelEvent) => boolean][] = [
      ["", (event) => !dead(event)],
      ["&status=active", (event) => !dead(event)],
      ["&status=deleted", dead],
      ["&status=all", () => true],
      ["&status=all&state=on", ({ state }) => state === "on"],
      ["&status=all&resource_type=disk", ({ resourceType }) => resourceType === "disk"],
    ];
    for (const { query, such, allowed } of filtered()) {
      for (const [more, also] of statuses) {
        const path = `/api/v1/resources?limit=1000${query}${more}`;
        if (!allowed) {
          await forbidden(path);
          continue;
        }
        const now = newest().filter((event) => such(event) && also(event));
        expect(await items(path, token), path).toEqual(now.map(resourceAnswer));
      }
    }
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
      const told: { resource: Json; events: Json[]; intervals: Interval[]; warnings: string[] } = JSON.parse(
        lifecycle.text,
      );
      expect(withoutReceipt(listed.items), path).toEqual(mine.map(eventAnswer));
      expect(told.events, path).toEqual(listed.items);
      expect(told.resource, path).toEqual(resourceAnswer(last));
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
    // Cuts histories at both ends.
    const [fromMs, toMs] = [Date.UTC(2026, 2, 2, 6, 30), Date.UTC(2026, 2, 4)];
    const window = `from=${stamp(fromMs)}&to=${stamp(toMs)}`;
    const summary = (id: string) => get(server, `/api/v1/projects/${id}/summary?${window}`, token);
    const unknown = await summary("00000000-0000-4000-8000-00000000dead");
    expect(unknown.status).toBe(404);
    for (const [name, id] of ids) {
      const [cloud = "", external = ""] = name.split("/");
      const own = pairs.some((one) => one.cloud === cloud && one.project === external);
      const answer = await summary(id);
      if (!own) {
        expect(answer, name).toEqual(unknown);
        continue;
      }
      expect(JSON.parse(answer.text), name).toEqual({
        project: { id, cloud, external_id: external },
        resource_types: TYPES.map((type) => activityOf(pair(cloud, external), type, fromMs, toMs)),
      });
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

function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.?0*Z$/, "Z");
}

const payloadOf = ({ type, state }: ModelEvent) => (type === "thing.delete" ? null : { state, size: SIZE });

/** An event as it is answered. */
function eventAnswer(event: ModelEvent): Json {
  return {
    event_id: event.id,
    timestamp: stamp(event.ms),
    event_type: event.type,
    platform: "openstack",
    cloud: event.cloud,
    resource_type: event.resourceType,
    resource_id: event.resource,
    project_id: event.project,
    source: "collector",
    payload: payloadOf(event),
  };
}

function historyOf(event: ModelEvent): ModelEvent[] {
  return EVENTS.filter((other) => keyOf(other) === keyOf(event)).sort(byTime);
}

/** The resource as it is answered whose newest event that is. */
function resourceAnswer(last: ModelEvent): Json {
  const first = stamp(historyOf(last)[0]?.ms ?? 0);
  return {
    cloud: last.cloud,
    resource_type: last.resourceType,
    resource_id: last.resource,
    platform: "openstack",
    project_id: last.project,
    state: last.state,
    size: SIZE,
    created_at: first,
    deleted_at: last.type === "thing.delete" ? stamp(last.ms) : null,
    first_event_at: first,
    last_event_at: stamp(last.ms),
    last_event_type: last.type,
    last_payload: payloadOf(last),
  };
}

/** What a project's summary says of a type: its own creates and deletes, and the minutes that it owned. */
function activityOf(of: Pair, resourceType: string, fromMs: number, toMs: number): Json {
  const own = EVENTS.filter((event) => owned([of], event) && event.resourceType === resourceType);
  const inWindow = (type: ModelEvent["type"]) =>
    own.filter((event) => event.type === type && event.ms >= fromMs && event.ms < toMs).length;
  const lasts = newest().filter((event) => event.cloud === of.cloud && event.resourceType === resourceType);
  let ms = 0;
  for (const { from, to, project_id } of lasts.flatMap((last) => intervalsOf(historyOf(last)))) {
    if (project_id !== of.project) continue;
    const end = to === null ? toMs : Math.min(Date.parse(to), toMs);
    ms += Math.max(0, end - Math.max(Date.parse(from), fromMs));
  }
  return {
    resource_type: resourceType,
    created: inWindow("thing.create"),
    deleted: inWindow("thing.delete"),
    total_minutes: Math.floor(ms / 60_000),
    active_now: lasts.filter((last) => owned([of], last) && last.type !== "thing.delete").length,
  };
}

interface Interval {
  readonly from: string;
  to: string | null;
  readonly state: string;
  readonly size: Json;
  readonly project_id: string;
}

/** What such a history bills: nothing but state and owner changes here, and no two events share an instant. */
function intervalsOf(events: readonly ModelEvent[]): Interval[] {
  const intervals: Interval[] = [];
  for (const { ms, type, state, project: owner } of events) {
    const at = stamp(ms);
    const open = intervals.at(-1);
    if (type !== "thing.delete" && open?.state === state && open.project_id === owner) continue;
    if (open !== undefined) open.to = at;
    if (type === "thing.delete") continue;
    intervals.push({ from: at, to: null, state, size: SIZE, project_id: owner });
  }
  return intervals;
}
