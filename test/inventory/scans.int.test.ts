/**
 * No page is read by going through a table: on tables large enough for the planner to mean it, every filter's
 * statement is explained as it is sent, and run.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { recording } from "../../scripts/bench/recorded.ts";
import { type LogFilter, pageOfLog } from "../../src/access/log.ts";
import type { Queryable } from "../../src/database/connection.ts";
import type { ObjectPage } from "../../src/database/object-text.ts";
import { snapshot } from "../../src/database/snapshot.ts";
import { type DeadLetterFilter, pageOfDeadLetters } from "../../src/dead-letters/queries.ts";
import { type Instant, parseInstant } from "../../src/event/instant.ts";
import {
  type EventFilter,
  pageOfEvents,
  pageOfResources,
  type ResourceFilter,
} from "../../src/inventory/list-queries.ts";
import { historyOf } from "../../src/inventory/queries.ts";
import { pageOfProjects } from "../../src/projects/queries.ts";
import { pageOfRuns } from "../../src/reconcile/queries.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

/** Rows of each table. */
const ROWS = 40_000;
/** Events and resources of a cloud of another platform, connected after all that. */
const LATE = 2_000;
/** Rows that a page of `LIMIT` may look at: what a filter that every tenth row passes needs, and some more. */
const MOST = 4_000;
const LIMIT = 100;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  const { db } = database;
  // Four clouds, ten types of resource, forty projects, fifty event types; one event in a thousand is a correction.
  await db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-01-01T00:00:00Z' + i * interval '1 minute', now(), 'e' || i, 'x.t' || i % 50,
           'openstack', 'c' || i % 4, 'type' || i % 10, 'r' || i / 10, 'p' || i % 40,
           CASE WHEN i % 1000 = 0 THEN 'reconciliation' ELSE 'collector' END, '{"state":"on"}'
      FROM generate_series(1, ${ROWS}::int) i`;
  await db`
    INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud,
                                   resource_type, resource_id, platform, project_id, state, last_event_id,
                                   last_event_type, size)
    SELECT '2026-01-01T00:00:00Z', CASE WHEN i % 2 = 0 THEN timestamptz '2026-01-02T00:00:00Z' END,
           '2026-01-01T00:00:00Z', timestamptz '2026-01-01T00:00:00Z' + i * interval '1 minute', now(), 'c' || i % 4,
           'type' || i % 10, 'r' || i, 'openstack', 'p' || i % 100,
           CASE WHEN i % 2 = 0 THEN 'deleted' WHEN i % 7 = 0 THEN 'off' ELSE 'on' END,
           'e' || i, 'x.t' || i % 50, '{}'
      FROM generate_series(1, ${ROWS}::int) i`;
  await db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-03-01T00:00:00Z' + i * interval '1 minute', now(), 'late' || i, 'vm.t' || i % 5, 'vmware',
           'late', 'vm', 'vm' || i, 'vp' || i % 10, 'collector', '{"state":"on"}'
      FROM generate_series(1, ${LATE}::int) i`;
  await db`
    INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud,
                                   resource_type, resource_id, platform, project_id, state, last_event_id,
                                   last_event_type, size)
    SELECT '2026-03-01T00:00:00Z', CASE WHEN i % 2 = 0 THEN timestamptz '2026-03-03T00:00:00Z' END,
           '2026-03-01T00:00:00Z', timestamptz '2026-03-01T00:00:00Z' + i * interval '1 minute', now(), 'late', 'vm',
           'vm' || i, 'vmware', 'vp' || i % 10, CASE WHEN i % 2 = 0 THEN 'deleted' ELSE 'poweredOn' END, 'late' || i,
           'vm.t' || i % 5, '{}'
      FROM generate_series(1, ${LATE}::int) i`;
  // A collector may make up types in its own cloud: that is no burden on the others' pages.
  await db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-02-25T00:00:00Z' + i * interval '1 minute', now(), 'odd' || i, 'x.t1', 'openstack', 'odd',
           'odd' || i, 'r', 'p1', 'collector', '{"state":"poweredOn"}'
      FROM generate_series(1, 300) i`;
  await db`
    INSERT INTO current_resources (created_at, first_event_at, last_event_at, last_received_at, cloud, resource_type,
                                   resource_id, platform, project_id, state, last_event_id, last_event_type, size)
    SELECT timestamp, timestamp, timestamp, now(), cloud, resource_type, resource_id, platform, project_id,
           'poweredOn', event_id, event_type, '{}'
      FROM events WHERE cloud = 'odd'`;
  await db`
    INSERT INTO rejected_events (received_at, reason, reason_kind, source, raw, item_cloud, resolved_at)
    SELECT timestamptz '2026-01-01T00:00:00Z' + i * interval '1 minute', 'schema: x',
           CASE i % 10 WHEN 0 THEN 'size_schema' ELSE 'schema' END, 'collector', '{}', 'c' || i % 4,
           CASE i % 3 WHEN 0 THEN now() END
      FROM generate_series(1, ${ROWS}::int) i`;
  await db`
    INSERT INTO audit_log (at, actor, action, object_type, object_id)
    SELECT timestamptz '2026-01-01T00:00:00Z' + i * interval '1 minute', 'actor' || i % 20,
           CASE i % 100 WHEN 0 THEN 'token.create' ELSE 'events.ingest' END,
           CASE i % 100 WHEN 0 THEN 'token' ELSE 'batch' END, i::text
      FROM generate_series(1, ${ROWS}::int) i`;
  await db`
    INSERT INTO sync_runs (started_at, finished_at, cloud, platform, status)
    SELECT timestamptz '2026-01-01T00:00:00Z' + i * interval '1 minute', now(), 'c' || i % 4, 'openstack',
           CASE i % 10 WHEN 0 THEN 'failed' ELSE 'completed' END
      FROM generate_series(1, ${ROWS}::int) i`;
  await db`
    INSERT INTO projects (platform, cloud, external_id)
    SELECT 'openstack', 'c' || i % 4, 'p' || i FROM generate_series(1, ${ROWS}::int) i`;
  await db`VACUUM (ANALYZE) events, current_resources, rejected_events, audit_log, sync_runs, projects`;
}, 60_000);
afterAll(() => database.drop());

const BLOCK_RANGES = ["events_by_arrival", "current_resources_by_value"];

interface Plan {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly Plans?: readonly Plan[];
}

/** Every node that reads a table or an index. */
function scans(plan: Plan): Plan[] {
  return [...(plan["Node Type"].endsWith("Scan") ? [plan] : []), ...(plan.Plans ?? []).flatMap(scans)];
}

/** How many rows it has looked at: those that it gave, and those that it let go. */
function lookedAt(scan: Plan): number {
  // A block range index counts ten rows a page, whatever stands there; who reads those pages counts the rows.
  if (scan["Node Type"] === "Bitmap Index Scan" && BLOCK_RANGES.includes(scan["Index Name"] ?? "")) return 0;
  const removed = (scan["Rows Removed by Filter"] ?? 0) + (scan["Rows Removed by Index Recheck"] ?? 0);
  return (scan["Actual Rows"] + removed) * scan["Actual Loops"];
}

/** Runs a read, and explains each statement of it. */
async function plansOf(
  read: (tx: Queryable) => Promise<unknown>,
  { db }: TestDatabase = database,
): Promise<Plan[]> {
  return await snapshot(db, async (tx) => {
    const statements: string[] = [];
    await read(recording(tx, statements));
    const plans: Plan[] = [];
    for (const statement of statements) {
      const [row]: { "QUERY PLAN": { Plan: Plan }[] }[] = await tx.unsafe(
        `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${statement}`,
      );
      const plan = row?.["QUERY PLAN"][0]?.Plan;
      if (plan === undefined) throw new Error(`no plan for ${statement}`);
      plans.push(plan);
    }
    expect(plans.length).toBeGreaterThan(0);
    return plans;
  });
}

async function expectNoScan(
  read: (tx: Queryable) => Promise<unknown>,
  where: TestDatabase = database,
): Promise<void> {
  const found = (await plansOf(read, where)).flatMap(scans);
  expect(found.length).toBeGreaterThan(0);
  for (const scan of found) {
    expect(scan["Node Type"]).not.toBe("Seq Scan");
    expect(lookedAt(scan), JSON.stringify(scan)).toBeLessThanOrEqual(MOST);
  }
}

function at(text: string): Instant {
  const parsed = parseInstant(text);
  if (typeof parsed === "string") throw new Error(parsed);
  return parsed;
}

const FROM = at("2026-01-10T00:00:00Z");
const TO = at("2026-01-20T00:00:00Z");
const page = <P>(after: P | null) => ({ limit: LIMIT, after });

describe("a page of events", () => {
  const none: EventFilter = {
    cloud: null,
    platform: null,
    projectId: null,
    resourceType: null,
    resourceId: null,
    eventType: null,
    source: null,
    from: null,
    to: null,
  };
  const filters: [string, Partial<EventFilter>][] = [
    ["nothing", {}],
    ["cloud", { cloud: "c1" }],
    ["platform", { platform: "openstack" }],
    ["a platform that isn't there", { platform: "nova" }],
    ["a platform that isn't there, in a window", { platform: "nova", from: FROM }],
    ["project", { projectId: "p7" }],
    ["a cloud that isn't there", { cloud: "c9" }],
    ["a project that isn't there", { projectId: "p700" }],
    ["resource type", { resourceType: "type3" }],
    ["a resource type that isn't there", { resourceType: "type30" }],
    ["resource", { cloud: "c0", resourceType: "type0", resourceId: "r7" }],
    ["event type", { eventType: "x.t3" }],
    ["an event type that isn't there", { eventType: "x.t" }],
    ["source", { source: "collector" }],
    ["the rarer source", { source: "reconciliation" }],
    ["from", { from: FROM }],
    ["to", { to: TO }],
    ["a cloud that came late", { cloud: "late" }],
    ["the platform of it alone", { platform: "vmware" }],
    ["a type that it alone has", { resourceType: "vm" }],
    ["its type", { cloud: "late", resourceType: "vm" }],
    ["its source", { cloud: "late", source: "collector" }],
    ["its platform in a window", { platform: "vmware", from: at("2026-01-02T00:00:00Z") }],
    ["its own corrections, of which there are none", { cloud: "late", source: "reconciliation" }],
    ["its type in another cloud", { cloud: "c0", resourceType: "vm" }],
    ["its type on another platform", { platform: "openstack", resourceType: "vm" }],
    ["its project", { projectId: "vp3" }],
    ["a type of its events", { eventType: "vm.t3" }],
    ["a cloud and a type of several clouds", { cloud: "c3", resourceType: "type3" }],
    ["a platform and a type of several clouds", { platform: "openstack", resourceType: "type2" }],
    ["a cloud's corrections", { cloud: "c0", source: "reconciliation" }],
    ["a window of a project", { projectId: "p7", from: FROM, to: TO }],
    ["a window of a type", { eventType: "x.t3", from: FROM, to: TO }],
  ];
  test.each(filters)("by %s", async (_, some) => {
    await expectNoScan((tx) => pageOfEvents(tx, null, { ...none, ...some }, page(null)));
  });

  test("deep in the walk", async () => {
    const after = { timestamp: at("2026-01-25T00:00:00Z"), eventId: "e" };
    await expectNoScan((tx) => pageOfEvents(tx, null, none, page(after)));
    await expectNoScan((tx) => pageOfEvents(tx, null, { ...none, eventType: "x.t3" }, page(after)));
    await expectNoScan((tx) => pageOfEvents(tx, null, { ...none, cloud: "c3" }, page(after)));
    await expectNoScan((tx) => pageOfEvents(tx, null, { ...none, resourceType: "type3" }, page(after)));
  });

  test("behind the last of a cloud's events", async () => {
    const after = { timestamp: at("2026-03-02T09:20:00Z"), eventId: "z" };
    await expectNoScan(async (tx) => {
      const { last } = await pageOfEvents(tx, null, { ...none, cloud: "c3" }, page(after));
      expect(last).toBeNull();
    });
  });

  test("under a scope of two projects", async () => {
    const scope = [
      { cloud: "c3", projectId: "p7" },
      { cloud: "c0", projectId: "p8" },
    ];
    await expectNoScan((tx) => pageOfEvents(tx, scope, none, page(null)));
  });
});

const NO_RESOURCES: ResourceFilter = {
  cloud: null,
  platform: null,
  projectId: null,
  resourceType: null,
  state: null,
  status: "active",
};

describe("a page of resources", () => {
  const none = NO_RESOURCES;
  const filters: [string, Partial<ResourceFilter>][] = [
    ["nothing", {}],
    ["status deleted", { status: "deleted" }],
    ["status all", { status: "all" }],
    ["cloud", { cloud: "c2" }],
    ["platform", { platform: "openstack" }],
    ["project", { projectId: "p7" }],
    ["cloud and type", { cloud: "c1", resourceType: "type3" }],
    ["state", { state: "off" }],
    ["state, the dead among them", { state: "off", status: "all" }],
    ["a state that nothing is in", { state: "lost" }],
    ["a state that nothing is in, the dead among them", { state: "lost", status: "all" }],
    ["a state that nothing living is in", { state: "deleted" }],
    ["the state that everything dead is in", { state: "deleted", status: "deleted" }],
    ["a platform that isn't there", { platform: "nova" }],
    ["a platform that isn't there, the dead among them", { platform: "nova", status: "all" }],
    ["a cloud that isn't there", { cloud: "c9" }],
    ["a project that isn't there", { projectId: "p700" }],
    ["a type that isn't there", { resourceType: "type30" }],
    ["a cloud that came late", { cloud: "late" }],
    ["the platform of it alone", { platform: "vmware" }],
    ["the platform of it alone, the dead among them", { platform: "vmware", status: "all" }],
    ["the dead of its platform", { platform: "vmware", status: "deleted" }],
    ["a type that it alone has", { resourceType: "vm" }],
    ["its type in another cloud", { cloud: "c0", resourceType: "vm" }],
    ["its type on another platform", { platform: "openstack", resourceType: "vm" }],
    ["a state that nothing else is in", { state: "poweredOn" }],
    ["a state that nothing else is in, the dead among them", { state: "poweredOn", status: "all" }],
    ["a state that isn't its cloud's", { cloud: "c0", state: "poweredOn" }],
    ["a state of its platform", { platform: "vmware", state: "poweredOn" }],
    ["a state of its type", { resourceType: "vm", state: "poweredOn" }],
    ["a state of its cloud", { cloud: "late", state: "poweredOn" }],
    ["the other platform and a type of it", { platform: "openstack", resourceType: "type2" }],
  ];
  test.each(filters)("by %s", async (_, some) => {
    await expectNoScan((tx) => pageOfResources(tx, null, { ...none, ...some }, page(null)));
  });

  test("deep in the walk", async () => {
    const after = { cloud: "c2", resourceType: "type2", resourceId: "r2" };
    await expectNoScan((tx) => pageOfResources(tx, null, none, page(after)));
  });

  test("under a scope of two projects", async () => {
    const scope = [
      { cloud: "c3", projectId: "p7" },
      { cloud: "c0", projectId: "p8" },
    ];
    await expectNoScan((tx) => pageOfResources(tx, scope, none, page(null)));
  });
});

test("what is dead is in one state only: to find none in another, nothing is read", async () => {
  const statements: string[] = [];
  const filter = { ...NO_RESOURCES, state: "on", status: "deleted" } as const;
  expect(await pageOfResources(recording(database.db, statements), null, filter, page(null))).toEqual({
    items: Buffer.alloc(0),
    last: null,
  });
  expect(statements).toEqual([]);
});

test("a resource's history", async () => {
  await expectNoScan((tx) => historyOf(tx, { cloud: "c0", resourceType: "type0", resourceId: "r7" }, null));
});

describe("a page of dead letters", () => {
  const none: DeadLetterFilter = { from: null, to: null, kind: null, cloud: null };
  const filters: [string, Partial<DeadLetterFilter>][] = [
    ["nothing", {}],
    ["kind", { kind: "size_schema" }],
    ["a kind that isn't there", { kind: "scope" }],
    ["cloud", { cloud: "c1" }],
    ["a cloud that isn't there", { cloud: "c9" }],
    ["window", { from: FROM, to: TO }],
  ];
  for (const status of ["open", "resolved", "all"] as const) {
    test.each(filters)(`${status}, by %s`, async (_, some) => {
      await expectNoScan((tx) => pageOfDeadLetters(tx, { ...none, ...some }, status, page(null)));
    });
  }
});

describe("a page of the audit log", () => {
  const none: LogFilter = { actor: null, action: null, objectType: null, from: null, to: null };
  const filters: [string, Partial<LogFilter>][] = [
    ["nothing", {}],
    ["actor", { actor: "actor7" }],
    ["action", { action: "events.ingest" }],
    ["a rarer action", { action: "token.create" }],
    ["object type", { objectType: "token" }],
    ["an actor that isn't there", { actor: "actor70" }],
    ["an action that isn't there", { action: "token.lose" }],
    ["an object type that isn't there", { objectType: "lock" }],
    ["window", { from: FROM, to: TO }],
  ];
  test.each(filters)("by %s", async (_, some) => {
    await expectNoScan((tx) => pageOfLog(tx, { ...none, ...some }, page(null)));
  });
});

test.each([
  ["nothing", null, null],
  ["cloud", "c1", null],
  ["status", null, "failed"],
  ["a cloud that isn't there", "c9", null],
  ["a status that isn't there", null, "running"],
  ["a cloud's status that isn't there", "c1", "running"],
] as const)("a page of sync runs, by %s", async (_, cloud, status) => {
  await expectNoScan((tx) => pageOfRuns(tx, { cloud, status }, page(null)));
});

test.each([
  ["nothing", null, null, null],
  ["platform", "openstack", null, null],
  ["cloud", null, "c1", null],
  ["external id", null, null, "p77"],
  ["a platform that isn't there", "nova", null, null],
  ["a cloud that isn't there", null, "c9", null],
  ["an external id that isn't there", null, null, "q"],
])("a page of projects, by %s", async (_, platform, cloud, externalId) => {
  await expectNoScan((tx) => pageOfProjects(tx, { platform, cloud, externalId }, page(null)));
});

describe("deep in the walk", () => {
  const deep = at("2026-01-25T00:00:00Z");
  const id = "80000000-0000-4000-8000-000000000000";
  const reads: [string, (tx: Queryable) => Promise<ObjectPage>][] = [
    [
      "dead letters",
      (tx) => {
        const filter: DeadLetterFilter = { from: null, to: null, kind: "size_schema", cloud: null };
        return pageOfDeadLetters(tx, filter, "open", page({ receivedAt: deep, id }));
      },
    ],
    [
      "the audit log",
      (tx) => {
        const filter: LogFilter = {
          actor: null,
          action: "events.ingest",
          objectType: null,
          from: null,
          to: null,
        };
        return pageOfLog(tx, filter, page({ at: deep, id: "20000" }));
      },
    ],
    ["sync runs", (tx) => pageOfRuns(tx, { cloud: "c1", status: null }, page({ startedAt: deep, id }))],
    [
      "projects",
      (tx) =>
        pageOfProjects(
          tx,
          { platform: "openstack", cloud: null, externalId: null },
          page({ cloud: "c2", externalId: "p2" }),
        ),
    ],
  ];
  test.each(reads)("a page of %s", async (_, read) => {
    await expectNoScan(async (tx) => {
      const { items, last } = await read(tx);
      expect(JSON.parse(`[${items.toString()}]`)).toHaveLength(LIMIT);
      expect(last).not.toBeNull();
    });
  });
});

describe("where hardly anything was ever deleted", () => {
  let young: TestDatabase;
  beforeAll(async () => {
    young = await testDatabase();
    await young.db`
      INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud,
                                     resource_type, resource_id, platform, project_id, state, last_event_id,
                                     last_event_type, size)
      SELECT now(), CASE WHEN i = 7 THEN now() END, now(), now(), now(), 'c' || i % 4, 'type' || i % 10, 'r' || i,
             'openstack', 'p' || i % 100, CASE i WHEN 7 THEN 'deleted' WHEN 8 THEN 'error' ELSE 'on' END, 'e' || i,
             'x.t', '{}'
        FROM generate_series(1, ${ROWS}::int) i`;
    await young.db`VACUUM (ANALYZE) current_resources`;
  });
  afterAll(() => young.drop());

  test.each([
    ["the dead", { status: "deleted" }],
    ["the dead by their state", { status: "all", state: "deleted" }],
    ["a state that a single one is in", { state: "error" }],
    ["a state that a single one is in, the dead among them", { status: "all", state: "error" }],
  ] as [string, Partial<ResourceFilter>][])("a page of %s", async (_, some) => {
    await expectNoScan(async (tx) => {
      const { items } = await pageOfResources(tx, null, { ...NO_RESOURCES, ...some }, page(null));
      expect(JSON.parse(`[${items.toString()}]`)).toHaveLength(1);
    }, young);
  });
});

test("a change of state leaves a resource's row where it is", async () => {
  await database.db.begin(async (tx) => {
    for (let n = 0; n < 3; n++) {
      await tx`UPDATE current_resources SET state = ${`s${n}`}
                WHERE cloud = 'c1' AND resource_type = 'type1' AND resource_id = 'r1'`;
    }
    const [counted]: { updated: string; inPlace: string }[] = await tx`
      SELECT pg_stat_get_xact_tuples_updated('current_resources'::regclass)::text AS updated,
             pg_stat_get_xact_tuples_hot_updated('current_resources'::regclass)::text AS "inPlace"`;
    expect(counted).toEqual({ updated: "3", inPlace: "3" });
  });
});
