/** What the checker reads. Nothing here writes. */
import type { Queryable } from "../database/connection.ts";
import type { Source } from "../event/event.ts";
import { formatInstant, type Instant, instantFromMicros } from "../event/instant.ts";
import { quote } from "../event/json-text.ts";
import type { KeyedRow, LocalKey } from "../projection/queries.ts";
import { compareBytes } from "../timeline/fold.ts";

/** The next cloud that events or rows name, in byte order; null behind the last one. */
export async function nextCloud(db: Queryable, after: string): Promise<string | null> {
  const [row]: { e: string | null; r: string | null }[] = await db`
    SELECT (SELECT min(cloud) FROM events WHERE cloud > ${after}) AS e,
           (SELECT min(cloud) FROM current_resources WHERE cloud > ${after}) AS r`;
  const [first = null] = [row?.e ?? null, row?.r ?? null]
    .filter((cloud) => cloud !== null)
    .sort(compareBytes);
  return first;
}

/** The next rows' keys of a cloud, in key order. */
export async function nextRowKeys(
  db: Queryable,
  cloud: string,
  after: LocalKey,
  limit: number,
): Promise<LocalKey[]> {
  const rows: { rt: string; r: string }[] = await db`
    SELECT resource_type AS rt, resource_id AS r
    FROM current_resources
    WHERE cloud = ${cloud} AND (resource_type, resource_id) > (${after.resourceType}, ${after.resourceId})
    ORDER BY resource_type, resource_id
    LIMIT ${limit}`;
  return rows.map(({ rt, r }) => ({ resourceType: rt, resourceId: r }));
}

/**
 * The next keys of a cloud that events name, in key order. Each is found by a step in the index, however long its
 * history. Naming the one cloud is also what lets a distributed table take the steps.
 */
export async function nextHistoryKeys(
  db: Queryable,
  cloud: string,
  after: LocalKey,
  limit: number,
): Promise<LocalKey[]> {
  const rows: { rt: string; r: string }[] = await db`
    WITH RECURSIVE keys(rt, r) AS (
      (SELECT resource_type, resource_id FROM events
       WHERE cloud = ${cloud} AND (resource_type, resource_id) > (${after.resourceType}, ${after.resourceId})
       ORDER BY resource_type, resource_id LIMIT 1)
      UNION ALL
      SELECT e.resource_type, e.resource_id
      FROM keys CROSS JOIN LATERAL (
        SELECT resource_type, resource_id FROM events
        WHERE cloud = ${cloud} AND (resource_type, resource_id) > (keys.rt, keys.r)
        ORDER BY resource_type, resource_id LIMIT 1) e
    )
    SELECT rt, r FROM keys LIMIT ${limit}`;
  return rows.map(({ rt, r }) => ({ resourceType: rt, resourceId: r }));
}

/** A row as it stands, whatever was done to it. */
export interface CheckedRow extends KeyedRow {
  /** What kind of JSON its size is. */
  readonly sizeKind: string;
  /** False: one of its instants is infinite, and shows here as the year 1970. */
  readonly finite: boolean;
}

/** The rows of the keys, as far as there are any. */
export async function readRows(
  db: Queryable,
  cloud: string,
  keys: readonly LocalKey[],
): Promise<CheckedRow[]> {
  type Row = Record<"rt" | "r" | "p" | "pr" | "s" | "z" | "k" | "f" | "l" | "lr" | "li" | "lt", string> &
    Record<"c" | "d", string | null> & { finite: boolean };
  const rows: Row[] = await db`
    SELECT c.resource_type AS rt, c.resource_id AS r, c.platform AS p, c.project_id AS pr, c.state AS s,
           c.size::text AS z, jsonb_typeof(c.size) AS k, f.finite,
           (extract(epoch FROM CASE WHEN f.finite THEN c.created_at END) * 1000000)::bigint::text AS c,
           (extract(epoch FROM CASE WHEN f.finite THEN c.deleted_at END) * 1000000)::bigint::text AS d,
           (extract(epoch FROM CASE WHEN f.finite THEN c.first_event_at ELSE 'epoch' END) * 1000000)::bigint::text AS f,
           (extract(epoch FROM CASE WHEN f.finite THEN c.last_event_at ELSE 'epoch' END) * 1000000)::bigint::text AS l,
           (extract(epoch FROM CASE WHEN f.finite THEN c.last_received_at ELSE 'epoch' END) * 1000000)::bigint::text AS lr,
           c.last_event_id AS li, c.last_event_type AS lt
    FROM json_to_recordset(${keysJson(keys)}::text::json) AS k(rt text, r text)
    JOIN current_resources c ON c.cloud = ${cloud} AND c.resource_type = k.rt AND c.resource_id = k.r
    CROSS JOIN LATERAL (
      SELECT bool_and(isfinite(i)) AS finite
      FROM unnest(ARRAY[c.created_at, c.deleted_at, c.first_event_at, c.last_event_at, c.last_received_at]) AS i) f`;
  return rows.map((row) => ({
    resourceType: row.rt,
    resourceId: row.r,
    sizeKind: row.k,
    finite: row.finite,
    row: {
      platform: row.p,
      projectId: row.pr,
      state: row.s,
      size: row.z,
      createdAt: instantOrNull(row.c),
      deletedAt: instantOrNull(row.d),
      firstEventAt: instantFromMicros(row.f),
      lastEventAt: instantFromMicros(row.l),
      lastReceivedAt: instantFromMicros(row.lr),
      lastEventId: row.li,
      lastEventType: row.lt,
    },
  }));
}

function instantOrNull(micros: string | null): Instant | null {
  return micros === null ? null : instantFromMicros(micros);
}

/** The keys as the text of a JSON array. */
function keysJson(keys: readonly LocalKey[]): string {
  return `[${keys.map(({ resourceType, resourceId }) => `{"rt":${quote(resourceType)},"r":${quote(resourceId)}}`).join(",")}]`;
}

/** An event that no pipeline can have stored. */
export interface MisshapenEvent extends LocalKey {
  readonly eventId: string;
  /** In words. */
  readonly what: string;
  /** False: one of its instants is infinite, so that its history can't be folded. */
  readonly finite: boolean;
}

/**
 * The events of the keys whose payload is no object (only a delete may have none), whose size is no object, or whose
 * instants are infinite.
 */
export async function misshapenEvents(
  db: Queryable,
  cloud: string,
  keys: readonly LocalKey[],
): Promise<MisshapenEvent[]> {
  const rows: { rt: string; r: string; id: string; k: string | null; z: string | null; finite: boolean }[] =
    await db`
    SELECT e.resource_type AS rt, e.resource_id AS r, e.event_id AS id,
           jsonb_typeof(e.payload) AS k, jsonb_typeof(e.payload -> 'size') AS z,
           isfinite(e.timestamp) AND isfinite(e.received_at) AS finite
    FROM json_to_recordset(${keysJson(keys)}::text::json) AS k(rt text, r text)
    JOIN events e ON e.cloud = ${cloud} AND e.resource_type = k.rt AND e.resource_id = k.r
    WHERE jsonb_typeof(e.payload) <> 'object'
       OR (e.payload IS NULL AND ('.' || e.event_type || '.' NOT LIKE '%.delete.%'
                                  OR '.' || e.event_type || '.' LIKE '%.create.%'))
       OR jsonb_typeof(e.payload -> 'size') NOT IN ('object', 'null')
       OR NOT isfinite(e.timestamp) OR NOT isfinite(e.received_at)
    ORDER BY e.resource_type, e.resource_id, e.timestamp, e.event_id`;
  return rows.map(({ rt, r, id, k, z, finite }) => ({
    resourceType: rt,
    resourceId: r,
    eventId: id,
    finite,
    what: !finite
      ? "has an infinite instant"
      : k === null
        ? "has no payload"
        : k === "object"
          ? `has a size that is of the JSON type ${z ?? "null"}`
          : `has a payload that is of the JSON type ${k}`,
  }));
}

/** The snapshot's own instant. */
export async function snapshotInstant(db: Queryable): Promise<Instant> {
  const [row]: { at: string }[] = await db`SELECT (extract(epoch FROM now()) * 1000000)::bigint::text AS at`;
  if (row === undefined) throw new Error("a SELECT without FROM gave no row");
  return instantFromMicros(row.at);
}

/** The next project id that events name, in byte order; null behind the last one. A step in the index, not a scan. */
export async function nextProjectId(db: Queryable, after: string): Promise<string | null> {
  const [row]: { p: string }[] = await db`
    SELECT project_id AS p FROM events WHERE project_id > ${after} ORDER BY project_id LIMIT 1`;
  return row?.p ?? null;
}

/** The clouds in which a project id has events. */
export async function cloudsOfProject(db: Queryable, projectId: string): Promise<string[]> {
  const rows: { c: string }[] = await db`
    SELECT DISTINCT cloud AS c FROM events WHERE project_id = ${projectId} ORDER BY 1`;
  return rows.map(({ c }) => c);
}

/** Every resource that an event of the project names, by (type, id). */
export async function keysOfProject(
  db: Queryable,
  { cloud, projectId }: { readonly cloud: string; readonly projectId: string },
): Promise<LocalKey[]> {
  const rows: { rt: string; r: string }[] = await db`
    SELECT DISTINCT resource_type AS rt, resource_id AS r FROM events
     WHERE project_id = ${projectId} AND cloud = ${cloud} ORDER BY 1, 2`;
  return rows.map(({ rt, r }) => ({ resourceType: rt, resourceId: r }));
}

/** How long a project had the resources of a type, in microseconds. */
export interface OwnedMicros {
  readonly resourceType: string;
  readonly micros: bigint;
}

/**
 * How long the project had the given resources, up to now, by type. The rule is said here once more, in SQL: whoever an
 * event names owns the resource up to its next event, unless it is dead in between; and it is dead if the last create or
 * delete was a delete, alive if it was a create, or if there was none yet.
 */
export async function ownedMicros(
  db: Queryable,
  { cloud, projectId }: { readonly cloud: string; readonly projectId: string },
  keys: readonly LocalKey[],
  now: Instant,
): Promise<OwnedMicros[]> {
  const rows: { rt: string; micros: string }[] = await db`
    WITH history AS (
      SELECT e.resource_type AS rt, e.resource_id AS r, e.project_id AS p,
             e.timestamp, e.received_at, e.event_id,
             (extract(epoch FROM e.timestamp) * 1000000)::bigint AS at,
             CASE WHEN '.' || e.event_type || '.' LIKE '%.create.%' THEN true
                  WHEN '.' || e.event_type || '.' LIKE '%.delete.%' THEN false END AS begins
      FROM json_to_recordset(${keysJson(keys)}::text::json) AS k(rt text, r text)
      JOIN events e ON e.cloud = ${cloud} AND e.resource_type = k.rt AND e.resource_id = k.r
    ), spans AS (
      SELECT rt, r, p, at, lead(at) OVER history AS until, begins, count(begins) OVER history AS turn
      FROM history
      WINDOW history AS (PARTITION BY rt, r ORDER BY timestamp, received_at, event_id)
    ), told AS (
      SELECT rt, p, at, until, coalesce(bool_or(begins) OVER (PARTITION BY rt, r, turn), true) AS alive
      FROM spans
    )
    SELECT rt, sum(greatest(least(until, ${String(now)}::text::bigint) - at, 0))::text AS micros
    FROM told WHERE alive AND p = ${projectId} GROUP BY rt`;
  return rows.map(({ rt, micros }) => ({ resourceType: rt, micros: BigInt(micros) }));
}

/** A retry takes its letters' positions in a page, of which some may be resolved already: no more than that. */
const LETTERS_A_RETRY = 1_000;

/** What one row of the audit log says that a transaction stored. */
export interface StoredByAudit {
  readonly id: string;
  readonly at: Instant;
  readonly kind: "ingest" | "retry" | "scope_violation";
  readonly source: Source | null;
  /** Events that became rows. */
  readonly accepted: number;
  /** Items that were refused, as an ingest tells. */
  readonly rejected: number;
  /** Positions that it took, at most: what it stored arrived within so many microseconds. */
  readonly items: number;
}

/** The next rows of the audit log that tell of stored events or dead letters, from an instant on, by (at, id). */
export async function nextStoredByAudit(
  db: Queryable,
  from: Instant | null,
  limit: number,
): Promise<StoredByAudit[]> {
  const rows: {
    id: string;
    at: string;
    kind: StoredByAudit["kind"];
    source: Source | null;
    accepted: number;
    rejected: number;
    items: number;
  }[] = await db`
    SELECT a.id::text AS id, (extract(epoch FROM a.at) * 1000000)::bigint::text AS at,
           CASE a.action WHEN 'events.ingest' THEN 'ingest' WHEN 'rejected_events.retry' THEN 'retry'
                         ELSE 'scope_violation' END AS kind,
           a.details ->> 'source' AS source,
           coalesce((a.details ->> 'accepted')::int, 0) AS accepted,
           CASE WHEN a.action = 'events.ingest' THEN coalesce((a.details ->> 'rejected')::int, 0) ELSE 0 END AS rejected,
           CASE a.action
             WHEN 'events.ingest' THEN coalesce((a.details ->> 'accepted')::int, 0)
               + coalesce((a.details ->> 'duplicates')::int, 0) + coalesce((a.details ->> 'rejected')::int, 0)
             WHEN 'rejected_events.retry' THEN ${LETTERS_A_RETRY}::int
             ELSE 0
           END AS items
    FROM audit_log a
    WHERE a.action IN ('events.ingest', 'rejected_events.retry', 'events.scope_violation')
      AND a.at >= ${from === null ? "-infinity" : formatInstant(from)}::text::timestamptz
    ORDER BY a.at, a.id
    LIMIT ${limit}`;
  return rows.map(({ at, ...row }) => ({ ...row, at: instantFromMicros(at) }));
}

/** How many rows lie in a span of received_at; `span` numbers the spans given, from 0. */
export interface ArrivalCount {
  readonly span: number;
  readonly source: Source;
  readonly count: number;
}

/**
 * Counts events, or dead letters, by the spans of received_at that begin at the given instants, each up to the next
 * one; before the first where `fromBeginning`; the last one up to `end` (null: without an end).
 */
export async function countArrivals(
  db: Queryable,
  table: "events" | "rejected_events",
  starts: readonly Instant[],
  end: Instant | null,
  fromBeginning: boolean,
): Promise<ArrivalCount[]> {
  const bounds = `{${starts.map((start) => `"${formatInstant(start)}"`).join(",")}}`;
  const first = starts[0];
  const rows: { span: number; source: Source; n: string }[] = await db.unsafe(
    // The bounds are read once: in the place of a parameter their text would be read anew for every row.
    `WITH bounds AS MATERIALIZED (SELECT $1::text::timestamptz[] AS starts)
     SELECT greatest(width_bucket(received_at, bounds.starts), 1) - 1 AS span, source, count(*)::text AS n
       FROM ${table} CROSS JOIN bounds
      WHERE received_at >= $2::text::timestamptz AND received_at < $3::text::timestamptz
      GROUP BY 1, 2`,
    [
      bounds,
      fromBeginning || first === undefined ? "-infinity" : formatInstant(first),
      end === null ? "infinity" : formatInstant(end),
    ],
  );
  return rows.map(({ span, source, n }) => ({ span, source, count: Number(n) }));
}

/** How much there is to check, for a progress bar: about. */
export async function estimate(db: Queryable): Promise<{ resources: number; entries: number }> {
  const [row]: { resources: string; entries: string }[] = await db`
    SELECT (SELECT count(*) FROM current_resources)::text AS resources,
           (SELECT count(*) FROM audit_log
             WHERE action IN ('events.ingest', 'rejected_events.retry', 'events.scope_violation'))::text AS entries`;
  return { resources: Number(row?.resources ?? 0), entries: Number(row?.entries ?? 0) };
}
