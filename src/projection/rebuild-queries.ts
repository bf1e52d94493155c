/** The rebuild's statements. All but the looks for the next type and for all states name the cloud, and are bounded. */
import type { Queryable, Transaction } from "../database/connection.ts";
import { formatInstant } from "../event/instant.ts";
import type { Place } from "../timeline/fold.ts";
import { EVENTS_A_PAGE, type FoldEventRow, foldEventOfRow, type KeyedEvent } from "./histories.ts";
import { type KeyedRow, keyedRowOf, type StoredRow } from "./queries.ts";

/** Which resources a rebuild replays; null filters nothing. */
export interface RebuildFilter {
  readonly cloud: string | null;
  readonly resourceType: string | null;
}

/** The resources of one type in one cloud. */
export interface CloudType {
  readonly cloud: string;
  readonly resourceType: string;
}

/** The next type that any cloud has events or rows of; null behind the last. A step in an index each, not a scan. */
export async function nextType(db: Queryable, after: CloudType): Promise<CloudType | null> {
  const [row]: { c: string; rt: string }[] = await db`
    SELECT cloud AS c, resource_type AS rt
    FROM ((SELECT cloud, resource_type FROM events
           WHERE (cloud, resource_type) > (${after.cloud}, ${after.resourceType})
           ORDER BY cloud, resource_type LIMIT 1)
          UNION ALL
          (SELECT cloud, resource_type FROM current_resources
           WHERE (cloud, resource_type) > (${after.cloud}, ${after.resourceType})
           ORDER BY cloud, resource_type LIMIT 1)) AS next
    ORDER BY cloud, resource_type
    LIMIT 1`;
  return row === undefined ? null : { cloud: row.c, resourceType: row.rt };
}

/** Resources of one type: those whose ids are after `after`, up to and with `upTo`. */
export interface Portion extends CloudType {
  readonly after: string;
  readonly upTo: string;
}

/** The id up to which the next so many resources go that have events, a row or both; null where there are none. */
export async function endOfPortion(
  db: Queryable,
  { cloud, resourceType }: CloudType,
  after: string,
  resources: number,
): Promise<string | null> {
  const [row]: { r: string | null }[] = await db`
    SELECT max(resource_id) AS r
    FROM (SELECT resource_id
          FROM ((SELECT DISTINCT resource_id FROM events
                 WHERE cloud = ${cloud} AND resource_type = ${resourceType} AND resource_id > ${after}
                 ORDER BY resource_id LIMIT ${resources})
                UNION
                (SELECT resource_id FROM current_resources
                 WHERE cloud = ${cloud} AND resource_type = ${resourceType} AND resource_id > ${after}
                 ORDER BY resource_id LIMIT ${resources})) AS next
          ORDER BY resource_id
          LIMIT ${resources}) AS portion`;
  return row?.r ?? null;
}

/** The portion's rows. */
export async function rowsOfPortion(db: Queryable, portion: Portion): Promise<KeyedRow[]> {
  const { cloud, resourceType, after, upTo } = portion;
  const rows: StoredRow[] = await db`
    SELECT resource_type AS rt, resource_id AS r, platform AS p, project_id AS pr, state AS s, size::text AS z,
           (extract(epoch FROM created_at) * 1000000)::bigint::text AS c,
           (extract(epoch FROM deleted_at) * 1000000)::bigint::text AS d,
           (extract(epoch FROM first_event_at) * 1000000)::bigint::text AS f,
           (extract(epoch FROM last_event_at) * 1000000)::bigint::text AS l,
           (extract(epoch FROM last_received_at) * 1000000)::bigint::text AS lr,
           last_event_id AS li, last_event_type AS lt
    FROM current_resources
    WHERE cloud = ${cloud} AND resource_type = ${resourceType} AND resource_id > ${after} AND resource_id <= ${upTo}`;
  return rows.map(keyedRowOf);
}

/** The portion's histories, resource by resource, each in fold order; one long history may go on over pages. */
export async function* pagesOfPortion(
  db: Queryable,
  portion: Portion,
): AsyncGenerator<readonly KeyedEvent[]> {
  let reached: { readonly resourceId: string; readonly event: Place } | undefined;
  for (;;) {
    const page = await nextPage(db, portion, reached);
    yield page;
    reached = page.at(-1);
    if (page.length < EVENTS_A_PAGE) return;
  }
}

async function nextPage(
  db: Queryable,
  { cloud, resourceType, after, upTo }: Portion,
  reached: { readonly resourceId: string; readonly event: Place } | undefined,
): Promise<KeyedEvent[]> {
  const from = reached?.resourceId ?? after;
  // Behind every event of `from` where its history is not gone on with.
  const at = reached === undefined ? "infinity" : formatInstant(reached.event.timestamp);
  const ra = reached === undefined ? "infinity" : formatInstant(reached.event.receivedAt);
  const rows: (FoldEventRow & { r: string })[] = await db`
    SELECT resource_id AS r,
           (extract(epoch FROM timestamp) * 1000000)::bigint::text AS at,
           (extract(epoch FROM received_at) * 1000000)::bigint::text AS ra,
           event_id AS id, event_type AS t, platform AS p, project_id AS pr, payload ->> 'state' AS s,
           nullif(payload -> 'size', 'null')::text AS z
    FROM events
    WHERE cloud = ${cloud} AND resource_type = ${resourceType} AND resource_id <= ${upTo}
      AND (resource_id, timestamp) >= (${from}, ${at}::text::timestamptz)
      AND (resource_id, timestamp, received_at, event_id)
          > (${from}, ${at}::text::timestamptz, ${ra}::text::timestamptz, ${reached?.event.eventId ?? ""})
    ORDER BY resource_id, timestamp, received_at, event_id
    LIMIT ${EVENTS_A_PAGE}`;
  return rows.map((row) => ({ resourceType, resourceId: row.r, event: foldEventOfRow(row) }));
}

/** Has the database look through all rows for where which state is, which lists by a state rely on: one pass, however long. */
export async function keepAllLivingStates(tx: Transaction): Promise<void> {
  await tx`SELECT set_config('statement_timeout', '0', true)`;
  await tx`SELECT keep_all_living_states()`;
}

/** How many rows a rebuild will find, for a progress bar. */
export async function countRows(db: Queryable, filter: RebuildFilter): Promise<number> {
  const [row]: { n: number }[] = await db`
    SELECT count(*)::int AS n FROM current_resources
    WHERE (${filter.cloud}::text IS NULL OR cloud = ${filter.cloud}::text)
      AND (${filter.resourceType}::text IS NULL OR resource_type = ${filter.resourceType}::text)`;
  return row?.n ?? 0;
}

/**
 * Removes the rows of these resources that no event stands behind: only damage makes one.
 *
 * Two statements, because a statement keeps its snapshot while it waits for a lock: ingest may just be giving
 * such a row a history, and only a look after the lock was had sees it.
 */
export async function removeRowsWithoutHistory(
  tx: Transaction,
  { cloud, resourceType }: CloudType,
  resourceIds: readonly string[],
): Promise<number> {
  const ids = JSON.stringify(resourceIds);
  await tx`
    SELECT 1 AS one FROM current_resources
    WHERE cloud = ${cloud} AND resource_type = ${resourceType}
      AND resource_id IN (SELECT json_array_elements_text(${ids}::text::json))
    ORDER BY resource_id
    FOR UPDATE`;
  const removed: unknown[] = await tx`
    DELETE FROM current_resources c
    WHERE c.cloud = ${cloud} AND c.resource_type = ${resourceType}
      AND c.resource_id IN (SELECT json_array_elements_text(${ids}::text::json))
      AND NOT EXISTS (
        SELECT FROM events e
        WHERE e.cloud = c.cloud AND e.resource_type = c.resource_type AND e.resource_id = c.resource_id)
    RETURNING 1 AS one`;
  return removed.length;
}
