/** A past inventory equals folding every history up to its instant. TEST_SEED repeats a run. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Scope } from "../../src/access/callers.ts";
import { formatInstant, type Instant, instantFromMicros } from "../../src/event/instant.ts";
import { RESOURCE_DIMENSIONS, resourceGroups } from "../../src/statistics/count.ts";
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
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const RESOURCES = 2_000;
const INSTANTS = 50;
const CLOUD = "os-1";
const STATUSES = ["active", "deleted", "all"] as const;
const SCOPES: readonly Scope[] = [
  null,
  [{ cloud: CLOUD, projectId: "p1" }],
  [
    { cloud: CLOUD, projectId: "p2" },
    { cloud: "os-2", projectId: "p1" },
  ],
];

/** Types that hold the words of a create or a delete, but not as a part of their own. */
function renamed(random: () => number, event: GeneratedEvent): GeneratedEvent {
  if (event.eventType !== "i.update") return event;
  return {
    ...event,
    eventType: pick(random, ["i.update", "i.delete_snapshot", "i.undelete.end", "i.created"]),
  };
}

/** Every history as the fold sees it once it has arrived. */
async function arrived(events: readonly GeneratedEvent[]): Promise<FoldEvent[][]> {
  const received = new Map<string, Instant>();
  const rows: { id: string; at: string; ra: string }[] = await database.db`
    SELECT event_id AS id, (extract(epoch FROM timestamp) * 1000000)::bigint::text AS at,
           (extract(epoch FROM received_at) * 1000000)::bigint::text AS ra FROM events`;
  for (const { id, at, ra } of rows) received.set(`${at} ${id}`, instantFromMicros(ra));
  const histories = Map.groupBy(events, ({ resourceId }) => resourceId).values();
  return [...histories].map((history) =>
    history.map((event) => {
      const receivedAt = received.get(`${event.timestamp} ${event.eventId}`);
      if (receivedAt === undefined) throw new Error(`${event.eventId} was not stored`);
      return foldEvent(event, receivedAt);
    }),
  );
}

/** What stood at an instant: each history, cut there and folded. */
function standing(histories: readonly FoldEvent[][], at: Instant) {
  return histories.flatMap((history) => {
    const { row } = fold(history.filter(({ timestamp }) => timestamp <= at));
    return row === null ? [] : [row];
  });
}

test(`of ${RESOURCES} resources at ${INSTANTS} instants`, async () => {
  const seed = seedOfRun();
  const random = randomFrom(seed);
  try {
    const events = Array.from({ length: RESOURCES }, (_, n) => generateHistory(random, `r${n}`))
      .flat()
      .map((event) => renamed(random, event));
    const arriving = shuffle(random, events);
    for (let from = 0; from < arriving.length; from += 1_000) {
      const batch = arriving.slice(from, from + 1_000);
      const outcome = await ingestItems(
        database.db,
        batch.map((event) => eventText(event, CLOUD)),
      );
      expect(outcome.accepted).toBe(batch.length);
    }
    const histories = await arrived(events);
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
      const rows = standing(histories, at);
      const status = pick(random, STATUSES);
      const scope = pick(random, SCOPES);
      const expected = new Map<string, number>();
      for (const { platform, projectId, state, deletedAt } of rows) {
        if (status !== "all" && (deletedAt === null) !== (status === "active")) continue;
        if (scope !== null && !scope.some((own) => own.cloud === CLOUD && own.projectId === projectId))
          continue;
        const key = [CLOUD, "thing", state, platform, projectId].join(" ");
        expected.set(key, (expected.get(key) ?? 0) + 1);
      }
      const groups = await resourceGroups(database.db, scope, { groupBy: RESOURCE_DIMENSIONS, status, at });
      const found = groups.map(({ values, count }) => {
        counted += count;
        return [RESOURCE_DIMENSIONS.map((name) => values[name]).join(" "), count] as const;
      });
      expect({ at: formatInstant(at), status, found }).toEqual({
        at: formatInstant(at),
        status,
        found: [...expected].sort(([a], [b]) => (a < b ? -1 : 1)),
      });
    }
    // The instants lie where something is.
    expect(counted).toBeGreaterThan(RESOURCES);
  } catch (error) {
    console.error(`TEST_SEED=${seed}`);
    throw error;
  }
}, 120_000);
