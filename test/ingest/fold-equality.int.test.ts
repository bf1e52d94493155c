/**
 * Incremental row = replayed row = pure fold, for thousands of seeded histories in every order of arrival, through
 * the database. TEST_SEED repeats a run.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formatInstant, type Instant, instantFromMicros } from "../../src/event/instant.ts";
import { canonicalJson } from "../../src/event/json-text.ts";
import { rebuild } from "../../src/projection/rebuild.ts";
import { fold } from "../../src/timeline/fold.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import {
  eventText,
  foldEvent,
  type GeneratedEvent,
  generateHistory,
  pick,
  randomFrom,
  seedOfRun,
  shuffle,
} from "./history-generator.ts";
import { ingestItems, projectionRows } from "./record.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => {
  await database.drop();
});

const HISTORIES = 3_000;

/** What every row must be by the pure fold over what arrived, received_at read from the record. */
async function rowsByFold(events: readonly GeneratedEvent[]): Promise<Map<string, string>> {
  const received = new Map<string, Instant>();
  const rows: { id: string; at: string; ra: string }[] = await database.db`
    SELECT event_id AS id, (extract(epoch FROM timestamp) * 1000000)::bigint::text AS at,
           (extract(epoch FROM received_at) * 1000000)::bigint::text AS ra FROM events`;
  for (const { id, at, ra } of rows) received.set(`${at} ${id}`, instantFromMicros(ra));
  const byResource = Map.groupBy(events, ({ resourceId }) => resourceId);
  return new Map(
    [...byResource].map(([resourceId, list]) => {
      const history = list.map((event) => {
        const receivedAt = received.get(`${event.timestamp} ${event.eventId}`);
        if (receivedAt === undefined) throw new Error(`${event.eventId} was not stored`);
        return foldEvent(event, receivedAt);
      });
      const { row } = fold(history);
      if (row === null) throw new Error("no events");
      const told = (instant: Instant | null) => (instant === null ? null : formatInstant(instant));
      return [
        resourceId,
        JSON.stringify([
          row.platform,
          row.projectId,
          row.state,
          canonicalJson(row.size),
          told(row.createdAt),
          told(row.deletedAt),
          told(row.firstEventAt),
          told(row.lastEventAt),
          row.lastEventId,
          row.lastEventType,
        ]),
      ];
    }),
  );
}

async function rowsByDatabase(): Promise<Map<string, string>> {
  const rows: Record<"r" | "p" | "pr" | "s" | "z" | "f" | "l" | "li" | "lt", string>[] &
    { c: string | null; d: string | null }[] = await database.db`
    SELECT resource_id AS r, platform AS p, project_id AS pr, state AS s, size::text AS z,
           (extract(epoch FROM created_at) * 1000000)::bigint::text AS c,
           (extract(epoch FROM deleted_at) * 1000000)::bigint::text AS d,
           (extract(epoch FROM first_event_at) * 1000000)::bigint::text AS f,
           (extract(epoch FROM last_event_at) * 1000000)::bigint::text AS l,
           last_event_id AS li, last_event_type AS lt
    FROM current_resources`;
  const told = (micros: unknown) =>
    typeof micros === "string" ? formatInstant(instantFromMicros(micros)) : null;
  return new Map(
    rows.map((row) => {
      const { c, d } = row as { c?: unknown; d?: unknown };
      return [
        row.r,
        JSON.stringify([
          row.p,
          row.pr,
          row.s,
          canonicalJson(row.z),
          told(c),
          told(d),
          told(row.f),
          told(row.l),
          row.li,
          row.lt,
        ]),
      ];
    }),
  );
}

test(`incremental = replay = pure fold over ${HISTORIES} histories`, async () => {
  const seed = seedOfRun();
  const random = randomFrom(seed);
  try {
    const events: GeneratedEvent[] = [];
    for (let n = 0; n < HISTORIES; n++) events.push(...generateHistory(random, `r${n}`));
    // Doubled ones arrive too, in the same batch or another.
    const arriving = shuffle(random, [...events, ...events.filter(() => random() < 0.1)]);
    const batches: GeneratedEvent[][] = [];
    for (let from = 0; from < arriving.length; ) {
      const size = pick(random, [1, 2, 7, 50, 300, 1000]);
      batches.push(arriving.slice(from, from + size));
      from += size;
    }
    let accepted = 0;
    let duplicates = 0;
    // Four senders at once, so that batches overlap.
    const queue = [...batches];
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) {
          const outcome = await ingestItems(
            database.db,
            batch.map((event) => eventText(event, "os-1")),
          );
          expect(outcome.rejected).toEqual([]);
          accepted += outcome.accepted;
          duplicates += outcome.duplicates;
        }
      }),
    );
    expect(accepted).toBe(events.length);
    expect(duplicates).toBe(arriving.length - events.length);

    const incremental = await rowsByDatabase();
    const folded = await rowsByFold(events);
    expect(incremental.size).toBe(HISTORIES);
    for (const [resourceId, row] of folded) {
      if (incremental.get(resourceId) !== row) {
        throw new Error(
          `${resourceId}: the row is ${incremental.get(resourceId)}, its history folds into ${row}`,
        );
      }
    }

    const before = await projectionRows(database.db);
    expect(await rebuild(database.db, "test", { cloud: null, resourceType: null })).toBe(HISTORIES);
    expect(await projectionRows(database.db)).toEqual(before);
    // From nothing, replay makes the very same rows (but for the text of equal sizes).
    await database.db`DELETE FROM current_resources`;
    await rebuild(database.db, "test", { cloud: null, resourceType: null });
    const replayed = await rowsByDatabase();
    expect(replayed).toEqual(incremental);
  } catch (error) {
    console.error(`TEST_SEED=${seed}`);
    throw error;
  }
}, 120_000);
