/** Every kind of damage is found and named; a sound database passes, also while it is written to. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Database } from "../../src/database/connection.ts";
import { openPool } from "../../src/database/pool.ts";
import { retryLetters } from "../../src/dead-letters/retry.ts";
import { rebuild } from "../../src/projection/rebuild.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { checkAudit } from "../../src/verify/audit.ts";
import type { Fault } from "../../src/verify/fault.ts";
import { checkMinutes } from "../../src/verify/minutes.ts";
import { checkResources } from "../../src/verify/resources.ts";
import { type Verified, verify } from "../../src/verify/verify.ts";
import { eventText, generateHistory, randomFrom, seedOfRun, shuffle } from "../ingest/history-generator.ts";
import { itemText, payloadText } from "../ingest/items.ts";
import { ingestItems } from "../ingest/record.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
const seed = seedOfRun();

/** Two clouds with a few hundred events, refused items, duplicates, a scope violation and a retry of dead letters. */
beforeAll(async () => {
  database = await testDatabase();
  const random = randomFrom(seed);
  for (const cloud of ["os-1", "os-2"]) {
    const events = shuffle(
      random,
      Array.from({ length: 60 }, (_, n) => generateHistory(random, `r/${n}`)).flat(),
    ).map((event) => eventText(event, cloud));
    for (let at = 0; at < events.length; at += 25)
      await ingestItems(database.db, events.slice(Math.max(0, at - 5), at + 25), cloud);
  }
  const web = (id: string, at: string, type: string, changes: Record<string, string> = {}) =>
    itemText({
      event_id: `"${id}"`,
      resource_id: '"web-1"',
      timestamp: `"${at}"`,
      event_type: `"${type}"`,
      ...changes,
    });
  // A clock that runs ahead: what is later than now counts neither in the summary nor in the intervals.
  const ahead = { resource_id: '"ahead"' };
  await ingestItems(database.db, [
    web("ahead-stopped", "2999-03-01T08:00:00Z", "compute.instance.power_off", {
      ...ahead,
      payload: '{"state":"stopped"}',
    }),
    web("ahead-started", "2999-03-02T08:00:00Z", "compute.instance.power_on", ahead),
  ]);
  await ingestItems(database.db, [
    web("web-created", "2026-03-01T08:00:00Z", "compute.instance.create.end"),
    web("web-stopped", "2026-03-02T08:00:00Z", "compute.instance.power_off", {
      payload: '{"state":"stopped"}',
    }),
    web("web-gone", "2026-03-03T08:00:00Z", "compute.instance.delete.end", { payload: "null" }),
    itemText({ cloud: '"elsewhere"' }),
    itemText({ event_id: "7" }),
    itemText({ resource_id: '"late"', payload: payloadText({ size: '{"vcpus":1}' }) }),
  ]);
  await database.db`
    UPDATE resource_types SET size_schema = '{"type":"object"}' WHERE resource_type = 'instance'`;
  const pipeline = { db: database.db, metrics: createMetrics(), requireSizeSchema: false };
  const filter = { from: null, to: null, kind: null, cloud: null };
  const retried = await retryLetters(pipeline, "test", filter, { limit: 100, after: null });
  expect(retried).toMatchObject({ retried: 2, resolved: 1, refused: 1 });
});
afterAll(async () => {
  await database.drop();
});

async function check(): Promise<{ verified: Verified; faults: Fault[] }> {
  const faults: Fault[] = [];
  const verified = await verify(database.db, (fault) => faults.push(fault));
  expect(verified.faults).toBe(faults.length);
  return { verified, faults };
}

/** Damages, looks, and mends. Triggers are off meanwhile: nothing else lets events be changed. */
async function faultsAfter(damage: string, mend: string): Promise<Fault[]> {
  const change = async (statement: string) => {
    await database.db.begin(async (tx) => {
      await tx`SET LOCAL session_replication_role = replica`;
      await tx.unsafe(statement);
    });
  };
  await change(damage);
  const { faults } = await check();
  await change(mend);
  await rebuild(database.db, "test", { cloud: null, resourceType: null });
  expect((await check()).faults).toEqual([]);
  return faults;
}

const NOTHING = "SELECT 1";
const WEB = "WHERE cloud = 'os-1' AND resource_type = 'instance' AND resource_id = 'web-1'";
const web = "resource os-1/instance/web-1";

test("a sound database", async () => {
  const { verified, faults } = await check();
  if (faults.length > 0) console.error(`TEST_SEED=${seed}`);
  expect(faults).toEqual([]);
  const [stored]: { events: number; resources: number; entries: number }[] = await database.db`
    SELECT (SELECT count(*)::int FROM events) AS events, (SELECT count(*)::int FROM current_resources) AS resources,
           (SELECT count(*)::int FROM audit_log) AS entries`;
  expect(verified).toEqual({
    events: stored?.events ?? 0,
    resources: stored?.resources ?? 0,
    // p1 of both clouds and p2 of both.
    projects: 4,
    projectsTooLong: 0,
    auditEntries: stored?.entries ?? 0,
    faults: 0,
  });
});

test("an empty database", async () => {
  const empty = await testDatabase();
  const nothing = { resources: 0, events: 0, projects: 0, projectsTooLong: 0, auditEntries: 0, faults: 0 };
  expect(await verify(empty.db, () => {})).toEqual(nothing);
  await empty.drop();
});

test("a state that lists by it don't look for where it is: a rebuild finds that out", async () => {
  const lost =
    "DELETE FROM living_states WHERE cloud = 'os-1' AND resource_type = 'instance' AND state = 'active'";
  const alive: { id: string }[] = await database.db`
    SELECT resource_id AS id FROM current_resources
     WHERE cloud = 'os-1' AND resource_type = 'instance' AND state = 'active' AND deleted_at IS NULL`;
  expect(alive.length).toBeGreaterThan(0);
  expect((await faultsAfter(lost, NOTHING)).sort((a, b) => (a.where < b.where ? -1 : 1))).toEqual(
    alive
      .map(({ id }) => ({
        where: `resource os-1/instance/${encodeURIComponent(id)}`,
        what: "it isn't listed by its state: living_states lacks that",
      }))
      .sort((a, b) => (a.where < b.where ? -1 : 1)),
  );
});

describe("rows", () => {
  test.each([
    ["state = 'active'", 'its row\'s state is "active", and by its history "deleted"'],
    ["project_id = 'other'", 'its row\'s project_id is "other", and by its history "p1"'],
    ["platform = 'other'", 'its row\'s platform is "other", and by its history "openstack"'],
    ["deleted_at = NULL", "its row's deleted_at is null, and by its history 2026-03-03T08:00:00Z"],
    [
      "created_at = created_at + interval '1 microsecond'",
      "its row's created_at is 2026-03-01T08:00:00.000001Z, and by its history 2026-03-01T08:00:00Z",
    ],
    [
      "first_event_at = first_event_at - interval '1 day'",
      "its row's first_event_at is 2026-02-28T08:00:00Z, and by its history 2026-03-01T08:00:00Z",
    ],
    [
      "last_event_at = '2027-01-01T00:00:00Z'",
      "its row's last_event_at is 2027-01-01T00:00:00Z, and by its history 2026-03-03T08:00:00Z",
    ],
    ["last_event_id = 'x'", 'its row\'s last_event_id is "x", and by its history "web-gone"'],
    [
      "last_event_type = 'x'",
      'its row\'s last_event_type is "x", and by its history "compute.instance.delete.end"',
    ],
    [
      "size = jsonb_set(size, '{vcpus}', '3')",
      'its row\'s size is {"vcpus": 3, "disk_gb": 40, "ram_gb": 4, "flavor": "m1.medium"}, and by its history {"flavor": "m1.medium", "ram_gb": 4, "vcpus": 2, "disk_gb": 40}',
    ],
    ["deleted_at = 'infinity'", "its row holds an infinite instant"],
  ])("%s", async (change, what) => {
    const mend = change.includes("infinity") ? `DELETE FROM current_resources ${WEB}` : NOTHING;
    const faults = await faultsAfter(`UPDATE current_resources SET ${change} ${WEB}`, mend);
    expect(faults.map(({ where }) => where)).toEqual([web]);
    if (!change.startsWith("size")) expect(faults[0]?.what).toBe(what);
    else expect(faults[0]?.what).toContain("its row's size is {");
  });

  test("a size that is no object", async () => {
    const faults = await faultsAfter(`UPDATE current_resources SET size = '"{}"' ${WEB}`, NOTHING);
    expect(faults).toContainEqual({ where: web, what: "its row's size is of the JSON type string" });
  });

  test("received later than its history says", async () => {
    const faults = await faultsAfter(
      `UPDATE current_resources SET last_received_at = last_received_at + interval '1 second' ${WEB}`,
      NOTHING,
    );
    expect(faults).toHaveLength(1);
    expect(faults[0]?.what).toStartWith("its row's last_received_at is ");
  });

  test("a row that went missing", async () => {
    expect(await faultsAfter(`DELETE FROM current_resources ${WEB}`, NOTHING)).toEqual([
      { where: web, what: "it has events, and no row" },
    ]);
  });

  test("a row that no event stands behind; an odd id is spelled as in the API's paths", async () => {
    const made = `INSERT INTO current_resources
      SELECT created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud, resource_type, 'a/b ü',
             platform, project_id, state, last_event_id, last_event_type, size FROM current_resources ${WEB}`;
    expect(await faultsAfter(made, NOTHING)).toEqual([
      { where: "resource os-1/instance/a%2Fb%20%C3%BC", what: "it has a row, and no events" },
    ]);
  });
});

describe("events", () => {
  const set = (column: string, value: string) =>
    `UPDATE events SET ${column} = ${value} WHERE event_id = 'web-stopped'`;

  /** Position 1 of its batch, as it was. */
  const BACK_IN_PLACE = `UPDATE events SET received_at = g.received_at + interval '1 microsecond'
         FROM events g WHERE g.event_id = 'web-created' AND events.event_id = 'web-stopped'`;

  test("one that was lost: its row, and the audit entry that counted it, tell", async () => {
    await database.db`CREATE TABLE kept AS SELECT * FROM events WHERE event_id = 'web-gone'`;
    const faults = await faultsAfter(
      "DELETE FROM events WHERE event_id = 'web-gone'",
      "INSERT INTO events SELECT * FROM kept",
    );
    await database.db`DROP TABLE kept`;
    expect(faults).toContainEqual({
      where: web,
      what: 'its row\'s state is "deleted", and by its history "stopped"',
    });
    const counted = faults.filter(({ where }) => where.startsWith("audit log at "));
    expect(counted.map(({ what }) => what)).toEqual([
      "it tells of 3 accepted collector events, and 2 are stored",
    ]);
  });

  test("one that no batch brought", async () => {
    const faults = await faultsAfter(
      `INSERT INTO events SELECT timestamp, received_at, 'smuggled', event_type, platform, cloud, resource_type,
         resource_id, project_id, source, payload FROM events WHERE event_id = 'web-stopped'`,
      "DELETE FROM events WHERE event_id = 'smuggled'",
    );
    expect(faults.map(({ what }) => what)).toEqual([
      "it tells of 3 accepted collector events, and 4 are stored",
    ]);
  });

  test("one before the first batch", async () => {
    const faults = await faultsAfter(set("received_at", "'2020-01-01T00:00:00Z'"), BACK_IN_PLACE);
    expect(faults.map(({ what }) => what).sort()).toEqual([
      expect.stringMatching(/^it tells of \d+ accepted collector events, and \d+ are stored$/),
      "it tells of 3 accepted collector events, and 2 are stored",
    ]);
  });

  test("one whose pipeline was changed", async () => {
    const faults = await faultsAfter(set("source", "'reconciliation'"), set("source", "'collector'"));
    expect(faults.map(({ what }) => what)).toEqual([
      "it tells of 3 accepted collector events, and 2 are stored",
      "it tells of 0 accepted reconciliation events, and 1 are stored",
    ]);
  });

  test.each([
    [`'"{}"'`, "has a payload that is of the JSON type string"],
    ["'[]'", "has a payload that is of the JSON type array"],
    ["NULL", "has no payload"],
    [`'{"state":"stopped","size":"{}"}'`, "has a size that is of the JSON type string"],
  ])("a payload %s", async (payload, what) => {
    const faults = await faultsAfter(set("payload", payload), set("payload", `'{"state":"stopped"}'`));
    expect(faults).toContainEqual({ where: web, what: `its event "web-stopped" ${what}` });
  });

  // Not its timestamp: where events are a hypertable, no chunk takes that one.
  test("an instant that is none", async () => {
    const faults = await faultsAfter(set("received_at", "'infinity'"), BACK_IN_PLACE);
    expect(faults).toEqual([
      { where: web, what: 'its event "web-stopped" has an infinite instant' },
      {
        where: "project os-1/p1",
        what: "its minutes can't be summed up: PostgresError: cannot convert infinity to bigint",
      },
      {
        where: expect.stringContaining("audit log at "),
        what: "it tells of 3 accepted collector events, and 2 are stored",
      },
    ]);
  });
});

test("a dead letter that was removed", async () => {
  await database.db`CREATE TABLE kept AS SELECT * FROM rejected_events WHERE reason LIKE '%event_id%'`;
  const faults = await faultsAfter(
    "DELETE FROM rejected_events WHERE reason LIKE '%event_id%'",
    "INSERT INTO rejected_events SELECT * FROM kept",
  );
  await database.db`DROP TABLE kept`;
  expect(faults.map(({ what }) => what)).toEqual([
    "it tells of 3 refused items, 1 of them out of scope, and 1 dead letters are stored",
  ]);
});

test("an audit entry that was removed", async () => {
  await database.db`CREATE TABLE kept AS SELECT * FROM audit_log WHERE action = 'rejected_events.retry'`;
  const faults = await faultsAfter(
    "DELETE FROM audit_log WHERE action = 'rejected_events.retry'",
    "INSERT INTO audit_log OVERRIDING SYSTEM VALUE SELECT * FROM kept",
  );
  await database.db`DROP TABLE kept`;
  expect(faults.map(({ what }) => what)).toEqual([
    "it tells of 3 accepted collector events, and 4 are stored",
  ]);
});

test("a summary that counts otherwise", async () => {
  const faults: Fault[] = [];
  const wrong = async () => [
    { resourceType: "instance", created: 1, deleted: 1, totalMinutes: 2881n, activeNow: 0 },
  ];
  const only = await testDatabase();
  await ingestItems(only.db, [
    itemText({ resource_id: '"w"' }),
    itemText({
      resource_id: '"w"',
      timestamp: '"2026-03-03T08:00:00Z"',
      event_type: '"x.delete"',
      payload: "null",
    }),
  ]);
  await checkMinutes(
    only.db,
    (fault) => faults.push(fault),
    () => {},
    wrong,
  );
  await only.drop();
  expect(faults).toEqual([
    {
      where: "project os-1/p1",
      what: "its summary says 2881 minutes of instance, and its resources' events come to 2880",
    },
  ]);
});

test.each([
  [{ entries: 3, items: 1_000_000 }],
  [{ entries: 1_000, items: 60 }],
  [{ entries: 1_000, items: 1 }],
])("portions of %p come to the same", async (size) => {
  const faults: Fault[] = [];
  const progress: number[] = [];
  const [entries]: { n: number }[] =
    await database.db`SELECT count(*)::int AS n FROM audit_log WHERE action <> 'projection.rebuild'`;
  const checked = await checkAudit(
    database.db,
    (fault) => faults.push(fault),
    (done) => progress.push(done),
    size,
  );
  expect(checked).toBe(entries?.n ?? -1);
  expect(progress.length).toBeGreaterThan(5);
  expect(faults).toEqual([]);
});

describe("a statement that takes longer than a request's may", () => {
  const nobody = () => {};
  const stages: [string, string, (db: Database) => Promise<unknown>][] = [
    ["audit_log", "the estimate", (db) => verify(db, nobody)],
    ["events", "resources", (db) => checkResources(db, nobody, nobody)],
    ["events", "projects", (db) => checkMinutes(db, nobody, nobody)],
    ["rejected_events", "audit entries", (db) => checkAudit(db, nobody, nobody)],
  ];
  test.each(stages)("on %s: %s", async (table, _, stage) => {
    const db = openPool(database.target, { maxConnections: 1, statementTimeoutMs: 500 });
    const locked = Promise.withResolvers<void>();
    const holding = database.db.begin(async (tx) => {
      await tx.unsafe(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      locked.resolve();
      await Bun.sleep(1_500);
    });
    await locked.promise;
    await stage(db);
    await holding;
    await db.close({ timeout: 0 });
  });
});

test("beside running ingest nothing looks like a fault", async () => {
  const random = randomFrom(seed + 1);
  let done = false;
  const clients = Array.from({ length: 4 }, async (_, client) => {
    const pool = database.pool(1);
    for (let n = 0; !done; n++) {
      const events = Array.from({ length: 12 }, (_, i) =>
        generateHistory(random, `live-${(n + i) % 30}`),
      ).flat();
      const texts = events.map((event, i) => eventText({ ...event, eventId: `${client}-${n}-${i}` }, "os-1"));
      await ingestItems(pool, texts);
    }
  });
  const faults: Fault[] = [];
  for (let round = 0; round < 4; round++) await verify(database.db, (fault) => faults.push(fault));
  done = true;
  await Promise.all(clients);
  if (faults.length > 0) console.error(`TEST_SEED=${seed}`);
  expect(faults).toEqual([]);
}, 60_000);
