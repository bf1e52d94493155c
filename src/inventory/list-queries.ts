/**
 * The statements of the lists. They are paged by key: each page goes on behind the last row of the one before, so that
 * a walk costs the same at every depth and no insert shifts it.
 */
import type { Scope } from "../access/callers.ts";
import type { Queryable } from "../database/connection.ts";
import {
  EMPTY_PAGE,
  instantMember,
  instantOrNullMember,
  type Member,
  type ObjectPage,
  objectSql,
  readPage,
  textMembers,
} from "../database/object-text.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import type { ResourceKey, Source, StoredEvent } from "../event/event.ts";
import type { Instant } from "../event/instant.ts";
import { DELETED } from "../timeline/fold.ts";

/** Which events a list holds; null filters nothing. */
export interface EventFilter {
  readonly cloud: string | null;
  readonly platform: string | null;
  readonly projectId: string | null;
  readonly resourceType: string | null;
  readonly resourceId: string | null;
  readonly eventType: string | null;
  readonly source: Source | null;
  /** Inclusive. */
  readonly from: Instant | null;
  /** Exclusive. */
  readonly to: Instant | null;
}

/** Which resources a list holds; null filters nothing. */
export interface ResourceFilter {
  readonly cloud: string | null;
  readonly platform: string | null;
  readonly projectId: string | null;
  readonly resourceType: string | null;
  readonly state: string | null;
  readonly status: "active" | "deleted" | "all";
}

/**
 * The first `limit` rows of a list. Under a scope, each of its projects is a branch of its own that is read in
 * the list's order no further than the page needs; one query over all of them would sort their whole history.
 * @returns null where the scope and the filters have no project in common.
 */
function pageOf(
  statement: Statement,
  list: { readonly table: string; readonly key: string; readonly conditions: readonly string[] },
  narrowed: { readonly scope: Scope; readonly cloud: string | null; readonly projectId: string | null },
  limit: number,
): string | null {
  const { table, key, conditions } = list;
  const { scope, cloud, projectId } = narrowed;
  const cut = statement.limit(limit);
  const branch = (own: readonly string[]) =>
    `SELECT * FROM ${table} ${where([...own, ...conditions])} ORDER BY ${key} ${cut}`;
  if (scope === null) return branch(statement.equals({ cloud, project_id: projectId }));
  const branches = scope
    .filter((own) => (cloud ?? own.cloud) === own.cloud && (projectId ?? own.projectId) === own.projectId)
    .map((own) => `(${branch(statement.equals({ cloud: own.cloud, project_id: own.projectId }))})`);
  if (branches.length === 0) return null;
  return `SELECT * FROM (${branches.join(" UNION ALL ")}) own ORDER BY ${key} ${cut}`;
}

const payload = (name: string): Member => ({ name, kind: "json", sql: "coalesce(e.payload::text, 'null')" });

/** The component `StoredEvent`. */
const EVENT = objectSql([
  ...textMembers("e", ["event_id"]),
  instantMember("timestamp", "e.timestamp"),
  ...textMembers("e", ["event_type", "platform", "cloud", "resource_type", "resource_id", "project_id"]),
  { name: "source", kind: "plain", sql: "e.source" },
  payload("payload"),
  instantMember("received_at", "e.received_at"),
]);

/** The component `Resource`. Its payload isn't kept twice: the row names its newest event. */
const RESOURCE = objectSql([
  ...textMembers("r", ["cloud", "resource_type", "resource_id", "platform", "project_id", "state"]),
  { name: "size", kind: "json", sql: "r.size::text" },
  instantOrNullMember("created_at", "r.created_at"),
  instantOrNullMember("deleted_at", "r.deleted_at"),
  instantMember("first_event_at", "r.first_event_at"),
  instantMember("last_event_at", "r.last_event_at"),
  ...textMembers("r", ["last_event_type"]),
  payload("last_payload"),
]);

/** Where a page of events goes on. */
export type EventPosition = Pick<StoredEvent, "timestamp" | "eventId">;

/**
 * One page of the events whose own (cloud, project_id) is in scope, by (timestamp, event_id).
 * @returns each one's JSON, the component `StoredEvent`.
 */
export async function pageOfEvents(
  db: Queryable,
  scope: Scope,
  filter: EventFilter,
  page: Page<EventPosition>,
): Promise<ObjectPage> {
  const statement = new Statement();
  const conditions = statement.equals({
    platform: filter.platform,
    resource_type: filter.resourceType,
    resource_id: filter.resourceId,
    event_type: filter.eventType,
    source: filter.source,
  });
  if (filter.from !== null) conditions.push(`timestamp >= ${statement.instant(filter.from)}`);
  if (filter.to !== null) conditions.push(`timestamp < ${statement.instant(filter.to)}`);
  if (page.after !== null) {
    const { timestamp, eventId } = page.after;
    conditions.push(`(timestamp, event_id) > (${statement.instant(timestamp)}, ${statement.value(eventId)})`);
  }
  const list = { table: "events", key: "timestamp, event_id", conditions };
  const found = pageOf(statement, list, { scope, ...filter }, page.limit + 1);
  if (found === null) return EMPTY_PAGE;
  return await readPage(
    db,
    `SELECT ${EVENT} AS item FROM (${found}) e ORDER BY e.timestamp, e.event_id`,
    statement.values,
    page.limit,
  );
}

/** An index of block ranges knows which states there are where. */
const LIVING_STATE = "(CASE WHEN deleted_at IS NULL THEN state END)";

/** Which rows a list of resources holds, by their state and whether they live; null: none can be such. */
function livingAndState(statement: Statement, { state, status }: ResourceFilter): string[] | null {
  // The fold leaves what is dead in one state only. What lives may be in that, too: an update may say so.
  if (status === "deleted") {
    return state === null || state === DELETED ? ["deleted_at IS NOT NULL"] : null;
  }
  if (state === null) return status === "all" ? [] : ["deleted_at IS NULL"];
  const inState = `${LIVING_STATE} = ${statement.value(state)}`;
  if (status === "all" && state === DELETED) return [`(deleted_at IS NOT NULL OR ${inState})`];
  return ["deleted_at IS NULL", inState];
}

/**
 * One page of the resources whose present (cloud, project_id) is in scope, by (cloud, type, id).
 * @returns each one's JSON, the component `Resource`.
 */
export async function pageOfResources(
  db: Queryable,
  scope: Scope,
  filter: ResourceFilter,
  page: Page<ResourceKey>,
): Promise<ObjectPage> {
  const statement = new Statement();
  const { platform, resourceType } = filter;
  const such = livingAndState(statement, filter);
  if (such === null) return EMPTY_PAGE;
  const conditions = [...statement.equals({ platform, resource_type: resourceType }), ...such];
  if (page.after !== null) {
    const { cloud, resourceType: type, resourceId } = page.after;
    const position = [cloud, type, resourceId].map((text) => statement.value(text));
    conditions.push(`(cloud, resource_type, resource_id) > (${position.join(", ")})`);
  }
  const key = "cloud, resource_type, resource_id";
  const list = { table: "current_resources", key, conditions };
  const found = pageOf(statement, list, { scope, ...filter }, page.limit + 1);
  if (found === null) return EMPTY_PAGE;
  return await readPage(
    db,
    `SELECT ${RESOURCE} AS item
       FROM (${found}) r
       LEFT JOIN events e ON e.cloud = r.cloud AND e.timestamp = r.last_event_at AND e.event_id = r.last_event_id
      ORDER BY r.cloud, r.resource_type, r.resource_id`,
    statement.values,
    page.limit,
  );
}
