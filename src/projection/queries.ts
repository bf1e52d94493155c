/** The projection's statements. All name the cloud, so that the tables can be spread by it. */
import type { Queryable, Transaction } from "../database/connection.ts";
import type { ResourceKey } from "../event/event.ts";
import { formatInstant, type Instant, instantFromMicros } from "../event/instant.ts";
import { quote } from "../event/json-text.ts";
import type { FoldedRow } from "../timeline/fold.ts";

/** A resource within its cloud. */
export type LocalKey = Pick<ResourceKey, "resourceType" | "resourceId">;

/** A row of one cloud. */
export interface KeyedRow extends LocalKey {
  readonly row: FoldedRow;
}

/** One key as map key; no identifier can hold the NUL that separates them. */
export function keyOf({ resourceType, resourceId }: LocalKey): string {
  return `${resourceType}\u0000${resourceId}`;
}

function keysJson(keys: readonly LocalKey[]): string {
  return `[${keys.map(({ resourceType, resourceId }) => `{"rt":${quote(resourceType)},"r":${quote(resourceId)}}`).join(",")}]`;
}

function instantOrNull(value: Instant | null): string {
  return value === null ? "null" : `"${formatInstant(value)}"`;
}

/** Rows as the text of a JSON array; their sizes go in digit for digit. */
function rowsJson(rows: readonly KeyedRow[]): string {
  const texts = rows.map(
    ({ resourceType, resourceId, row }) =>
      `{"rt":${quote(resourceType)},"r":${quote(resourceId)}` +
      `,"c":${instantOrNull(row.createdAt)},"d":${instantOrNull(row.deletedAt)}` +
      `,"f":"${formatInstant(row.firstEventAt)}","l":"${formatInstant(row.lastEventAt)}"` +
      `,"lr":"${formatInstant(row.lastReceivedAt)}","li":${quote(row.lastEventId)}` +
      `,"lt":${quote(row.lastEventType)},"p":${quote(row.platform)}` +
      `,"pr":${quote(row.projectId)},"s":${quote(row.state)},"z":${row.size}}`,
  );
  return `[${texts.join(",")}]`;
}

/** What a transaction finds when it begins. */
export interface Found {
  /** The transaction's instant: what `received_at` counts from. */
  readonly now: Instant;
  /** Which of the keys have a row already. Others may get one any moment. */
  readonly known: ReadonlySet<string>;
}

/** The transaction's instant, and which resources are known. */
export async function findRows(tx: Transaction, cloud: string, keys: readonly LocalKey[]): Promise<Found> {
  const rows: { at: string; rt: string | null; r: string | null }[] = await tx`
    SELECT (extract(epoch FROM now()) * 1000000)::bigint::text AS at, c.resource_type AS rt, c.resource_id AS r
    FROM (SELECT) AS one
    LEFT JOIN (
      SELECT c.resource_type, c.resource_id
      FROM json_to_recordset(${keysJson(keys)}::text::json) AS k(rt text, r text)
      JOIN current_resources c ON c.cloud = ${cloud} AND c.resource_type = k.rt AND c.resource_id = k.r
    ) AS c ON true`;
  const known = new Set<string>();
  for (const { rt, r } of rows)
    if (rt !== null && r !== null) known.add(keyOf({ resourceType: rt, resourceId: r }));
  const [first] = rows;
  if (first === undefined) throw new Error("an outer join gave no row");
  return { now: instantFromMicros(first.at), known };
}

/** Inserts the rows that are new, sorted by key; gives the keys of those that were. */
export async function insertRows(
  tx: Transaction,
  cloud: string,
  rows: readonly KeyedRow[],
): Promise<Set<string>> {
  const inserted: { rt: string; r: string }[] = await tx`
    INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud,
                                   resource_type, resource_id, platform, project_id, state, last_event_id,
                                   last_event_type, size)
    SELECT n.c, n.d, n.f, n.l, n.lr, ${cloud}, n.rt, n.r, n.p, n.pr, n.s, n.li, n.lt, n.z
    FROM json_to_recordset(${rowsJson(rows)}::text::json)
      AS n(rt text, r text, c timestamptz, d timestamptz, f timestamptz, l timestamptz, lr timestamptz, li text,
           lt text, p text, pr text, s text, z jsonb)
    ORDER BY n.rt COLLATE "C", n.r COLLATE "C"
    ON CONFLICT DO NOTHING
    RETURNING resource_type AS rt, resource_id AS r`;
  return new Set(inserted.map(({ rt, r }) => keyOf({ resourceType: rt, resourceId: r })));
}

/** Locks the rows of the keys, in sorted order, and reads them. */
export async function lockRows(
  tx: Transaction,
  cloud: string,
  keys: readonly LocalKey[],
): Promise<KeyedRow[]> {
  const rows: (Record<"rt" | "r" | "p" | "pr" | "s" | "z" | "f" | "l" | "lr" | "li" | "lt", string> &
    Record<"c" | "d", string | null>)[] = await tx`
    SELECT c.resource_type AS rt, c.resource_id AS r, c.platform AS p, c.project_id AS pr, c.state AS s,
           c.size::text AS z,
           (extract(epoch FROM c.created_at) * 1000000)::bigint::text AS c,
           (extract(epoch FROM c.deleted_at) * 1000000)::bigint::text AS d,
           (extract(epoch FROM c.first_event_at) * 1000000)::bigint::text AS f,
           (extract(epoch FROM c.last_event_at) * 1000000)::bigint::text AS l,
           (extract(epoch FROM c.last_received_at) * 1000000)::bigint::text AS lr,
           c.last_event_id AS li, c.last_event_type AS lt
    FROM json_to_recordset(${keysJson(keys)}::text::json) AS k(rt text, r text)
    JOIN current_resources c ON c.cloud = ${cloud} AND c.resource_type = k.rt AND c.resource_id = k.r
    ORDER BY c.resource_type, c.resource_id
    FOR UPDATE OF c`;
  return rows.map((row) => ({
    resourceType: row.rt,
    resourceId: row.r,
    row: {
      platform: row.p,
      projectId: row.pr,
      state: row.s,
      size: row.z,
      createdAt: row.c === null ? null : instantFromMicros(row.c),
      deletedAt: row.d === null ? null : instantFromMicros(row.d),
      firstEventAt: instantFromMicros(row.f),
      lastEventAt: instantFromMicros(row.l),
      lastReceivedAt: instantFromMicros(row.lr),
      lastEventId: row.li,
      lastEventType: row.lt,
    },
  }));
}

/** Writes what locked rows have become. */
export async function updateRows(tx: Transaction, cloud: string, rows: readonly KeyedRow[]): Promise<void> {
  await tx`
    UPDATE current_resources c
    SET created_at = n.c, deleted_at = n.d, first_event_at = n.f, last_event_at = n.l, last_received_at = n.lr,
        platform = n.p, project_id = n.pr, state = n.s, last_event_id = n.li, last_event_type = n.lt, size = n.z
    FROM json_to_recordset(${rowsJson(rows)}::text::json)
      AS n(rt text, r text, c timestamptz, d timestamptz, f timestamptz, l timestamptz, lr timestamptz, li text,
           lt text, p text, pr text, s text, z jsonb)
    WHERE c.cloud = ${cloud} AND c.resource_type = n.rt AND c.resource_id = n.r`;
}

/** Which resources a rebuild replays; null filters nothing. */
export interface RebuildFilter {
  readonly cloud: string | null;
  readonly resourceType: string | null;
}

/** The next resources that have events, in key order. */
export async function nextResources(
  db: Queryable,
  filter: RebuildFilter,
  after: ResourceKey,
  limit: number,
): Promise<ResourceKey[]> {
  const rows: { c: string; rt: string; r: string }[] = await db`
    SELECT DISTINCT cloud AS c, resource_type AS rt, resource_id AS r
    FROM events
    WHERE (cloud, resource_type, resource_id) > (${after.cloud}, ${after.resourceType}, ${after.resourceId})
      AND (${filter.cloud}::text IS NULL OR cloud = ${filter.cloud}::text)
      AND (${filter.resourceType}::text IS NULL OR resource_type = ${filter.resourceType}::text)
    ORDER BY 1, 2, 3
    LIMIT ${limit}`;
  return rows.map(({ c, rt, r }) => ({ cloud: c, resourceType: rt, resourceId: r }));
}

/** How many rows a rebuild will find, for a progress bar. */
export async function countRows(db: Queryable, filter: RebuildFilter): Promise<number> {
  const [row]: { n: number }[] = await db`
    SELECT count(*)::int AS n FROM current_resources
    WHERE (${filter.cloud}::text IS NULL OR cloud = ${filter.cloud}::text)
      AND (${filter.resourceType}::text IS NULL OR resource_type = ${filter.resourceType}::text)`;
  return row?.n ?? 0;
}

/** Which of the keys have no row. */
export async function keysWithoutRow(
  db: Queryable,
  cloud: string,
  keys: readonly LocalKey[],
): Promise<LocalKey[]> {
  const rows: { rt: string; r: string }[] = await db`
    SELECT k.rt, k.r
    FROM json_to_recordset(${keysJson(keys)}::text::json) AS k(rt text, r text)
    WHERE NOT EXISTS (
      SELECT FROM current_resources c WHERE c.cloud = ${cloud} AND c.resource_type = k.rt AND c.resource_id = k.r)`;
  return rows.map(({ rt, r }) => ({ resourceType: rt, resourceId: r }));
}

/**
 * Removes rows between two keys (`upTo` null: to the end) that no event stands behind: only damage makes one.
 *
 * Two statements, because a statement keeps its snapshot while it waits for a lock: ingest may just be giving
 * such a row a history, and only a look after the lock was had sees it.
 */
export async function removeRowsWithoutHistory(
  tx: Transaction,
  filter: RebuildFilter,
  after: ResourceKey,
  upTo: ResourceKey | null,
): Promise<number> {
  const suspects: { c: string; rt: string; r: string }[] = await tx`
    SELECT c.cloud AS c, c.resource_type AS rt, c.resource_id AS r
    FROM current_resources c
    WHERE (c.cloud, c.resource_type, c.resource_id) > (${after.cloud}, ${after.resourceType}, ${after.resourceId})
      AND (${upTo === null}::boolean OR (c.cloud, c.resource_type, c.resource_id)
           <= (${upTo?.cloud ?? ""}, ${upTo?.resourceType ?? ""}, ${upTo?.resourceId ?? ""}))
      AND (${filter.cloud}::text IS NULL OR c.cloud = ${filter.cloud}::text)
      AND (${filter.resourceType}::text IS NULL OR c.resource_type = ${filter.resourceType}::text)
      AND NOT EXISTS (
        SELECT FROM events e
        WHERE e.cloud = c.cloud AND e.resource_type = c.resource_type AND e.resource_id = c.resource_id)
    ORDER BY c.cloud, c.resource_type, c.resource_id
    FOR UPDATE OF c`;
  if (suspects.length === 0) return 0;
  const removed: unknown[] = await tx`
    DELETE FROM current_resources c
    USING json_to_recordset(${JSON.stringify(suspects)}::text::json) AS s(c text, rt text, r text)
    WHERE c.cloud = s.c AND c.resource_type = s.rt AND c.resource_id = s.r
      AND NOT EXISTS (
        SELECT FROM events e
        WHERE e.cloud = c.cloud AND e.resource_type = c.resource_type AND e.resource_id = c.resource_id)
    RETURNING 1 AS one`;
  return removed.length;
}
