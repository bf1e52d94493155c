/** A batch whose connection dies leaves nothing or everything, and sending it again completes it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { faultOf } from "../../src/database/faults.ts";
import { openPool } from "../../src/database/pool.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { itemText } from "./items.ts";
import { ingestItems, recordText } from "./record.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  // Kills the very connection that runs the statement the trigger stands on.
  await database.db.unsafe(`
    CREATE FUNCTION test_die() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NULL; END $$`);
  // The same for a statement that only reads: a view that stands in for the table.
  await database.db.unsafe(`
    CREATE FUNCTION test_die_reading() RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN true; END $$`);
});
afterAll(async () => {
  await database.drop();
});

/** A batch that uses every statement: new rows, known rows, a late event (a replay), a refused item. */
let batch: string[] = [];
let round = 0;
beforeEach(async () => {
  round += 1;
  const known = `"known-${round}"`;
  const late = `"late-${round}"`;
  const later = '"2026-03-10T08:00:00Z"';
  await ingestItems(database.db, [
    itemText({ resource_id: known }),
    itemText({ resource_id: late, timestamp: later }),
  ]);
  batch = [
    itemText(),
    itemText({
      resource_id: known,
      timestamp: later,
      event_type: '"i.update"',
      payload: '{"state":"shutoff"}',
    }),
    itemText({ resource_id: late, event_type: '"i.update"', payload: '{"state":"early"}' }),
    '"refused"',
  ];
});

async function auditRows(): Promise<number> {
  const [row]: { n: number }[] = await database.db`SELECT count(*)::int AS n FROM audit_log`;
  return row?.n ?? -1;
}

/** The batch fails as a lost connection, leaves nothing, and goes through when sent again. */
async function diesAndRecovers(attempt: () => Promise<unknown>, repair: () => Promise<void>): Promise<void> {
  const before = await recordText(database.db);
  const audited = await auditRows();
  const failure: unknown = await attempt().then(
    () => "it went through",
    (error: unknown) => error,
  );
  expect(faultOf(failure)).toBe("unavailable");
  expect(await recordText(database.db)).toBe(before);
  expect(await auditRows()).toBe(audited);
  await repair();
  const outcome = await ingestItems(database.db, batch);
  expect([outcome.accepted, outcome.duplicates, outcome.rejected.length]).toEqual([3, 0, 1]);
  expect(await auditRows()).toBe(audited + 1);
}

describe("the connection dies", () => {
  const points = [
    ["before the events go in", "BEFORE INSERT ON events"],
    ["after the events went in", "AFTER INSERT ON events"],
    ["before the new rows go in", "BEFORE INSERT ON current_resources"],
    ["after the new rows went in", "AFTER INSERT ON current_resources"],
    ["before the known rows change", "BEFORE UPDATE ON current_resources"],
    ["after the known rows changed", "AFTER UPDATE ON current_resources"],
    ["at the dead letters", "BEFORE INSERT ON rejected_events"],
    ["at the audit row", "BEFORE INSERT ON audit_log"],
    ["after the audit row", "AFTER INSERT ON audit_log"],
  ] as const;
  for (const [when, point] of points) {
    test(when, async () => {
      const table = point.slice(point.lastIndexOf(" ") + 1);
      await database.db.unsafe(
        `CREATE TRIGGER test_die ${point} FOR EACH STATEMENT EXECUTE FUNCTION test_die()`,
      );
      await diesAndRecovers(
        () => ingestItems(database.db, batch),
        async () => {
          await database.db.unsafe(`DROP TRIGGER test_die ON ${table}`);
        },
      );
    });
  }

  const reads = [
    ["while the size schemas are read", "resource_types"],
    ["while the size names are read", "size_names"],
    ["while it asks which resources are known", "current_resources"],
    // The events go in through the view, too: what dies is the replay of the late one's history.
    ["while a history is read", "events"],
  ] as const;
  for (const [when, table] of reads) {
    test(when, async () => {
      await diesAndRecovers(
        async () => {
          await database.db.unsafe(`
            ALTER TABLE ${table} RENAME TO test_${table};
            CREATE VIEW ${table} AS SELECT * FROM test_${table} WHERE (SELECT test_die_reading())`);
          try {
            return await ingestItems(database.db, batch);
          } finally {
            await database.db.unsafe(`DROP VIEW ${table}; ALTER TABLE test_${table} RENAME TO ${table}`);
          }
        },
        // The table is back: the test's own look at the record would die of the view, too.
        async () => {},
      );
    });
  }

  test("at the commit itself", async () => {
    await database.db.unsafe(`
      CREATE CONSTRAINT TRIGGER test_die AFTER INSERT ON audit_log DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION test_die()`);
    await diesAndRecovers(
      () => ingestItems(database.db, batch),
      async () => {
        await database.db.unsafe("DROP TRIGGER test_die ON audit_log");
      },
    );
  });

  test("while it waits for a row's lock", async () => {
    const holder = openPool(database.target, { maxConnections: 1, applicationName: "holder" });
    const ingester = openPool(database.target, { maxConnections: 1, applicationName: "ingester" });
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let held = () => {};
    const holding = new Promise<void>((resolve) => {
      held = resolve;
    });
    const held_ = holder.begin(async (tx) => {
      await tx`SELECT 1 FROM current_resources WHERE resource_id = ${`known-${round}`} FOR UPDATE`;
      held();
      await released;
    });
    await holding;
    await diesAndRecovers(
      async () => {
        const ingesting = ingestItems(ingester, batch);
        // Handled where it is awaited; until then it must not count as unhandled.
        ingesting.catch(() => {});
        for (let killed = 0; killed === 0; await Bun.sleep(20)) {
          const rows: unknown[] = await database.db`
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'ingester' AND wait_event_type = 'Lock'`;
          killed = rows.length;
        }
        await ingesting;
      },
      async () => {
        release();
        await held_;
      },
    );
    await holder.close();
    await ingester.close();
  });
});
