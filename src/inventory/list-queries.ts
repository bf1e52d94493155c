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
import { originsOf, type Places, placesInState } from "./origins.ts";

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

/** Columns and the values that a branch's rows have in them; null is any value. */
type Branch = Readonly<Record<string, string | null>>;

/**
 * The first `limit` rows of a list that is read in branches: each is read in the list's order no further than the page
 * needs; one query over all of them would sort all that they hold, or go through what lies between.
 */
function pageOf(
  statement: Statement,
  list: { readonly table: string; readonly key: string; readonly conditions: readonly string[] },
  branches: readonly Branch[],
  limit: number,
): string {
  const { table, key, conditions } = list;
  const cut = statement.limit(limit);
  const texts = branches.map(
    (own) =>
      `SELECT * FROM ${table} ${where([...statement.equals(own), ...conditions])} ORDER BY ${key} ${cut}`,
  );
  if (texts.length === 1) return texts.join();
  return `SELECT * FROM (${texts.map((text) => `(${text})`).join(" UNION ALL ")}) own ORDER BY ${key} ${cut}`;
}

/** A branch for each project of the scope that the filters allow; without a scope, one for what the filters allow. */
function projectBranches(
  scope: Scope,
  { cloud, projectId }: { readonly cloud: string | null; readonly projectId: string | null },
): Branch[] {
  if (scope === null) return [{ cloud, project_id: projectId }];
  return scope
    .filter((own) => (cloud ?? own.cloud) === own.cloud && (projectId ?? own.projectId) === own.projectId)
    .map((own) => ({ cloud: own.cloud, project_id: own.projectId }));
}

/** What comes from more places than so many is found soon enough by going through all: planning them takes longer. */
const MOST_BRANCHES = 30;
/** In so many clouds, or types, one scan goes from one to the next. */
const MOST_PLACES = 250;

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
 * What an index has in the list's order with its nulls first, which there are none of (0012): the origins that the
 * filters allow, each in a branch of its own, and what was corrected in one cloud.
 * @returns null where those aren't the way: a project, a resource and a type of event have indexes of their own.
 */
async function originBranches(
  db: Queryable,
  scope: Scope,
  filter: EventFilter,
): Promise<readonly Branch[] | null> {
  const { cloud, projectId, resourceId, eventType, source } = filter;
  if (scope !== null || projectId !== null || resourceId !== null || eventType !== null) return null;
  if (source === "reconciliation") return cloud === null ? null : [{ cloud }];
  const origins = await originsOf(db, filter, MOST_BRANCHES);
  if (origins === null) return null;
  return origins.map((own) => ({
    platform: own.platform,
    cloud: own.cloud,
    resource_type: own.resourceType,
  }));
}

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
  const origins = await originBranches(db, scope, filter);
  const branches = origins ?? projectBranches(scope, filter);
  if (branches.length === 0) return EMPTY_PAGE;
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
  const nulls = origins === null ? "" : " NULLS FIRST";
  const list = { table: "events", key: `timestamp${nulls}, event_id${nulls}`, conditions };
  const rows = pageOf(statement, list, branches, page.limit + 1);
  return await readPage(
    db,
    `SELECT ${EVENT} AS item FROM (${rows}) e ORDER BY e.timestamp${nulls}, e.event_id${nulls}`,
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
 * The clouds and types of resources that can have any that the filters allow: the list's key begins with both, and one
 * scan of it goes through several of them in their order. Under a project there are few resources to go through.
 */
async function placesOf(db: Queryable, scope: Scope, filter: ResourceFilter): Promise<Places> {
  if (scope !== null || filter.projectId !== null) return { clouds: null, types: null };
  const { cloud, state, status } = filter;
  const origins = cloud === null ? await originsOf(db, filter, MOST_PLACES) : null;
  const ofOrigins: Places = {
    clouds: origins && [...new Set(origins.map((own) => own.cloud))],
    types: origins && [...new Set(origins.map((own) => own.resourceType))],
  };
  // What is dead is in one state, and found by its own index.
  if (state === null || status === "deleted" || (status === "all" && state === DELETED)) return ofOrigins;
  const inState = await placesInState(db, state, filter, MOST_PLACES);
  return {
    clouds: inBoth(ofOrigins.clouds, inState.clouds),
    types: inBoth(ofOrigins.types, inState.types),
  };
}

function inBoth(some: readonly string[] | null, others: readonly string[] | null): readonly string[] | null {
  if (some === null || others === null) return some ?? others;
  return some.filter((name) => others.includes(name));
}

/** That a row's cloud and type are among those. */
function within(statement: Statement, { clouds, types }: Places): string[] {
  const oneOf = (column: string, values: readonly string[] | null) =>
    values === null ? [] : [`${column} IN (${values.map((value) => statement.value(value)).join(", ")})`];
  return [...oneOf("cloud", clouds), ...oneOf("resource_type", types)];
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
  const places = await placesOf(db, scope, filter);
  const branches = projectBranches(scope, filter);
  if (branches.length === 0 || places.clouds?.length === 0 || places.types?.length === 0) return EMPTY_PAGE;
  const conditions = [...statement.equals({ platform, resource_type: resourceType }), ...such];
  conditions.push(...within(statement, places));
  if (page.after !== null) {
    const { cloud, resourceType: type, resourceId } = page.after;
    const position = [cloud, type, resourceId].map((text) => statement.value(text));
    conditions.push(`(cloud, resource_type, resource_id) > (${position.join(", ")})`);
  }
  const key = "cloud, resource_type, resource_id";
  const list = { table: "current_resources", key, conditions };
  const rows = pageOf(statement, list, branches, page.limit + 1);
  return await readPage(
    db,
    `SELECT ${RESOURCE} AS item
       FROM (${rows}) r
       LEFT JOIN events e ON e.cloud = r.cloud AND e.timestamp = r.last_event_at AND e.event_id = r.last_event_id
      ORDER BY r.cloud, r.resource_type, r.resource_id`,
    statement.values,
    page.limit,
  );
}
