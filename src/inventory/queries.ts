/**
 * The statements of the read side. Lists are paged by key: each page goes on behind the last row of the one
 * before, so that a walk costs the same at every depth and no insert shifts it.
 */
import type { Scope } from "../access/callers.ts";
import type { Queryable } from "../database/connection.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import type { ResourceKey, Source, StoredEvent } from "../event/event.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";

/** Which events a list holds; null filters nothing. */
export interface EventFilter {
  readonly cloud: string | null;
  readonly platform: string | null;
  readonly projectId: string | null;
  readonly resourceType: string | null;
  readonly resourceId: string | null;
  readonly eventType: string | null;
  readonly source: Source | null;
  /** Inclusive. */
  readonly from: Instant | null;
  /** Exclusive. */
  readonly to: Instant | null;
}

/** Which resources a list holds; null filters nothing. */
export interface ResourceFilter {
  readonly cloud: string | null;
  readonly platform: string | null;
  readonly projectId: string | null;
  readonly resourceType: string | null;
  readonly state: string | null;
  readonly status: "active" | "deleted" | "all";
}

/** A row of the projection, with its newest event's payload. */
export interface ResourceRow extends ResourceKey {
  readonly platform: string;
  readonly projectId: string;
  readonly state: string;
  /** JSON text. */
  readonly size: string;
  readonly createdAt: Instant | null;
  readonly deletedAt: Instant | null;
  readonly firstEventAt: Instant;
  readonly lastEventAt: Instant;
  readonly lastEventType: string;
  /** JSON text; null for an event without one. */
  readonly lastPayload: string | null;
}

/**
 * The first `limit` rows of a list. Under a scope, each of its projects is a branch of its own that is read in
 * the list's order no further than the page needs; one query over all of them would sort their whole history.
 * @returns null where the scope and the filters have no project in common.
 */
function pageOf(
  statement: Statement,
  list: { readonly table: string; readonly key: string; readonly conditions: readonly string[] },
  narrowed: { readonly scope: Scope; readonly cloud: string | null; readonly projectId: string | null },
  limit: number,
): string | null {
  const { table, key, conditions } = list;
  const { scope, cloud, projectId } = narrowed;
  const cut = statement.limit(limit);
  const branch = (own: readonly string[]) =>
    `SELECT * FROM ${table} ${where([...own, ...conditions])} ORDER BY ${key} ${cut}`;
  if (scope === null) return branch(statement.equals({ cloud, project_id: projectId }));
  const branches = scope
    .filter((own) => (cloud ?? own.cloud) === own.cloud && (projectId ?? own.projectId) === own.projectId)
    .map((own) => `(${branch(statement.equals({ cloud: own.cloud, project_id: own.projectId }))})`);
  if (branches.length === 0) return null;
  return `SELECT * FROM (${branches.join(" UNION ALL ")}) own ORDER BY ${key} ${cut}`;
}

const EVENT_COLUMNS = `
  e.event_id AS id, (extract(epoch FROM e.timestamp) * 1000000)::bigint::text AS at,
  (extract(epoch FROM e.received_at) * 1000000)::bigint::text AS received, e.event_type AS type, e.platform, e.cloud,
  e.resource_type, e.resource_id, e.project_id, e.source, e.payload::text AS payload`;

interface EventRow {
  readonly id: string;
  readonly at: string;
  readonly received: string;
  readonly type: string;
  readonly platform: string;
  readonly cloud: string;
  readonly resource_type: string;
  readonly resource_id: string;
  readonly project_id: string;
  readonly source: Source;
  readonly payload: string | null;
}

function storedEvent(row: EventRow): StoredEvent {
  return {
    eventId: row.id,
    timestamp: instantFromMicros(row.at),
    eventType: row.type,
    platform: row.platform,
    cloud: row.cloud,
    resourceType: row.resource_type,
    resourceId: row.resource_id,
    projectId: row.project_id,
    source: row.source,
    payload: row.payload,
    receivedAt: instantFromMicros(row.received),
  };
}

/** Where a page of events goes on. */
export type EventPosition = Pick<StoredEvent, "timestamp" | "eventId">;

/** One page of the events whose own (cloud, project_id) is in scope, by (timestamp, event_id). */
export async function pageOfEvents(
  db: Queryable,
  scope: Scope,
  filter: EventFilter,
  page: Page<EventPosition>,
): Promise<StoredEvent[]> {
  const statement = new Statement();
  const conditions = statement.equals({
    platform: filter.platform,
    resource_type: filter.resourceType,
    resource_id: filter.resourceId,
    event_type: filter.eventType,
    source: filter.source,
  });
  if (filter.from !== null) conditions.push(`timestamp >= ${statement.instant(filter.from)}`);
  if (filter.to !== null) conditions.push(`timestamp < ${statement.instant(filter.to)}`);
  if (page.after !== null) {
    const { timestamp, eventId } = page.after;
    conditions.push(`(timestamp, event_id) > (${statement.instant(timestamp)}, ${statement.value(eventId)})`);
  }
  const list = { table: "events", key: "timestamp, event_id", conditions };
  const found = pageOf(statement, list, { scope, ...filter }, page.limit);
  if (found === null) return [];
  const rows: EventRow[] = await db.unsafe(
    `SELECT ${EVENT_COLUMNS} FROM (${found}) e ORDER BY e.timestamp, e.event_id`,
    statement.values,
  );
  return rows.map(storedEvent);
}

/** How many events a resource has; `most` stands for that many or more. */
export async function countHistory(db: Queryable, key: ResourceKey, most: number): Promise<number> {
  const rows: { n: number }[] = await db`
    SELECT count(*)::int AS n FROM (
      SELECT FROM events
       WHERE cloud = ${key.cloud} AND resource_type = ${key.resourceType} AND resource_id = ${key.resourceId}
       LIMIT ${most}) counted`;
  return rows[0]?.n ?? 0;
}

/**
 * A resource's history in fold order: (timestamp, received_at, event_id).
 * @param projectIds only these projects' events; null is all of them.
 */
export async function historyOf(
  db: Queryable,
  key: ResourceKey,
  projectIds: readonly string[] | null,
): Promise<StoredEvent[]> {
  const statement = new Statement();
  const { cloud, resourceType, resourceId } = key;
  const conditions = statement.equals({ cloud, resource_type: resourceType, resource_id: resourceId });
  if (projectIds !== null) {
    const own = statement.value(JSON.stringify(projectIds));
    conditions.push(`project_id IN (SELECT json_array_elements_text(${own}::json))`);
  }
  const rows: EventRow[] = await db.unsafe(
    `SELECT ${EVENT_COLUMNS} FROM events e ${where(conditions)} ORDER BY e.timestamp, e.received_at, e.event_id`,
    statement.values,
  );
  return rows.map(storedEvent);
}

const RESOURCE_COLUMNS = `
  r.cloud, r.resource_type, r.resource_id, r.platform, r.project_id, r.state, r.size::text AS size,
  (extract(epoch FROM r.created_at) * 1000000)::bigint::text AS created,
  (extract(epoch FROM r.deleted_at) * 1000000)::bigint::text AS deleted,
  (extract(epoch FROM r.first_event_at) * 1000000)::bigint::text AS first,
  (extract(epoch FROM r.last_event_at) * 1000000)::bigint::text AS last,
  r.last_event_type, e.payload::text AS payload`;
/** The payload isn't kept twice: the row names its newest event. */
const NEWEST_EVENT = "LEFT JOIN events e ON e.timestamp = r.last_event_at AND e.event_id = r.last_event_id";

interface ProjectionRow {
  readonly cloud: string;
  readonly resource_type: string;
  readonly resource_id: string;
  readonly platform: string;
  readonly project_id: string;
  readonly state: string;
  readonly size: string;
  readonly created: string | null;
  readonly deleted: string | null;
  readonly first: string;
  readonly last: string;
  readonly last_event_type: string;
  readonly payload: string | null;
}

function resourceRow(row: ProjectionRow): ResourceRow {
  return {
    cloud: row.cloud,
    resourceType: row.resource_type,
    resourceId: row.resource_id,
    platform: row.platform,
    projectId: row.project_id,
    state: row.state,
    size: row.size,
    createdAt: row.created === null ? null : instantFromMicros(row.created),
    deletedAt: row.deleted === null ? null : instantFromMicros(row.deleted),
    firstEventAt: instantFromMicros(row.first),
    lastEventAt: instantFromMicros(row.last),
    lastEventType: row.last_event_type,
    lastPayload: row.payload,
  };
}

/** One page of the resources whose present (cloud, project_id) is in scope, by (cloud, type, id). */
export async function pageOfResources(
  db: Queryable,
  scope: Scope,
  filter: ResourceFilter,
  page: Page<ResourceKey>,
): Promise<ResourceRow[]> {
  const statement = new Statement();
  const { platform, resourceType, state, status } = filter;
  const conditions = statement.equals({ platform, resource_type: resourceType, state });
  if (status !== "all") conditions.push(`deleted_at IS ${status === "active" ? "NULL" : "NOT NULL"}`);
  if (page.after !== null) {
    const { cloud, resourceType: type, resourceId } = page.after;
    const position = [cloud, type, resourceId].map((text) => statement.value(text));
    conditions.push(`(cloud, resource_type, resource_id) > (${position.join(", ")})`);
  }
  const key = "cloud, resource_type, resource_id";
  const list = { table: "current_resources", key, conditions };
  const found = pageOf(statement, list, { scope, ...filter }, page.limit);
  if (found === null) return [];
  const rows: ProjectionRow[] = await db.unsafe(
    `SELECT ${RESOURCE_COLUMNS} FROM (${found}) r ${NEWEST_EVENT}
      ORDER BY r.cloud, r.resource_type, r.resource_id`,
    statement.values,
  );
  return rows.map(resourceRow);
}

/** The projection's row of one resource, whoever owns it, or null. */
export async function findResource(db: Queryable, key: ResourceKey): Promise<ResourceRow | null> {
  const statement = new Statement();
  const { cloud, resourceType, resourceId } = key;
  const conditions = statement.equals({
    "r.cloud": cloud,
    "r.resource_type": resourceType,
    "r.resource_id": resourceId,
  });
  const rows: ProjectionRow[] = await db.unsafe(
    `SELECT ${RESOURCE_COLUMNS} FROM current_resources r ${NEWEST_EVENT} ${where(conditions)}`,
    statement.values,
  );
  return rows[0] === undefined ? null : resourceRow(rows[0]);
}
