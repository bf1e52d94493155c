/** What the contestants without an API write a batch with, and how the tables get into their starting state. */
import type { Database, Queryable } from "../../src/database/connection.ts";
import { CLOUD, eventRows, type Item, knownItems, PLATFORM, resourceRows } from "./workload.ts";

/** The text of one batch for the two statements of the floor. */
export interface FloorBatch {
  readonly events: string;
  readonly rows: string;
}

export function floorBatch(items: readonly Item[]): FloorBatch {
  return { events: eventRows(items), rows: resourceRows(items) };
}

/** The floor: two plain statements in one transaction, nothing checked, nothing read back. */
export async function writeFloorBatch(db: Database, { events, rows }: FloorBatch): Promise<void> {
  await db.begin(async (tx) => {
    await insertEvents(tx, events);
    await upsertRows(tx, rows);
  });
}

async function insertEvents(db: Queryable, events: string): Promise<void> {
  await db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT e.at, now() + e.i * interval '1 microsecond', e.id, e.t, ${PLATFORM}, ${CLOUD}, e.rt, e.r, e.pr,
           'collector', e.pl
    FROM json_to_recordset(${events}::text::json)
      AS e(i int, at timestamptz, id text, t text, rt text, r text, pr text, pl jsonb)`;
}

async function upsertRows(db: Queryable, rows: string): Promise<void> {
  await db`
    INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud,
                                   resource_type, resource_id, platform, project_id, state, last_event_id,
                                   last_event_type, size)
    SELECT n.c, n.d, n.c, n.l, now() + n.i * interval '1 microsecond', ${CLOUD}, n.rt, n.r, ${PLATFORM}, n.pr, n.s,
           n.li, n.lt, n.z
    FROM json_to_recordset(${rows}::text::json)
      AS n(i int, rt text, r text, pr text, c timestamptz, d timestamptz, l timestamptz, li text, lt text, s text,
           z jsonb)
    ON CONFLICT (cloud, resource_type, resource_id) DO UPDATE
    SET created_at = excluded.created_at, deleted_at = excluded.deleted_at, first_event_at = excluded.first_event_at,
        last_event_at = excluded.last_event_at, last_received_at = excluded.last_received_at,
        platform = excluded.platform, project_id = excluded.project_id, state = excluded.state,
        last_event_id = excluded.last_event_id, last_event_type = excluded.last_event_type, size = excluded.size`;
}

/** One statement after the other for each item: insert the event; lock the row; read it; write it. */
export async function writeItemByItem(db: Database, items: readonly Item[]): Promise<void> {
  await db.begin(async (tx) => {
    for (const [i, { eventId, timestamp, eventType, payload, resource, after }] of items.entries()) {
      const { resourceType, resourceId, projectId, createdAt } = resource;
      await tx`
        INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type,
                            resource_id, project_id, source, payload)
        VALUES (${timestamp}::text::timestamptz, now() + ${i}::int * interval '1 microsecond', ${eventId},
                ${eventType}, ${PLATFORM}, ${CLOUD}, ${resourceType}, ${resourceId}, ${projectId}, 'collector',
                ${payload}::text::jsonb)`;
      await tx`
        SELECT 1 AS there FROM current_resources
        WHERE cloud = ${CLOUD} AND resource_type = ${resourceType} AND resource_id = ${resourceId}
        FOR UPDATE`;
      await tx`
        SELECT created_at::text, deleted_at::text, first_event_at::text, last_event_at::text,
               last_received_at::text, state, size::text, last_event_id
        FROM current_resources
        WHERE cloud = ${CLOUD} AND resource_type = ${resourceType} AND resource_id = ${resourceId}`;
      await tx`
        INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at,
                                       cloud, resource_type, resource_id, platform, project_id, state,
                                       last_event_id, last_event_type, size)
        VALUES (${createdAt}::text::timestamptz, ${after.deletedAt}::text::timestamptz,
                ${createdAt}::text::timestamptz, ${timestamp}::text::timestamptz,
                now() + ${i}::int * interval '1 microsecond', ${CLOUD}, ${resourceType}, ${resourceId}, ${PLATFORM},
                ${projectId}, ${after.state}, ${eventId}, ${eventType}, ${after.size}::text::jsonb)
        ON CONFLICT (cloud, resource_type, resource_id) DO UPDATE
        SET created_at = excluded.created_at, deleted_at = excluded.deleted_at,
            first_event_at = excluded.first_event_at, last_event_at = excluded.last_event_at,
            last_received_at = excluded.last_received_at, platform = excluded.platform,
            project_id = excluded.project_id, state = excluded.state, last_event_id = excluded.last_event_id,
            last_event_type = excluded.last_event_type, size = excluded.size`;
    }
  });
}

/** Keeps the starting state beside the tables: `count` resources, each with its create. */
export async function prepareKnown(db: Database, count: number): Promise<void> {
  const items = knownItems(count);
  await db`DROP SCHEMA IF EXISTS bench CASCADE`;
  await empty(db);
  for (let from = 0; from < items.length; from += 1000) {
    await writeFloorBatch(db, floorBatch(items.slice(from, from + 1000)));
  }
  await db`CREATE SCHEMA bench`;
  await db`CREATE TABLE bench.known_events AS TABLE events`;
  await db`CREATE TABLE bench.known_rows AS TABLE current_resources`;
}

/** Puts the tables into the starting state, with fresh statistics and nothing left to write back. */
export async function reset(db: Database): Promise<void> {
  await empty(db);
  await db`INSERT INTO events TABLE bench.known_events`;
  await db`INSERT INTO current_resources TABLE bench.known_rows`;
  await db`VACUUM (ANALYZE) events, current_resources`;
  await db`CHECKPOINT`;
}

async function empty(db: Database): Promise<void> {
  await db.begin(async (tx) => {
    // The record refuses to be emptied; only this throwaway database's superuser gets around its trigger.
    await tx`SET LOCAL session_replication_role = replica`;
    await tx`TRUNCATE events, current_resources, rejected_events, audit_log`;
  });
}

/** What the tables hold, but for when it was received: equal for contestants that did the same work. */
export async function digest(db: Database): Promise<string> {
  const [row]: { text: string }[] = await db`
    SELECT (SELECT count(*) || ' events ' || sum(hashtextextended((to_jsonb(e) - 'received_at')::text, 0))
            FROM events e)
        || ', ' ||
           (SELECT count(*) || ' rows ' || sum(hashtextextended((to_jsonb(c) - 'last_received_at')::text, 0))
            FROM current_resources c) AS text`;
  if (row === undefined) throw new Error("the digest gave no row");
  return row.text;
}
