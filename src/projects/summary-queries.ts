/** What a project's summary reads. A project is its pair: another cloud's project of the same id is another one. */
import type { ProjectPair } from "../access/callers.ts";
import type { Queryable } from "../database/connection.ts";
import { formatInstant, instantFromMicros } from "../event/instant.ts";
import type { KeyedEvent, LocalKey } from "../projection/queries.ts";
import type { Place } from "../timeline/fold.ts";

/** A resource that was once a project's, and how many events it has, whoever owned it. */
export interface OwnedResource extends LocalKey {
  readonly events: number;
}

/** Whether a project has more events of its own than that. Counts no further. */
export async function hasMoreEvents(db: Queryable, pair: ProjectPair, most: number): Promise<boolean> {
  const rows: { n: number }[] = await db`
    SELECT count(*)::int AS n FROM (
      SELECT FROM events WHERE project_id = ${pair.projectId} AND cloud = ${pair.cloud} LIMIT ${most + 1}) counted`;
  return (rows[0]?.n ?? 0) > most;
}

/**
 * Every resource that was ever the project's, by (type, id), with the length of its whole history. Counts no further
 * than `most` + 1 events in all, so the lengths are right where they add up to `most` or less.
 */
export async function resourcesEverOf(
  db: Queryable,
  pair: ProjectPair,
  most: number,
): Promise<OwnedResource[]> {
  const rows: { rt: string; r: string; n: number }[] = await db`
    SELECT rt, r, count(*)::int AS n
      FROM (
        SELECT e.resource_type AS rt, e.resource_id AS r
          FROM (SELECT DISTINCT resource_type, resource_id FROM events
                 WHERE project_id = ${pair.projectId} AND cloud = ${pair.cloud}) own
          JOIN events e ON e.cloud = ${pair.cloud} AND e.resource_type = own.resource_type
            AND e.resource_id = own.resource_id
         LIMIT ${most + 1}) histories
     GROUP BY rt, r ORDER BY rt, r`;
  return rows.map(({ rt, r, n }) => ({ resourceType: rt, resourceId: r, events: n }));
}

/** How many living resources of each type the project has now. */
export async function livingResources(db: Queryable, pair: ProjectPair): Promise<Map<string, number>> {
  const rows: { rt: string; n: string }[] = await db`
    SELECT resource_type AS rt, count(*)::text AS n FROM current_resources
     WHERE project_id = ${pair.projectId} AND cloud = ${pair.cloud} AND deleted_at IS NULL
     GROUP BY resource_type`;
  return new Map(rows.map(({ rt, n }) => [rt, Number(n)]));
}

/**
 * The next events of the histories: resource by resource, each in fold order, without their payloads. Who owned a
 * resource, and when it lived, follows from the types of its events and the projects that they name; states and
 * sizes only divide that time, so they are left in the database, however large they are.
 * @param keys sorted by their bytes.
 * @param after the place that the first key's history is wanted from (exclusive); null for its beginning.
 */
export async function nextOfLives(
  db: Queryable,
  cloud: string,
  keys: readonly LocalKey[],
  after: Place | null,
  limit: number,
): Promise<KeyedEvent[]> {
  const beginning = { at: "-infinity", ra: "-infinity", id: "" };
  const place = after && {
    at: formatInstant(after.timestamp),
    ra: formatInstant(after.receivedAt),
    id: after.eventId,
  };
  const wanted = keys.map(({ resourceType, resourceId }, at) => ({
    rt: resourceType,
    r: resourceId,
    ...((at === 0 && place) || beginning),
  }));
  const rows: Record<"rt" | "r" | "at" | "ra" | "id" | "t" | "p" | "pr", string>[] = await db`
    SELECT e.resource_type AS rt, e.resource_id AS r,
           (extract(epoch FROM e.timestamp) * 1000000)::bigint::text AS at,
           (extract(epoch FROM e.received_at) * 1000000)::bigint::text AS ra,
           e.event_id AS id, e.event_type AS t, e.platform AS p, e.project_id AS pr
      FROM json_to_recordset(${JSON.stringify(wanted)}::text::json)
        AS k(rt text, r text, at timestamptz, ra timestamptz, id text)
      JOIN events e ON e.cloud = ${cloud} AND e.resource_type = k.rt AND e.resource_id = k.r
       AND e.timestamp >= k.at AND (e.timestamp, e.received_at, e.event_id) > (k.at, k.ra, k.id)
     ORDER BY e.resource_type, e.resource_id, e.timestamp, e.received_at, e.event_id
     LIMIT ${limit}`;
  return rows.map((row) => ({
    resourceType: row.rt,
    resourceId: row.r,
    event: {
      timestamp: instantFromMicros(row.at),
      receivedAt: instantFromMicros(row.ra),
      eventId: row.id,
      eventType: row.t,
      platform: row.p,
      projectId: row.pr,
      state: null,
      size: null,
    },
  }));
}
