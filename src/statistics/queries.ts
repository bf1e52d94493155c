/** The statements of the statistics. They count at the finest grouping, and stop at one group too many. */
import type { Scope } from "../access/callers.ts";
import type { Queryable } from "../database/connection.ts";
import { Statement, where } from "../database/statement.ts";
import type { ResourceKey } from "../event/event.ts";
import { formatInstant, type Instant, instantFromMicros } from "../event/instant.ts";
import { type FoldEventRow, foldEventOfRow } from "../projection/histories.ts";
import type { FoldEvent } from "../timeline/fold.ts";
import type { Group } from "./groups.ts";

/** Which resources are counted. */
export type Status = "active" | "deleted" | "all";
export type ResourceDimension = "cloud" | "resource_type" | "state" | "platform" | "project_id";
export type EventDimension = "bucket" | "cloud" | "event_type" | "source";

/** That a row's own (cloud, project_id) is one of the scope's pairs. */
function inScope(statement: Statement, scope: Scope, table: string): string[] {
  if (scope === null) return [];
  const pairs = statement.value(JSON.stringify(scope.map(({ cloud, projectId }) => [cloud, projectId])));
  return [
    `(${table}.project_id, ${table}.cloud) IN (SELECT pair ->> 1, pair ->> 0 FROM json_array_elements(${pairs}::json) pair)`,
  ];
}

/**
 * The projection's rows, counted.
 * @param unchangedAfter only rows whose newest event isn't after this instant; null is all of them.
 * @param most how many groups to give at most.
 */
export async function countRows(
  db: Queryable,
  scope: Scope,
  filter: { readonly status: Status; readonly unchangedAfter: Instant | null },
  most: number,
): Promise<Group<ResourceDimension>[]> {
  const statement = new Statement();
  const conditions = inScope(statement, scope, "r");
  if (filter.status !== "all")
    conditions.push(`r.deleted_at IS ${filter.status === "active" ? "NULL" : "NOT NULL"}`);
  if (filter.unchangedAfter !== null)
    conditions.push(`r.last_event_at <= ${statement.instant(filter.unchangedAfter)}`);
  const rows: (Record<ResourceDimension, string> & { count: string })[] = await db.unsafe(
    `SELECT r.cloud, r.resource_type, r.state, r.platform, r.project_id, count(*)::text AS count
       FROM current_resources r ${where(conditions)} GROUP BY 1, 2, 3, 4, 5 ${statement.limit(most)}`,
    statement.values,
  );
  return rows.map(({ count, ...values }) => ({ values, count: Number(count) }));
}

/** The events of [from, to), counted by bucket: its first instant, as it is answered. */
export async function countEvents(
  db: Queryable,
  scope: Scope,
  window: { readonly from: Instant; readonly to: Instant; readonly interval: "1h" | "1d" },
  most: number,
): Promise<Group<EventDimension>[]> {
  const statement = new Statement();
  const conditions = [
    `e.timestamp >= ${statement.instant(window.from)}`,
    `e.timestamp < ${statement.instant(window.to)}`,
    ...inScope(statement, scope, "e"),
  ];
  const interval = statement.value(window.interval === "1h" ? "1 hour" : "24 hours");
  // Binned from the first midnight that there is: whole hours and days of UTC, whatever the session's time zone,
  // and never a bin that begins before the year 1.
  const rows: (Record<EventDimension, string> & { count: string })[] = await db.unsafe(
    `SELECT (extract(epoch FROM bin) * 1000000)::bigint::text AS bucket, cloud, event_type, source, count
       FROM (SELECT date_bin(${interval}::interval, e.timestamp, timestamptz '0001-01-01T00:00:00Z') AS bin,
                    e.cloud, e.event_type, e.source, count(*)::text AS count
               FROM events e ${where(conditions)} GROUP BY 1, 2, 3, 4 ${statement.limit(most)}) counted`,
    statement.values,
  );
  return rows.map(({ count, bucket, ...values }) => ({
    values: { ...values, bucket: formatInstant(instantFromMicros(bucket)) },
    count: Number(count),
  }));
}

/** An event of a resource's history. */
export interface KeyedEvent extends ResourceKey {
  readonly event: FoldEvent;
}

/** A create or a delete, as `categorize` has it: a part of the type, between dots. LIKE spares the others the regex. */
function turns(event: string): string {
  return (
    `((${event}.event_type LIKE '%create%' OR ${event}.event_type LIKE '%delete%')` +
    ` AND ${event}.event_type ~ '(^|\\.)(create|delete)(\\.|$)')`
  );
}

/** What the fold needs of an event. */
const FOLDED = `e.timestamp, e.received_at, e.event_id, e.event_type, e.platform, e.project_id,
            e.payload ->> 'state' AS state, nullif(e.payload -> 'size', 'null')::text AS size`;

/**
 * Of the next resources, in key order, that were known at an instant and have changed since: the events that tell
 * how they stood. One or two a resource: their fold says of state, platform, owner and death what the fold of all
 * its events up to then says.
 *
 * - The last event tells platform and owner, always. Of a living resource it tells the state, too: screening lets
 *   nothing but a delete pass that names none. So it tells everything where it is a create or a delete, and where
 *   there is no delete before it.
 * - An update with a delete before it may be a straggler. There, the last create or delete is given as well: after a
 *   delete the resource is dead, after a create it lives in the state of the last event.
 *
 * @param scope leaves out resources that, up to the instant, no event named one of its projects for. What is given
 *   may still have been somebody else's at the instant.
 * @param limit how many resources; fewer are given at the end only.
 */
export async function tellingEvents(
  db: Queryable,
  scope: Scope,
  at: Instant,
  after: ResourceKey | null,
  limit: number,
): Promise<KeyedEvent[]> {
  const statement = new Statement();
  const instant = statement.instant(at);
  const conditions = [`r.first_event_at <= ${instant}`, `r.last_event_at > ${instant}`];
  if (scope !== null) {
    const own = [`e.timestamp <= ${instant}`, ...inScope(statement, scope, "e")];
    conditions.push(
      `(r.cloud, r.resource_type, r.resource_id) IN (
        SELECT e.cloud, e.resource_type, e.resource_id FROM events e ${where(own)})`,
    );
  }
  if (after !== null) {
    const place = [after.cloud, after.resourceType, after.resourceId].map((text) => statement.value(text));
    conditions.push(`(r.cloud, r.resource_type, r.resource_id) > (${place.join(", ")})`);
  }
  const history = `e.cloud = k.cloud AND e.resource_type = k.resource_type AND e.resource_id = k.resource_id
            AND e.timestamp <= ${instant}`;
  const newest = "ORDER BY e.timestamp DESC, e.received_at DESC, e.event_id DESC LIMIT 1";
  const rows: (FoldEventRow & Record<"c" | "rt" | "r", string>)[] = await db.unsafe(
    `SELECT k.cloud AS c, k.resource_type AS rt, k.resource_id AS r,
            (extract(epoch FROM e.timestamp) * 1000000)::bigint::text AS at,
            (extract(epoch FROM e.received_at) * 1000000)::bigint::text AS ra, e.event_id AS id, e.event_type AS t,
            e.platform AS p, e.project_id AS pr, e.state AS s, e.size AS z
       FROM (SELECT r.cloud, r.resource_type, r.resource_id FROM current_resources r ${where(conditions)}
              ORDER BY r.cloud, r.resource_type, r.resource_id ${statement.limit(limit)}) k
      CROSS JOIN LATERAL (SELECT ${FOLDED} FROM events e WHERE ${history} ${newest}) last
      CROSS JOIN LATERAL (
        SELECT NOT ${turns("last")}
           AND EXISTS (SELECT FROM events e WHERE ${history} AND e.event_type LIKE '%delete%') AS open) death
      CROSS JOIN LATERAL (
        (SELECT ${FOLDED} FROM events e WHERE death.open AND ${history} AND ${turns("e")} ${newest})
        UNION ALL SELECT last.*) e
      ORDER BY k.cloud, k.resource_type, k.resource_id`,
    statement.values,
  );
  return rows.map((row) => ({
    cloud: row.c,
    resourceType: row.rt,
    resourceId: row.r,
    event: foldEventOfRow(row),
  }));
}
