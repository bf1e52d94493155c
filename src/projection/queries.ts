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

/** The transaction's instant: what `received_at` counts from. */
export async function transactionInstant(tx: Transaction): Promise<Instant> {
  const [row]: { at: string }[] = await tx`SELECT (extract(epoch FROM now()) * 1000000)::bigint::text AS at`;
  if (row === undefined) throw new Error("the database told no time");
  return instantFromMicros(row.at);
}

/** Inserts the rows that aren't there, in key order; gives how many those were. */
export async function insertRows(tx: Transaction, cloud: string, rows: readonly KeyedRow[]): Promise<number> {
  const { count }: { count: number } = await tx`
    INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud,
                                   resource_type, resource_id, platform, project_id, state, last_event_id,
                                   last_event_type, size)
    SELECT n.c, n.d, n.f, n.l, n.lr, ${cloud}, n.rt, n.r, n.p, n.pr, n.s, n.li, n.lt, n.z
    FROM json_to_recordset(${rowsJson(rows)}::text::json)
      AS n(rt text, r text, c timestamptz, d timestamptz, f timestamptz, l timestamptz, lr timestamptz, li text,
           lt text, p text, pr text, s text, z jsonb)
    ORDER BY n.rt COLLATE "C", n.r COLLATE "C"
    ON CONFLICT DO NOTHING`;
  return count;
}

/** A row as a statement gives it to `keyedRowOf`: instants in microseconds, the size as JSON text. */
export type StoredRow = Record<"rt" | "r" | "p" | "pr" | "s" | "z" | "f" | "l" | "lr" | "li" | "lt", string> &
  Record<"c" | "d", string | null>;

export function keyedRowOf(row: StoredRow): KeyedRow {
  return {
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
  };
}

/** Locks the rows of the keys, in sorted order, and reads them. */
export async function lockRows(
  tx: Transaction,
  cloud: string,
  keys: readonly LocalKey[],
): Promise<KeyedRow[]> {
  const rows: StoredRow[] = await tx`
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
  return rows.map(keyedRowOf);
}

/** A locked row, and what later events have made of it. */
export interface Advance extends KeyedRow {
  readonly before: FoldedRow;
}

/**
 * Writes what events in fold order have made of locked rows. Such events leave most of a row as it was: only what
 * changes is sent.
 */
export async function advanceRows(
  tx: Transaction,
  cloud: string,
  advances: readonly Advance[],
): Promise<void> {
  await tx`
    UPDATE current_resources c
    SET created_at = coalesce(n.c, c.created_at), deleted_at = n.d, last_event_at = n.l, last_received_at = n.lr,
        platform = coalesce(n.p, c.platform), project_id = coalesce(n.pr, c.project_id),
        state = coalesce(n.s, c.state), last_event_id = n.li, last_event_type = n.lt, size = coalesce(n.z, c.size)
    FROM json_to_recordset(${`[${advances.map(advanceJson).join(",")}]`}::text::json)
      AS n(rt text, r text, c timestamptz, d timestamptz, l timestamptz, lr timestamptz, li text, lt text, p text,
           pr text, s text, z jsonb)
    WHERE c.cloud = ${cloud} AND c.resource_type = n.rt AND c.resource_id = n.r`;
}

function advanceJson({ resourceType, resourceId, before, row }: Advance): string {
  return (
    `{"rt":${quote(resourceType)},"r":${quote(resourceId)}` +
    `,"l":"${formatInstant(row.lastEventAt)}","lr":"${formatInstant(row.lastReceivedAt)}"` +
    `,"li":${quote(row.lastEventId)},"lt":${quote(row.lastEventType)}` +
    (row.deletedAt === null ? "" : `,"d":"${formatInstant(row.deletedAt)}"`) +
    (row.createdAt === before.createdAt ? "" : `,"c":${instantOrNull(row.createdAt)}`) +
    (row.platform === before.platform ? "" : `,"p":${quote(row.platform)}`) +
    (row.projectId === before.projectId ? "" : `,"pr":${quote(row.projectId)}`) +
    (row.state === before.state ? "" : `,"s":${quote(row.state)}`) +
    (row.size === before.size ? "}" : `,"z":${row.size}}`)
  );
}

/** Writes what locked rows have become, all of it. */
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

/** The next resources that have events, in key order. */
export async function nextResources(
  db: Queryable,
  after: ResourceKey,
  limit: number,
): Promise<ResourceKey[]> {
  const rows: { c: string; rt: string; r: string }[] = await db`
    SELECT DISTINCT cloud AS c, resource_type AS rt, resource_id AS r
    FROM events
    WHERE (cloud, resource_type, resource_id) > (${after.cloud}, ${after.resourceType}, ${after.resourceId})
    ORDER BY 1, 2, 3
    LIMIT ${limit}`;
  return rows.map(({ c, rt, r }) => ({ cloud: c, resourceType: rt, resourceId: r }));
}
