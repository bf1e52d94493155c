/** A past inventory equals folding every history up to its instant. TEST_SEED repeats a run. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Scope } from "../../src/access/callers.ts";
import { formatInstant, type Instant, instantFromMicros } from "../../src/event/instant.ts";
import { type FoldEvent, fold } from "../../src/timeline/fold.ts";
import {
  eventText,
  foldEvent,
  type GeneratedEvent,
  generateHistory,
  pick,
  randomFrom,
  seedOfRun,
  shuffle,
} from "../ingest/history-generator.ts";
import { ingestItems } from "../ingest/record.ts";
import { projectToken, type ReadPage, readPage } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

const RESOURCES = 2_000;
const INSTANTS = 50;
const CLOUDS = ["os-1", "os-2"];
const PLATFORMS = ["openstack", "vmware"];
const TYPES = ["disk", "thing"];
const STATUSES = ["active", "deleted", "all"] as const;
const SCOPES: readonly Scope[] = [
  null,
  [{ cloud: "os-1", projectId: "p1" }],
  [
    { cloud: "os-1", projectId: "p2" },
    { cloud: "os-2", projectId: "p1" },
  ],
];
/** In the order that groups come in; the first two are always counted by. */
const COLUMNS = ["cloud", "resource_type", "state", "platform", "project_id"] as const;
/** Every set of columns that may be counted by. */
const GROUPINGS: readonly (readonly (typeof COLUMNS)[number][])[] = Array.from({ length: 8 }, (_, bits) =>
  COLUMNS.filter((_, n) => n < 2 || (bits & (1 << (n - 2))) !== 0),
);

/** An event with its place. A resource's platform may change from event to event. */
interface PlacedEvent extends GeneratedEvent {
  readonly cloud: string;
  readonly platform: string;
  readonly resourceType: string;
}

/** The same resource ids in each cloud and of each type. */
function generateHistories(random: () => number): PlacedEvent[] {
  const places = CLOUDS.flatMap((cloud) => TYPES.map((resourceType) => ({ cloud, resourceType })));
  return places.flatMap((place) =>
    Array.from({ length: RESOURCES / places.length }, (_, n) => generateHistory(random, `r${n}`))
      .flat()
      .map((event) => ({
        ...renamed(random, event),
        ...place,
        eventId: `${place.cloud}-${place.resourceType}-${event.eventId}`,
        platform: pick(random, PLATFORMS),
      })),
  );
}

/** Types that hold the words of a create or a delete, but not as a part of their own. */
function renamed(random: () => number, event: GeneratedEvent): GeneratedEvent {
  if (event.eventType !== "i.update") return event;
  return {
    ...event,
    eventType: pick(random, ["i.update", "i.delete_snapshot", "i.undelete.end", "i.created"]),
  };
}

/** Sends them out of order, each by the collector of its platform and cloud. */
async function send(events: readonly PlacedEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += 1_000) {
    const batch = events.slice(from, from + 1_000);
    const bySender = Map.groupBy(batch, ({ platform, cloud }) => `${platform} ${cloud}`).values();
    for (const own of bySender) {
      const { cloud, platform } = own[0] ?? { cloud: "", platform: "" };
      const texts = own.map((event) => eventText(event, cloud, platform, event.resourceType));
      const outcome = await ingestItems(server.db.db, texts, cloud, platform);
      expect(outcome.accepted).toBe(own.length);
    }
  }
}

interface History {
  readonly cloud: string;
  readonly resourceType: string;
  readonly events: readonly FoldEvent[];
}

/** Every history as the fold sees it once it has arrived. */
async function arrived(events: readonly PlacedEvent[]): Promise<History[]> {
  const received = new Map<string, Instant>();
  const rows: { id: string; at: string; ra: string }[] = await server.db.db`
    SELECT event_id AS id, (extract(epoch FROM timestamp) * 1000000)::bigint::text AS at,
           (extract(epoch FROM received_at) * 1000000)::bigint::text AS ra FROM events`;
  for (const { id, at, ra } of rows) received.set(`${at} ${id}`, instantFromMicros(ra));
  const keyOf = ({ cloud, resourceType, resourceId }: PlacedEvent) =>
    `${cloud} ${resourceType} ${resourceId}`;
  return [...Map.groupBy(events, keyOf).values()].map((history) => ({
    cloud: history[0]?.cloud ?? "",
    resourceType: history[0]?.resourceType ?? "",
    events: history.map((event) => {
      const receivedAt = received.get(`${event.timestamp} ${event.eventId}`);
      if (receivedAt === undefined) throw new Error(`${event.eventId} was not stored`);
      return foldEvent(event, receivedAt, event.platform);
    }),
  }));
}

/** What stood at an instant and is counted: each history, cut there and folded. */
function standing(
  histories: readonly History[],
  at: Instant,
  status: (typeof STATUSES)[number],
  scope: Scope,
): Record<(typeof COLUMNS)[number], string>[] {
  return histories.flatMap(({ cloud, resourceType, events }) => {
    const { row } = fold(events.filter(({ timestamp }) => timestamp <= at));
    if (row === null) return [];
    const { platform, projectId, state, deletedAt } = row;
    if (status !== "all" && (deletedAt === null) !== (status === "active")) return [];
    const inScope = scope?.some((own) => own.cloud === cloud && own.projectId === projectId) ?? true;
    if (!inScope) return [];
    return [{ cloud, resource_type: resourceType, state, platform, project_id: projectId }];
  });
}

/** How many are alike in these columns, as it is answered. */
function grouped(rows: ReturnType<typeof standing>, columns: (typeof GROUPINGS)[number]): ReadPage["items"] {
  const groups = Map.groupBy(rows, (row) => columns.map((column) => row[column]).join("\0"));
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, alike]) => {
      const values = key.split("\0");
      return { ...Object.fromEntries(columns.map((column, n) => [column, values[n]])), count: alike.length };
    });
}

test(`of ${RESOURCES} resources at ${INSTANTS} instants`, async () => {
  const seed = seedOfRun();
  const random = randomFrom(seed);
  try {
    const tokens = new Map<Scope, string>();
    for (const scope of SCOPES) {
      const pairs = (scope ?? []).map(({ cloud, projectId }) => [cloud, projectId] as const);
      tokens.set(scope, scope === null ? server.credentials.admin : await projectToken(server, ...pairs));
    }
    const events = generateHistories(random);
    await send(shuffle(random, events));
    const histories = await arrived(events);
    expect(histories).toHaveLength(RESOURCES);
    const [{ timestamp: first } = { timestamp: 0n }] = [...events].sort((a, b) =>
      Number(a.timestamp - b.timestamp),
    );
    let counted = 0;
    for (let n = 0; n < INSTANTS; n++) {
      // Some at an event's own instant, some a microsecond beside it, the others anywhere around.
      const near = pick(random, [-1n, 0n, 0n, 1n]);
      const anywhere = BigInt(Math.floor(random() * 300_000_000)) - 10_000_000n;
      const base = n % 2 === 0 ? pick(random, events).timestamp + near : first + anywhere;
      const at = instantFromMicros(String(base));
      const status = pick(random, STATUSES);
      const scope = pick(random, SCOPES);
      const rows = standing(histories, at, status, scope);
      counted += rows.length;
      // By everything, and by one of the other sets in turn.
      for (const columns of [COLUMNS, GROUPINGS[n % GROUPINGS.length] ?? []]) {
        const path = `/api/v1/stats/resources?group_by=${columns}&status=${status}&at=${formatInstant(at)}`;
        const { items } = await readPage(server, path, tokens.get(scope));
        expect(items, path).toEqual(grouped(rows, columns));
      }
    }
    // The instants lie where something is.
    expect(counted).toBeGreaterThan(RESOURCES);
  } catch (error) {
    console.error(`TEST_SEED=${seed}`);
    throw error;
  }
}, 120_000);
