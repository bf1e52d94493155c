/** What the record holds of a cloud, read in pages so that it is never held whole. All statements name the cloud. */
import type { Queryable, Transaction } from "../database/connection.ts";
import { instantFromMicros } from "../event/instant.ts";
import { quote } from "../event/json-text.ts";
import type { LocalKey } from "../projection/queries.ts";
import type { RecordedResource } from "./finding.ts";

interface Row {
  readonly rt: string;
  readonly r: string;
  readonly p: string;
  readonly pr: string;
  readonly s: string;
  readonly z: string;
  readonly d: string | null;
  readonly l: string;
  readonly li: string;
}

function recorded(row: Row): RecordedResource {
  return {
    resourceType: row.rt,
    resourceId: row.r,
    platform: row.p,
    projectId: row.pr,
    state: row.s,
    size: row.z,
    deletedAt: row.d === null ? null : instantFromMicros(row.d),
    lastEventAt: instantFromMicros(row.l),
    lastEventId: row.li,
  };
}

/** The living rows of one type, by id, behind that id. */
export async function livingPage(
  db: Queryable,
  cloud: string,
  resourceType: string,
  after: string,
  limit: number,
): Promise<RecordedResource[]> {
  const rows: Row[] = await db`
    SELECT resource_type AS rt, resource_id AS r, platform AS p, project_id AS pr, state AS s, size::text AS z,
           NULL AS d, (extract(epoch FROM last_event_at) * 1000000)::bigint::text AS l, last_event_id AS li
    FROM current_resources
    WHERE cloud = ${cloud} AND resource_type = ${resourceType} AND resource_id > ${after} AND deleted_at IS NULL
    ORDER BY resource_id
    LIMIT ${limit}`;
  return rows.map(recorded);
}

/** The rows that there are of some resources, dead or alive. */
export async function rowsOf(
  db: Queryable,
  cloud: string,
  keys: readonly LocalKey[],
): Promise<RecordedResource[]> {
  const rows: Row[] = await db`
    SELECT c.resource_type AS rt, c.resource_id AS r, c.platform AS p, c.project_id AS pr, c.state AS s,
           c.size::text AS z, (extract(epoch FROM c.deleted_at) * 1000000)::bigint::text AS d,
           (extract(epoch FROM c.last_event_at) * 1000000)::bigint::text AS l, c.last_event_id AS li
    FROM json_to_recordset(${keysJson(keys)}::text::json) AS k(rt text, r text)
    JOIN current_resources c ON c.cloud = ${cloud} AND c.resource_type = k.rt AND c.resource_id = k.r`;
  return rows.map(recorded);
}

/**
 * The newest event of each of some resources, whose rows are locked, in sorted order, until the transaction ends.
 * A resource without a row gives nothing, and nothing keeps it from getting one.
 */
export async function lockNewestEvents(
  tx: Transaction,
  cloud: string,
  keys: readonly LocalKey[],
): Promise<{ readonly key: LocalKey; readonly lastEventId: string }[]> {
  const rows: { rt: string; r: string; li: string }[] = await tx`
    SELECT c.resource_type AS rt, c.resource_id AS r, c.last_event_id AS li
    FROM json_to_recordset(${keysJson(keys)}::text::json) AS k(rt text, r text)
    JOIN current_resources c ON c.cloud = ${cloud} AND c.resource_type = k.rt AND c.resource_id = k.r
    ORDER BY c.resource_type, c.resource_id
    FOR UPDATE OF c`;
  return rows.map(({ rt, r, li }) => ({ key: { resourceType: rt, resourceId: r }, lastEventId: li }));
}

function keysJson(keys: readonly LocalKey[]): string {
  return `[${keys.map(({ resourceType, resourceId }) => `{"rt":${quote(resourceType)},"r":${quote(resourceId)}}`).join(",")}]`;
}
