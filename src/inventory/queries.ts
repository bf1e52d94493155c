/** The statements over one resource: its row, and its history. */
import type { Queryable } from "../database/connection.ts";
import { Statement, where } from "../database/statement.ts";
import type { ResourceKey, Source, StoredEvent } from "../event/event.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";

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

/** How many events a resource has; `most` stands for that many or more. */
export async function countHistory(db: Queryable, key: ResourceKey, most: number): Promise<number> {
  const rows: { n: number }[] = await db`
    SELECT count(*)::int AS n FROM (
      SELECT FROM events
       WHERE cloud = ${key.cloud} AND resource_type = ${key.resourceType} AND resource_id = ${key.resourceId}
       LIMIT ${most}) counted`;
  return rows[0]?.n ?? 0;
}

/** How many bytes the payloads of a resource's events have as text. */
export async function payloadBytes(db: Queryable, key: ResourceKey): Promise<number> {
  const rows: { bytes: string }[] = await db`
    SELECT coalesce(sum(octet_length(payload::text)), 0)::text AS bytes FROM events
     WHERE cloud = ${key.cloud} AND resource_type = ${key.resourceType} AND resource_id = ${key.resourceId}`;
  return Number(rows[0]?.bytes ?? 0);
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
const NEWEST_EVENT =
  "LEFT JOIN events e ON e.cloud = r.cloud AND e.timestamp = r.last_event_at AND e.event_id = r.last_event_id";

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
