/** What a project's summary reads. A project is its pair: another cloud's project of the same id is another one. */
import type { ProjectPair } from "../access/callers.ts";
import type { Queryable } from "../database/connection.ts";
import type { LocalKey } from "../projection/queries.ts";

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
