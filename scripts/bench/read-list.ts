/** The reads that are measured: what is asked over HTTP, and the code that runs its statements. */
import type { Scope } from "../../src/access/callers.ts";
import { type LogFilter, pageOfLog } from "../../src/access/log.ts";
import type { Database, Queryable } from "../../src/database/connection.ts";
import type { Page } from "../../src/database/statement.ts";
import {
  type DeadLetterFilter,
  type DeadLetterStatus,
  pageOfDeadLetters,
} from "../../src/dead-letters/queries.ts";
import { formatInstant, type Instant, instantFromMicros, parseInstant } from "../../src/event/instant.ts";
import { encodeCursor } from "../../src/http/page.ts";
import {
  type EventFilter,
  type EventPosition,
  pageOfEvents,
  pageOfResources,
  type ResourceFilter,
} from "../../src/inventory/list-queries.ts";
import { countHistory, findResource, historyOf } from "../../src/inventory/queries.ts";
import { findProject, type ProjectFilter, pageOfProjects } from "../../src/projects/queries.ts";
import { summarize } from "../../src/projects/summary.ts";
import { pageOfRuns } from "../../src/reconcile/queries.ts";
import { type RESOURCE_DIMENSIONS, resourceGroupsIn } from "../../src/statistics/count.ts";
import { countEvents } from "../../src/statistics/queries.ts";
import { CLOUDS, LARGE_PROJECT, LATE, LONG, SMALL_PROJECT } from "./fleet.ts";

/** One read, both ways. */
export interface Read {
  readonly name: string;
  readonly path: string;
  /** The projects whose token reads; null for an admin's. */
  readonly scope: Scope;
  /** Runs the statements that the route runs, and nothing else. */
  run(tx: Queryable): Promise<unknown>;
}

function instant(text: string): Instant {
  const parsed = parseInstant(text);
  if (typeof parsed === "string") throw new Error(`${text} ${parsed}`);
  return parsed;
}

const ANY_EVENT: EventFilter = {
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
const ANY_RESOURCE: ResourceFilter = {
  cloud: null,
  platform: null,
  projectId: null,
  resourceType: null,
  state: null,
  status: "active",
};
const TWO_PROJECTS: Scope = [
  { cloud: CLOUDS[0], projectId: LARGE_PROJECT },
  { cloud: CLOUDS[1], projectId: SMALL_PROJECT },
];
/** Names of filters that aren't their parameter's with another spelling. */
function query(filter: object): string {
  return Object.entries(filter)
    .filter(([, value]) => value !== null)
    .map(([name, value]: [string, unknown]) => {
      const text =
        typeof value === "bigint" ? formatInstant(instantFromMicros(String(value))) : String(value);
      return `&${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}=${encodeURIComponent(text)}`;
    })
    .join("");
}

function events(
  name: string,
  limit: number,
  some: Partial<EventFilter>,
  { after = null, scope = null }: { readonly after?: EventPosition | null; readonly scope?: Scope } = {},
): Read {
  const filter = { ...ANY_EVENT, ...some };
  const page: Page<EventPosition> = { limit, after };
  const cursor =
    after === null ? "" : `&cursor=${encodeCursor("events", [String(after.timestamp), after.eventId])}`;
  return {
    name,
    path: `/api/v1/events?limit=${limit}${query(filter)}${cursor}`,
    scope,
    run: (tx) => pageOfEvents(tx, scope, filter, page),
  };
}

function resources(name: string, limit: number, some: Partial<ResourceFilter>, scope: Scope = null): Read {
  const filter = { ...ANY_RESOURCE, ...some };
  return {
    name,
    path: `/api/v1/resources?limit=${limit}${query(filter)}`,
    scope,
    run: (tx) => pageOfResources(tx, scope, filter, { limit, after: null }),
  };
}

const first = (limit: number) => ({ limit, after: null });

function projects(name: string, limit: number, some: Partial<ProjectFilter>): Read {
  const filter = { platform: null, cloud: null, externalId: null, ...some };
  return {
    name,
    path: `/api/v1/projects?limit=${limit}${query(filter)}`,
    scope: null,
    run: (tx) => pageOfProjects(tx, filter, first(limit)),
  };
}

function deadLetters(
  name: string,
  limit: number,
  some: Partial<DeadLetterFilter>,
  status: DeadLetterStatus = "open",
): Read {
  const { kind = null, ...filter } = { from: null, to: null, cloud: null, ...some };
  return {
    name,
    path: `/api/v1/rejected-events?limit=${limit}&status=${status}${query({ ...filter, reason: kind })}`,
    scope: null,
    run: (tx) => pageOfDeadLetters(tx, { ...filter, kind }, status, first(limit)),
  };
}

function log(name: string, limit: number, some: Partial<LogFilter>): Read {
  const filter = { actor: null, action: null, objectType: null, from: null, to: null, ...some };
  return {
    name,
    path: `/api/v1/audit-log?limit=${limit}${query(filter)}`,
    scope: null,
    run: (tx) => pageOfLog(tx, filter, first(limit)),
  };
}

function runs(
  name: string,
  limit: number,
  some: { readonly cloud?: string; readonly status?: "failed" },
): Read {
  const filter = { cloud: null, status: null, ...some };
  return {
    name,
    path: `/api/v1/sync-runs?limit=${limit}${query(filter)}`,
    scope: null,
    run: (tx) => pageOfRuns(tx, filter, first(limit)),
  };
}

async function summary(db: Database): Promise<Read> {
  const window = { from: instant("2026-06-01T00:00:00Z"), to: instant("2026-07-01T00:00:00Z") };
  const pair = { cloud: CLOUDS[0], projectId: LARGE_PROJECT };
  const [row]: { id: string }[] = await db`
    SELECT id::text AS id FROM projects WHERE cloud = ${pair.cloud} AND external_id = ${pair.projectId}`;
  const id = row?.id ?? "";
  return {
    name: "summary of a large project",
    path: `/api/v1/projects/${id}/summary?from=2026-06-01T00:00:00Z&to=2026-07-01T00:00:00Z`,
    scope: null,
    async run(tx) {
      await findProject(tx, id);
      await summarize(tx, pair, window, window.to);
    },
  };
}

function lifecycle(name: string, key: { cloud: string; resourceType: string; resourceId: string }): Read {
  return {
    name,
    path: `/api/v1/resources/${key.cloud}/${key.resourceType}/${key.resourceId}/lifecycle`,
    scope: null,
    async run(tx) {
      await findResource(tx, key);
      await countHistory(tx, key, 10_001);
      await historyOf(tx, key, null);
    },
  };
}

/** A position nine tenths into the events. */
async function deepPosition(db: Database): Promise<EventPosition> {
  const [row]: { at: string; id: string }[] = await db`
    SELECT (extract(epoch FROM timestamp) * 1000000)::bigint::text AS at, event_id AS id
      FROM events ORDER BY timestamp, event_id OFFSET 900000 LIMIT 1`;
  if (row === undefined) throw new Error("the fleet is too small");
  return { timestamp: instantFromMicros(row.at), eventId: row.id };
}

async function someResource(db: Database) {
  const [row]: { cloud: string; resourceType: string; resourceId: string }[] = await db`
    SELECT cloud, resource_type AS "resourceType", resource_id AS "resourceId"
      FROM current_resources ORDER BY resource_id OFFSET 50000 LIMIT 1`;
  if (row === undefined) throw new Error("the fleet is too small");
  return row;
}

/** Pages of 1000, and lifecycles. */
export async function listedReads(db: Database): Promise<Read[]> {
  return [
    events("events", 1000, {}),
    events("events, deep in the walk", 1000, {}, { after: await deepPosition(db) }),
    events("events of a large project", 1000, { projectId: LARGE_PROJECT }),
    events("events of a type", 1000, { eventType: "compute.volume.resize.end" }),
    resources("resources", 1000, {}),
    resources("resources of a large project", 1000, { projectId: LARGE_PROJECT, status: "all" }),
    projects("projects", 1000, {}),
    deadLetters("dead letters", 1000, {}),
    log("audit log", 1000, {}),
    runs("sync runs", 1000, {}),
    lifecycle("lifecycle of 10 events", await someResource(db)),
    lifecycle("lifecycle of 1,000 events", LONG),
  ];
}

function fleet(
  name: string,
  groupBy: readonly (typeof RESOURCE_DIMENSIONS)[number][],
  at: string | null,
): Read {
  const instantOf = at === null ? null : instant(at);
  return {
    name,
    path: `/api/v1/stats/resources?group_by=${groupBy.join(",")}${at === null ? "" : `&at=${at}`}`,
    scope: null,
    run: (tx) => resourceGroupsIn(tx, null, { groupBy, status: "active", at: instantOf }),
  };
}

/** Counts: never paged, so that what they read grows with what there is. */
export async function unpagedReads(db: Database): Promise<Read[]> {
  const month = { from: instant("2026-06-01T00:00:00Z"), to: instant("2026-07-01T00:00:00Z") };
  return [
    fleet("resources by state", ["cloud", "resource_type", "state"], null),
    fleet("resources by project", ["cloud", "resource_type", "project_id"], null),
    fleet("resources by state, a week ago", ["cloud", "resource_type", "state"], "2026-11-24T00:00:00Z"),
    fleet(
      "resources by state, three months ago",
      ["cloud", "resource_type", "state"],
      "2026-09-01T00:00:00Z",
    ),
    fleet("resources by state, half a year ago", ["cloud", "resource_type", "state"], "2026-06-01T00:00:00Z"),
    {
      name: "events of a month by day",
      path: "/api/v1/stats/events?group_by=cloud,event_type&from=2026-06-01T00:00:00Z&to=2026-07-01T00:00:00Z&interval=1d",
      scope: null,
      run: (tx) => countEvents(tx, null, { ...month, interval: "1d" }, 50_001),
    },
    await summary(db),
  ];
}

/** A page of 100 by each filter there is, as common and as rare as the fleet has it. */
export async function pagesAtHundred(db: Database): Promise<Read[]> {
  const key = await someResource(db);
  const window = { from: instant("2026-06-01T00:00:00Z"), to: instant("2026-07-01T00:00:00Z") };
  return [
    events("events", 100, {}),
    events("events, deep in the walk", 100, {}, { after: await deepPosition(db) }),
    events("events of a token's two projects", 100, {}, { scope: TWO_PROJECTS }),
    events("events of a large project", 100, { projectId: LARGE_PROJECT }),
    events("events by a cloud that came late", 100, { cloud: LATE.cloud }),
    events("events by its platform", 100, { platform: LATE.platform }),
    events("events by its resource_type", 100, { resourceType: LATE.resourceType }),
    events("events by cloud and resource_type", 100, { cloud: CLOUDS[1], resourceType: "image" }),
    events("events by a cloud and a resource_type it hasn't", 100, {
      cloud: CLOUDS[1],
      resourceType: LATE.resourceType,
    }),
    events("events by cloud and source", 100, { cloud: CLOUDS[1], source: "reconciliation" }),
    events("events by a cloud that came late, and source", 100, {
      cloud: LATE.cloud,
      source: "reconciliation",
    }),
    events("events by cloud", 100, { cloud: CLOUDS[1] }),
    events("events by an unknown cloud", 100, { cloud: "nowhere" }),
    events("events by platform", 100, { platform: "openstack" }),
    events("events by an unknown platform", 100, { platform: "nova" }),
    events("events by project", 100, { projectId: SMALL_PROJECT }),
    events("events by resource_type", 100, { resourceType: "image" }),
    events("events by an unknown resource_type", 100, { resourceType: "tape" }),
    events("events by resource_id", 100, { resourceId: key.resourceId }),
    events("events by cloud, type and id", 100, key),
    events("events by event_type", 100, { eventType: "compute.image.delete.end" }),
    events("events by an unknown event_type", 100, { eventType: "compute.image.shelve.end" }),
    events("events by source", 100, { source: "reconciliation" }),
    events("events by from and to", 100, window),
    resources("resources", 100, {}),
    resources("resources of a token's two projects", 100, {}, TWO_PROJECTS),
    resources("resources of a large project", 100, { projectId: LARGE_PROJECT }),
    resources("resources by a cloud that came late", 100, { cloud: LATE.cloud }),
    resources("resources by its platform", 100, { platform: LATE.platform }),
    resources("resources by its state", 100, { state: "poweredOn" }),
    resources("resources by cloud", 100, { cloud: CLOUDS[1] }),
    resources("resources by platform", 100, { platform: "openstack" }),
    resources("resources by project", 100, { projectId: SMALL_PROJECT }),
    resources("resources by resource_type", 100, { resourceType: "volume" }),
    resources("resources by an unknown resource_type", 100, { resourceType: "tape" }),
    resources("resources by state", 100, { state: "shutoff" }),
    resources("resources by an unknown state", 100, { state: "lost" }),
    resources("resources by a state of the dead", 100, { state: "deleted" }),
    resources("resources by an unknown platform", 100, { platform: "nova" }),
    resources("deleted resources", 100, { status: "deleted" }),
    projects("projects", 100, {}),
    projects("projects by cloud", 100, { cloud: CLOUDS[1] }),
    projects("projects by an unknown platform", 100, { platform: "nova" }),
    projects("projects by external_id", 100, { externalId: SMALL_PROJECT }),
    deadLetters("dead letters", 100, {}),
    deadLetters("resolved dead letters", 100, {}, "resolved"),
    deadLetters("dead letters by another reason", 100, { kind: "schema" }),
    deadLetters("dead letters by an unknown cloud", 100, { cloud: "nowhere" }),
    log("audit log", 100, {}),
    log("audit log by actor", 100, { actor: "collector-7" }),
    log("audit log by action", 100, { action: "project.create" }),
    log("audit log by an unknown kind of object", 100, { objectType: "lock" }),
    runs("sync runs", 100, {}),
    runs("sync runs by cloud", 100, { cloud: CLOUDS[0] }),
    runs("sync runs that failed", 100, { status: "failed" }),
  ];
}
