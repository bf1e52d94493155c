/** The proof that drills end with fails for whatever it is a proof against. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Ledger, mustBeWhole, type Sent, sendOnce } from "../../scripts/drills/rig/clients.ts";
import { mustHold, prove } from "../../scripts/drills/rig/proof.ts";
import { CLOUD, PLATFORM, Workload } from "../../scripts/drills/rig/workload.ts";
import type { Database } from "../../src/database/connection.ts";
import { type TestServer, testServer } from "../support/server.ts";

const BATCHES = 40;
/** By its seed, batches 7, 17, 27 and 37 are of 120 items, and 2, 17, 22 and 37 have one to refuse. */
const workload = new Workload({ run: "set", seed: 3, items: 50 });

let server: TestServer;
let db: Database;
let token: string;
const sent = new Map<number, Sent>();

beforeAll(async () => {
  server = await testServer();
  db = server.db.db;
  token = await server.credentials.ingest(PLATFORM, CLOUD);
  for (let number = 0; number < BATCHES; number++) {
    const batch = workload.batch(number);
    const told = await sendOnce(server.url, token, batch.body);
    mustBeWhole(batch, told);
    sent.set(number, { attempts: 1, acknowledged: 1, accepted: told.accepted });
  }
  await db.unsafe("CREATE TABLE events_kept AS TABLE events");
  await db.unsafe("CREATE TABLE letters_kept AS TABLE rejected_events");
});
afterAll(async () => await server.stop());

/** What clients know, but for one batch. */
function knowing(number: number, changes: Partial<Sent> | null): Ledger {
  const changed = new Map(sent);
  const was = changed.get(number) ?? { attempts: 0, acknowledged: 0, accepted: 0 };
  if (changes === null) changed.delete(number);
  else changed.set(number, { ...was, ...changes });
  return { workload, sent: changed };
}

/** Past the triggers that let nobody change an event. */
async function past(...statements: readonly string[]): Promise<void> {
  await db.begin(async (tx) => {
    await tx.unsafe("SET LOCAL session_replication_role = replica");
    for (const statement of statements) await tx.unsafe(statement);
  });
}

async function held(): Promise<unknown> {
  return await mustHold(db, { workload, sent });
}

test("what was sent is there, and the checker finds nothing", async () => {
  // 36 batches of 50 and four of 120 are 2,280 items, of which four are refused.
  expect(await prove(db, { workload, sent })).toEqual({ acknowledged: 2_276, stored: 2_276 });
});

describe("what is there", () => {
  const ONE = "event_id = 'set:7:119'";
  const damages: readonly (readonly [what: string, statement: string, says: string])[] = [
    [
      "a payload that was altered",
      `UPDATE events SET payload = '{"state":"lost"}' WHERE ${ONE}`,
      "event set:7:119 is not there as it was sent",
    ],
    [
      "a payload that lost a digit",
      `UPDATE events SET payload = replace(payload::text, '.50', '.5')::jsonb
         WHERE event_id = (SELECT max(event_id) FROM events WHERE payload::text LIKE '%.50%')`,
      "is not there as it was sent",
    ],
    [
      "an instant that is a microsecond off",
      `UPDATE events SET timestamp = timestamp + interval '1 microsecond' WHERE ${ONE}`,
      "event set:7:119 is not there as it was sent",
    ],
    ...["event_type", "resource_type", "resource_id", "project_id", "platform", "cloud"].map(
      (column) =>
        [
          `another ${column}`,
          `UPDATE events SET ${column} = 'other' WHERE ${ONE}`,
          "event set:7:119 is not there as it was sent",
        ] as const,
    ),
    [
      "a lost event",
      `DELETE FROM events WHERE ${ONE}`,
      "batch 7 of 120 events and 0 items to refuse was acknowledged, and is there with 119 rows of 119 ids",
    ],
    [
      "an event that is there twice",
      `INSERT INTO events SELECT timestamp + interval '1 hour', received_at, event_id, event_type, platform, cloud,
         resource_type, resource_id, project_id, source, payload FROM events WHERE ${ONE}`,
      "is there with 121 rows of 120 ids",
    ],
    [
      "a lost batch",
      "DELETE FROM events WHERE starts_with(event_id, 'set:7:')",
      "is there with 0 rows of 0 ids",
    ],
    [
      "a batch that nobody sent",
      `INSERT INTO events SELECT timestamp, received_at, 'set:40:0', event_type, platform, cloud,
         resource_type, resource_id, project_id, source, payload FROM events WHERE ${ONE}`,
      "batch 40 is there, and nobody sent it",
    ],
    [
      "a lost dead letter",
      `DELETE FROM rejected_events WHERE starts_with(raw, '{"event_id":"set:17:')`,
      "batch 17 of 119 events and 1 items to refuse was sent 1 times and acknowledged 1 times, and is there with 119 rows of 119 ids and 0 dead letters",
    ],
    [
      "a dead letter that is there twice",
      `INSERT INTO rejected_events SELECT (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid()))).*
         FROM rejected_events r WHERE starts_with(raw, '{"event_id":"set:17:')`,
      "and 2 dead letters",
    ],
    [
      "a dead letter that is not what was sent",
      `UPDATE rejected_events SET raw = replace(raw, 'volume', 'disk') WHERE starts_with(raw, '{"event_id":"set:17:')`,
      "a dead letter keeps what nobody sent",
    ],
  ];
  for (const [what, statement, says] of damages) {
    test(`${what} fails the proof`, async () => {
      await past(statement);
      try {
        await expect(held()).rejects.toThrow(says);
      } finally {
        await past(
          "DELETE FROM events",
          "INSERT INTO events TABLE events_kept",
          "DELETE FROM rejected_events",
          "INSERT INTO rejected_events TABLE letters_kept",
        );
      }
      expect(await held()).toEqual({ acknowledged: 2_276, stored: 2_276 });
    });
  }
});

describe("what clients were told", () => {
  test("of a batch whose every request was answered 200, each event was new once", async () => {
    const all = "every request with batch 7 of 120 events and 0 items to refuse was answered 200, and";
    await expect(mustHold(db, knowing(7, { accepted: 119 }))).rejects.toThrow(
      `${all} 119 events were told to be new`,
    );
    await expect(mustHold(db, knowing(7, { accepted: 0 }))).rejects.toThrow(
      `${all} 0 events were told to be new`,
    );
    await expect(mustHold(db, knowing(7, { attempts: 2, accepted: 240 }))).rejects.toThrow(
      "240 were told to be new",
    );
    // The first attempt stored it, and its answer was lost.
    expect(await mustHold(db, knowing(7, { attempts: 2, accepted: 0 }))).toEqual({
      acknowledged: 2_276,
      stored: 2_276,
    });
  });

  test("what was not acknowledged counts as stored, and not as acknowledged", async () => {
    expect(await mustHold(db, knowing(7, { acknowledged: 0, accepted: 0 }))).toEqual({
      acknowledged: 2_156,
      stored: 2_276,
    });
  });

  test("a batch that was sent twice has as many dead letters as requests that were taken in", async () => {
    // Of two attempts the first was perhaps taken in, and perhaps not: here it was not.
    expect(await mustHold(db, knowing(17, { attempts: 2 }))).toEqual({ acknowledged: 2_276, stored: 2_276 });
    // Of two that were both answered 200 each has left one.
    await expect(mustHold(db, knowing(17, { attempts: 2, acknowledged: 2 }))).rejects.toThrow(
      "was sent 2 times and acknowledged 2 times, and is there with 119 rows of 119 ids and 1 dead letters",
    );
  });

  test("an acknowledged batch that was never stored", async () => {
    await expect(mustHold(db, knowing(40, { attempts: 1, acknowledged: 1, accepted: 50 }))).rejects.toThrow(
      "batch 40 of 50 events and 0 items to refuse was acknowledged, and is there with 0 rows",
    );
  });

  test("a batch that nobody sent", async () => {
    await expect(mustHold(db, knowing(7, null))).rejects.toThrow("batch 7 is there, and nobody sent it");
  });
});

test("a batch that is sent again stores its dead letter again", async () => {
  const batch = workload.batch(22);
  const told = await sendOnce(server.url, token, batch.body);
  mustBeWhole(batch, told);
  expect(told).toMatchObject({ accepted: 0, duplicates: 49 });
  await expect(held()).rejects.toThrow("and 2 dead letters");
  expect(await prove(db, knowing(22, { attempts: 2, acknowledged: 2 }))).toEqual({
    acknowledged: 2_276,
    stored: 2_276,
  });
});
