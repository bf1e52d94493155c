/** Stored histories as the fold wants them, read a page at a time: memory stays flat, however long they are. */
import type { Queryable } from "../database/connection.ts";
import { formatInstant, instantFromMicros } from "../event/instant.ts";
import { compareBytes, type FoldEvent, type Place } from "../timeline/fold.ts";
import type { LocalKey } from "./queries.ts";

/** So many events are read at once. */
export const EVENTS_A_PAGE = 20_000;

/** An event of a history, with the resource it belongs to. */
export interface KeyedEvent extends LocalKey {
  readonly event: FoldEvent;
}

/** An event as a statement gives it to `foldEventOfRow`: instants in microseconds, the size as JSON text. */
export type FoldEventRow = Record<"at" | "ra" | "id" | "t" | "p" | "pr", string> &
  Record<"s" | "z", string | null>;

export function foldEventOfRow({ at, ra, id, t, p, pr, s, z }: FoldEventRow): FoldEvent {
  return {
    timestamp: instantFromMicros(at),
    receivedAt: instantFromMicros(ra),
    eventId: id,
    eventType: t,
    platform: p,
    projectId: pr,
    state: s,
    size: z,
  };
}

/** Orders resources of one cloud by their bytes, as the database does. */
export function compareKeys(a: LocalKey, b: LocalKey): number {
  return compareBytes(a.resourceType, b.resourceType) || compareBytes(a.resourceId, b.resourceId);
}

/**
 * The whole stored histories of the keys: resource by resource in key order, each in fold order. One long history
 * may go on over several pages.
 * @param payloads false leaves states and sizes in the database, however large they are: they are null then
 */
export async function* pagesOfHistories(
  db: Queryable,
  cloud: string,
  keys: readonly LocalKey[],
  payloads: boolean,
): AsyncGenerator<readonly KeyedEvent[]> {
  let waiting = [...keys].sort(compareKeys);
  let last: KeyedEvent | null = null;
  while (waiting.length > 0) {
    const page: KeyedEvent[] = await nextPage(db, cloud, waiting, last?.event ?? null, payloads);
    yield page;
    const reached = page.at(-1);
    if (reached === undefined || page.length < EVENTS_A_PAGE) return;
    last = reached;
    waiting = waiting.filter((key) => compareKeys(key, reached) >= 0);
  }
}

/** @param after the place that the first key's history is wanted from (exclusive); null for its beginning */
async function nextPage(
  db: Queryable,
  cloud: string,
  keys: readonly LocalKey[],
  after: Place | null,
  payloads: boolean,
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
  const rows: (FoldEventRow & Record<"rt" | "r", string>)[] = await db`
    SELECT e.resource_type AS rt, e.resource_id AS r,
           (extract(epoch FROM e.timestamp) * 1000000)::bigint::text AS at,
           (extract(epoch FROM e.received_at) * 1000000)::bigint::text AS ra,
           e.event_id AS id, e.event_type AS t, e.platform AS p, e.project_id AS pr,
           CASE WHEN ${payloads}::boolean THEN e.payload ->> 'state' END AS s,
           CASE WHEN ${payloads}::boolean THEN nullif(e.payload -> 'size', 'null')::text END AS z
    FROM json_to_recordset(${JSON.stringify(wanted)}::text::json)
      AS k(rt text, r text, at timestamptz, ra timestamptz, id text)
    JOIN events e ON e.cloud = ${cloud} AND e.resource_type = k.rt AND e.resource_id = k.r
      AND e.timestamp >= k.at AND (e.timestamp, e.received_at, e.event_id) > (k.at, k.ra, k.id)
    ORDER BY e.resource_type, e.resource_id, e.timestamp, e.received_at, e.event_id
    LIMIT ${EVENTS_A_PAGE}`;
  return rows.map((row) => ({ resourceType: row.rt, resourceId: row.r, event: foldEventOfRow(row) }));
}
