/** Small requests that share a transaction: each is answered as if it had been alone. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Database } from "../../src/database/connection.ts";
import { faultOf } from "../../src/database/faults.ts";
import { openPool } from "../../src/database/pool.ts";
import { groupedIngest } from "../../src/ingest/group.ts";
import { rebuild } from "../../src/projection/rebuild.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { eventText, generateHistory, pick, randomFrom, seedOfRun, shuffle } from "./history-generator.ts";
import { itemText } from "./items.ts";
import { ingestItems, projectionRows, recordText } from "./record.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => {
  await database.drop();
});

const SENDER = {
  actor: "00000000-0000-4000-8000-000000000001",
  scope: { platform: "openstack", cloud: "os-1" },
  source: "collector",
} as const;

/** Hands requests in through one group, as HTTP does; each is a list of items' texts. */
function grouped(db: Database, underWay?: number) {
  const ingest = groupedIngest({ db, metrics: createMetrics(), requireSizeSchema: false }, underWay);
  return (items: readonly string[]) => {
    const text = `[${items.join(",")}]`;
    return ingest(SENDER, text, JSON.parse(text));
  };
}

const ACCEPTED = { accepted: 1, duplicates: 0, rejected: [] };

/** In how many transactions the audit rows of the last so many requests were written. */
async function transactionsOf(requests: number): Promise<number> {
  const [row]: { n: number }[] = await database.db`
    SELECT count(DISTINCT x)::int AS n
    FROM (SELECT xmin::text AS x FROM audit_log WHERE action = 'events.ingest' ORDER BY id DESC LIMIT ${requests}) AS a`;
  return row?.n ?? -1;
}

/** A rule that no screening knows, standing for any that a database may have. */
async function curse(db: Database): Promise<void> {
  await db.unsafe(`
    CREATE FUNCTION test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.resource_id LIKE 'cursed%' THEN RAISE EXCEPTION 'value out of range' USING ERRCODE = '22003'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER test_refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION test_refuse();`);
}

describe("who shares a transaction", () => {
  test("requests one after the other have one each", async () => {
    const send = grouped(database.db);
    for (let n = 0; n < 5; n++) expect(await send([itemText()])).toEqual(ACCEPTED);
    expect(await transactionsOf(5)).toBe(5);
  });

  test("of thirty at once two go at once, and those that wait share the next ones", async () => {
    const send = grouped(database.db);
    const answers = await Promise.all(Array.from({ length: 30 }, () => send([itemText()])));
    expect(answers).toEqual(Array.from({ length: 30 }, () => ACCEPTED));
    expect(await transactionsOf(30)).toBe(3);
  });

  test("a large request has its own", async () => {
    const send = grouped(database.db);
    const large = () => Array.from({ length: 51 }, () => itemText());
    const answers = await Promise.all([large(), [itemText()], [itemText()], large()].map(send));
    expect(answers.map(({ accepted }) => accepted)).toEqual([51, 1, 1, 51]);
    expect(await transactionsOf(4)).toBe(4);
  });

  test("a transaction takes a thousand items at most", async () => {
    const send = grouped(database.db, 1);
    const fifty = () => send(Array.from({ length: 50 }, () => itemText()));
    await Promise.all([send([itemText()]), ...Array.from({ length: 21 }, fifty)]);
    // The first alone, twenty times fifty, the rest.
    expect(await transactionsOf(22)).toBe(3);
  });
});

test("grouped or one by one: the same answers, events, rows, dead letters and audit rows", async () => {
  const seed = seedOfRun();
  const random = randomFrom(seed);
  const [alone, together] = [await testDatabase(), await testDatabase()];
  try {
    await Promise.all([curse(alone.db), curse(together.db)]);
    const events = Array.from({ length: 150 }, (_, n) => generateHistory(random, `r${n}`)).flat();
    const bad = [
      '"no object"',
      itemText({ cloud: '"os-2"' }),
      itemText({ event_id: '""' }),
      itemText({ resource_id: '"cursed"', event_id: '"cursed-1"' }),
      itemText({ payload: '{"state":"active","size":{"vcpus":0}}' }),
    ];
    const items = shuffle(random, [
      ...events.map((event) => eventText(event, "os-1")),
      // Doubled ones are in another request, or in the same.
      ...events.filter(() => random() < 0.3).map((event) => eventText(event, "os-1")),
      ...Array.from({ length: 60 }, () => pick(random, bad)),
    ]);
    const requests: string[][] = [];
    for (let from = 0; from < items.length; ) {
      const size = pick(random, [1, 1, 1, 2, 5, 20, 60]);
      requests.push(items.slice(from, from + size));
      from += size;
    }

    const expected: unknown[] = [];
    for (const request of requests) expected.push(await ingestItems(alone.db, request));
    const send = grouped(together.db, 1);
    const answers: unknown[] = [];
    for (let from = 0; from < requests.length; ) {
      const count = pick(random, [1, 2, 8, 40]);
      const wave = requests.slice(from, from + count);
      // A large request overtakes those that wait: it ends its wave.
      const large = wave.findIndex((request) => request.length > 50);
      const small = large === -1 ? wave : wave.slice(0, large);
      answers.push(...(await Promise.all(small.map(send))));
      const last = large === -1 ? undefined : wave[large];
      if (last !== undefined) answers.push(await send(last));
      from += small.length + (last === undefined ? 0 : 1);
    }
    expect(answers).toEqual(expected);

    // All but the instants: those are told by their order.
    const told = async (db: Database) => {
      const [row]: { text: string }[] = await db`
        SELECT concat_ws(E'\n',
          (SELECT string_agg((to_jsonb(e) - 'received_at')::text, E'\n' ORDER BY received_at) FROM events e),
          (SELECT string_agg((to_jsonb(c) - 'last_received_at')::text, E'\n' ORDER BY resource_id)
             FROM current_resources c),
          (SELECT string_agg((to_jsonb(r) - 'received_at' - 'id')::text, E'\n' ORDER BY received_at)
             FROM rejected_events r),
          (SELECT string_agg((to_jsonb(a) - 'at' - 'id')::text, E'\n' ORDER BY id) FROM audit_log a)) AS text`;
      return (row?.text ?? "").split("\n");
    };
    expect(await told(together.db)).toEqual(await told(alone.db));
    const before = await projectionRows(together.db);
    await rebuild(together.db, "test", { cloud: null, resourceType: null });
    expect(await projectionRows(together.db)).toEqual(before);
  } catch (error) {
    console.error(`TEST_SEED=${seed}`);
    throw error;
  } finally {
    await Promise.all([alone.drop(), together.drop()]);
  }
}, 60_000);

describe("what befalls one request of a group", () => {
  let end: () => Promise<void> = async () => {};
  afterEach(async () => {
    await end();
    end = async () => {};
  });

  test("an item that the database refuses is refused in its own request; the others are stored", async () => {
    await curse(database.db);
    end = async () => {
      await database.db.unsafe("DROP TRIGGER test_refuse ON events; DROP FUNCTION test_refuse();");
    };
    const send = grouped(database.db, 1);
    const cursed = [itemText(), itemText({ resource_id: '"cursed"', event_id: '"cursed-2"' })];
    const answers = await Promise.all([[itemText()], [itemText()], cursed, [itemText()]].map(send));
    const reason = "schema: the database cannot store the item: value out of range";
    expect(answers).toEqual([
      ACCEPTED,
      ACCEPTED,
      { accepted: 1, duplicates: 0, rejected: [{ index: 1, event_id: "cursed-2", reason }] },
      ACCEPTED,
    ]);
  });

  test("one that waits too long for a lock fails alone", async () => {
    const impatient = openPool(database.target, { maxConnections: 4, lockTimeoutMs: 200 });
    const holder = openPool(database.target, { maxConnections: 1 });
    const held = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    end = async () => {
      release.resolve();
      await holding;
      await Promise.all([impatient.close(), holder.close()]);
    };
    await ingestItems(database.db, [itemText({ resource_id: '"locked"' })]);
    const holding = holder.begin(async (tx) => {
      await tx`SELECT 1 AS one FROM current_resources WHERE resource_id = 'locked' FOR UPDATE`;
      held.resolve();
      await release.promise;
    });
    await held.promise;
    const send = grouped(impatient, 1);
    const requests = [itemText(), itemText(), itemText({ resource_id: '"locked"' }), itemText()];
    const outcomes = await Promise.allSettled(requests.map((item) => send([item])));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
    const [, , locked] = outcomes;
    expect(locked?.status === "rejected" && faultOf(locked.reason)).toBe("timeout");
  });

  test("a client that hangs up takes nobody with it", async () => {
    const server = await testServer({ db: database });
    const holder = openPool(database.target, { maxConnections: 1 });
    const held = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    end = async () => {
      release.resolve();
      await holding;
      await Promise.all([server.stop(), holder.close()]);
    };
    await ingestItems(database.db, [itemText({ resource_id: '"busy"' })]);
    const holding = holder.begin(async (tx) => {
      await tx`SELECT 1 AS one FROM current_resources WHERE resource_id = 'busy' FOR UPDATE`;
      held.resolve();
      await release.promise;
    });
    await held.promise;
    const token = await server.credentials.ingest("openstack", "os-1");
    const post = (body: string, signal?: AbortSignal) =>
      server.request("/api/v1/events", { method: "POST", token, body, ...(signal ? { signal } : {}) });
    const waitingForLock = async () => {
      const [row]: { n: number }[] = await database.db`
        SELECT count(*)::int AS n FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return row?.n ?? 0;
    };
    // Both groups that may be under way wait for the row, one behind the other; what comes then is put together.
    const first = [itemText({ resource_id: '"busy"' }), itemText({ resource_id: '"busy"' })].map((body) =>
      post(body),
    );
    while ((await waitingForLock()) < 2) await Bun.sleep(10);
    const hangUp = new AbortController();
    const gone = post(itemText(), hangUp.signal).catch(() => "gone");
    const others = Array.from({ length: 5 }, () => post(itemText()));
    hangUp.abort();
    expect(await gone).toBe("gone");
    release.resolve();
    for (const answer of await Promise.all([...first, ...others])) {
      expect(answer.status).toBe(200);
      expect(await answer.json()).toEqual(ACCEPTED);
    }
  });

  test("a connection that dies leaves nothing of the group's, and all of it goes through when sent again", async () => {
    await database.db.unsafe(`
      CREATE FUNCTION test_die() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF (SELECT count(*) FROM added) > 1 THEN
          PERFORM pg_terminate_backend(pg_backend_pid());
          PERFORM pg_sleep(5);
        END IF;
        RETURN NULL;
      END $$;
      CREATE TRIGGER test_die AFTER INSERT ON audit_log REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION test_die()`);
    end = async () => {
      await database.db.unsafe("DROP TRIGGER IF EXISTS test_die ON audit_log; DROP FUNCTION test_die();");
    };
    const send = grouped(database.db, 1);
    const first = itemText();
    const others = Array.from({ length: 5 }, () => itemText());
    await send([first]);
    const before = await recordText(database.db);
    // The first is a duplicate and goes alone; the others are the group that dies.
    const outcomes = await Promise.allSettled([first, ...others].map((item) => send([item])));
    const statuses: string[] = outcomes.map(({ status }) => status);
    expect(statuses).toEqual(["fulfilled", ...others.map(() => "rejected")]);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(faultOf(outcome.reason)).toBe("unavailable");
    expect(await recordText(database.db)).toBe(before);
    await database.db.unsafe("DROP TRIGGER test_die ON audit_log");
    const again = await Promise.all(others.map((item) => send([item])));
    expect(again).toEqual(others.map(() => ACCEPTED));
  });
});
