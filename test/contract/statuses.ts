/** Requests by operation and status: for every status that is not brought about in the same way everywhere. */
import { CREATE_PROJECT, RELATION } from "../../src/projects/examples.ts";
import { send } from "../inventory/calls.ts";
import { call, project, relation } from "../projects/calls.ts";
import { type ScriptedCloud, scriptedCloud } from "../reconcile/scripted-adapter.ts";
import { type TestServer, testServer } from "../support/server.ts";

/** A request. */
export interface Call {
  readonly path: string;
  /** A JSON value. */
  readonly body?: unknown;
  /** A token of one project instead of the largest that the operation takes. */
  readonly small?: true;
}

/** By operationId and status. An operation's first 2xx is the good request that the common statuses are made from. */
export type Calls = Readonly<Record<string, Readonly<Record<number, Call | readonly Call[]>>>>;

/** A server where all of them have something to meet. */
export interface Scene {
  readonly server: TestServer;
  readonly calls: Calls;
  /** A token of role project. */
  readonly small: string;
  readonly ingest: string;
  /** Lets the run end that holds a cloud, and stops the server. */
  stop(): Promise<void>;
}

const NOWHERE = "00000000-0000-4000-8000-000000000001";
const HELD = "os-prod-eu1";
const NAMED_SIZE = { type: "object", required: ["n"] };

/** Fills a server of its own. */
export async function makeScene(): Promise<Scene> {
  const held = scriptedCloud(HELD);
  const server = await testServer({ clouds: [scriptedCloud("eu1").cloud, held.cloud] });
  const letGo = await hold(server, held);
  const [own, other] = [await project(server, "p1"), await project(server, "p2")];
  const related = (relation_type: string) =>
    relation(server, own, other, { relation_type, valid_from: RELATION.valid_from });
  const ids = {
    own,
    other,
    busy: await project(server, "busy"),
    wide: await widelyRelated(server),
    letter: await letter(server, true),
    unkept: await letter(server, false),
    standing: await related("infrastructure_tenant"),
    changing: await related("changing"),
    closing: await related("closing"),
  };
  await send(server, [{ id: "e1", at: "2026-03-01T00:00:00Z", type: "thing.create" }]);
  await store(server);
  await call(
    server,
    "PUT",
    "/api/v1/resource-types/openstack/thing",
    JSON.stringify({ size_schema: NAMED_SIZE }),
  );
  return {
    server,
    calls: callsTo(ids),
    small: await server.credentials.project([own]),
    ingest: await server.credentials.ingest("openstack", "eu1"),
    async stop() {
      await letGo();
      await server.stop();
    },
  };
}

/** Begins a run that waits. @returns ends it. */
async function hold(server: TestServer, { cloud, script }: ScriptedCloud): Promise<() => Promise<void>> {
  const [begun, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  script.beforeListing = () => {
    begun.resolve();
    return letGo.promise;
  };
  const token = server.credentials.internal;
  const run = server.request(`/internal/sync/${cloud.cloud}`, { method: "POST", token });
  await begun.promise;
  return async () => {
    letGo.resolve();
    await (await run).text();
  };
}

/** A project with one relation more than are answered at once, to as many projects. @returns its id. */
async function widelyRelated(server: TestServer): Promise<string> {
  const id = await project(server, "wide");
  await server.db.db`
    WITH made AS (
      INSERT INTO projects (platform, cloud, external_id)
      SELECT 'openstack', 'wide', n::text FROM generate_series(1, 10001) n RETURNING id)
    INSERT INTO project_relations (source_id, target_id, relation_type, valid_from)
    SELECT ${id}::text::uuid, id, 'member_of', '2026-01-01Z' FROM made`;
  return id;
}

/** @param whole false: the item was too large to be kept. @returns its id. */
async function letter(server: TestServer, whole: boolean): Promise<string> {
  const [row]: { id: string }[] = await server.db.db`
    INSERT INTO rejected_events (received_at, reason, reason_kind, source, raw, whole)
    VALUES (now(), 'x', 'schema', 'collector', '1', ${whole}) RETURNING id::text AS id`;
  return row?.id ?? "";
}

/** A resource of the project `busy` with one event more than a summary folds, and one group more than is answered. */
async function store(server: TestServer): Promise<void> {
  await server.db.db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-01-01Z' + i * interval '1 second', now(), 'long' || i, 'thing.update', 'openstack', 'eu1',
           'thing', 'long', 'busy', 'collector', '{"state":"on"}'
      FROM generate_series(1, 100001) i`;
  await server.db.db`
    INSERT INTO current_resources (first_event_at, last_event_at, last_received_at, cloud, resource_type, resource_id,
                                   platform, project_id, state, last_event_id, last_event_type, size)
    SELECT now(), now(), now(), 'eu1', 'thing', 'long' || n, 'openstack', 'busy' || n, 'on', 'x', 'thing.update', '{}'
      FROM (SELECT '' AS n UNION ALL SELECT i::text FROM generate_series(1, 50000) i) names`;
}

type Ids = Readonly<
  Record<
    "own" | "other" | "busy" | "wide" | "letter" | "unkept" | "standing" | "changing" | "closing",
    string
  >
>;

const WINDOW = "from=2026-03-01T00:00:00Z&to=2026-04-01T00:00:00Z";
const LONG_WINDOW = "from=2026-01-01T00:00:00Z&to=2027-02-02T00:00:00.000001Z";
const COUNTED = "/api/v1/stats/events?group_by=cloud,event_type&interval=1d";
const GROUPED = "/api/v1/stats/resources?group_by=cloud,resource_type";
const THING = "/api/v1/resources/eu1/thing";
const TYPES = "/api/v1/resource-types/openstack";
const PROJECTS = "/api/v1/projects";
const NEW_PROJECT = { platform: "openstack", cloud: "eu1" };
/** One byte more than is kept: of the text as it was sent, and as the database writes it. */
const LARGE_SCHEMA = { title: "x".repeat(65_537 - '{"title":""}'.length) };
const LARGE_METADATA = { note: "x".repeat(65_537 - '{"note": ""}'.length) };
const BROKEN_ADJUSTMENTS = [
  { type: "discount", rate: "2", scope: "all" },
  { type: "discount", rate: "0.1" },
];

function callsTo({ own, other, busy, wide, letter, unkept, standing, changing, closing }: Ids): Calls {
  const relations = `${PROJECTS}/${own}/relations`;
  const to = (target_id: string, relation_type: string, metadata = {}) => ({
    target_id,
    relation_type,
    metadata,
  });
  return {
    ingestEvents: {
      200: { path: "/api/v1/events", body: [] },
      413: { path: "/api/v1/events", body: Array(1_001).fill(1) },
    },
    listEvents: {
      200: { path: "/api/v1/events" },
      403: { path: "/api/v1/events?project_id=p2", small: true },
    },
    listResources: {
      200: { path: "/api/v1/resources" },
      403: { path: "/api/v1/resources?project_id=p2", small: true },
    },
    listResourceEvents: {
      200: { path: `${THING}/r1/events` },
      404: { path: `${THING}/none/events` },
      422: { path: `${THING}/long/events` },
    },
    getResourceLifecycle: {
      200: { path: `${THING}/r1/lifecycle` },
      404: { path: `${THING}/none/lifecycle` },
      422: { path: `${THING}/long/lifecycle` },
    },
    listRejectedEvents: { 200: { path: "/api/v1/rejected-events" } },
    retryRejectedEvents: { 200: { path: "/api/v1/rejected-events/retry" } },
    retryRejectedEvent: {
      200: { path: `/api/v1/rejected-events/${letter}/retry` },
      404: { path: `/api/v1/rejected-events/${NOWHERE}/retry` },
      409: { path: `/api/v1/rejected-events/${unkept}/retry` },
    },
    listAuditLog: { 200: { path: "/api/v1/audit-log" } },
    listSyncRuns: { 200: { path: "/api/v1/sync-runs" } },
    syncCloud: {
      200: { path: "/internal/sync/eu1", body: {} },
      404: { path: "/internal/sync/eu2", body: {} },
      409: { path: `/internal/sync/${HELD}`, body: {} },
    },
    rebuildProjection: { 200: { path: "/internal/projection/rebuild", body: { cloud: "none" } } },
    listProjects: { 200: { path: PROJECTS } },
    createProject: {
      201: { path: PROJECTS, body: CREATE_PROJECT },
      409: { path: PROJECTS, body: { ...NEW_PROJECT, external_id: "p1" } },
      422: { path: PROJECTS, body: { ...NEW_PROJECT, platform: "meta", external_id: "p3" } },
    },
    getProject: { 200: { path: `${PROJECTS}/${own}` }, 404: { path: `${PROJECTS}/${NOWHERE}` } },
    updateProject: {
      200: { path: `${PROJECTS}/${own}`, body: { name: "shop" } },
      404: { path: `${PROJECTS}/${NOWHERE}`, body: { name: "shop" } },
      422: { path: `${PROJECTS}/${own}`, body: { metadata: LARGE_METADATA } },
    },
    getProjectSummary: {
      200: { path: `${PROJECTS}/${own}/summary?${WINDOW}` },
      404: { path: `${PROJECTS}/${NOWHERE}/summary?${WINDOW}` },
      422: { path: `${PROJECTS}/${busy}/summary?${WINDOW}` },
    },
    listRelations: {
      200: { path: relations },
      404: { path: `${PROJECTS}/${NOWHERE}/relations` },
      422: { path: `${PROJECTS}/${wide}/relations` },
    },
    createRelation: {
      201: { path: relations, body: to(other, "member_of") },
      404: { path: `${PROJECTS}/${NOWHERE}/relations`, body: to(other, "member_of") },
      409: { path: relations, body: to(other, "infrastructure_tenant") },
      422: [
        { path: relations, body: to(other, "priced", { pricing_adjustments: BROKEN_ADJUSTMENTS }) },
        { path: `${PROJECTS}/${other}/relations`, body: to(own, "infrastructure_tenant") },
      ],
    },
    updateRelation: {
      200: { path: `${relations}/${changing}`, body: { metadata: {} } },
      404: { path: `${PROJECTS}/${other}/relations/${changing}`, body: { metadata: {} } },
      409: { path: `${relations}/${standing}`, body: { metadata: RELATION.metadata } },
      422: { path: `${relations}/${changing}`, body: { valid_to: RELATION.valid_from } },
    },
    closeRelation: {
      204: { path: `${relations}/${closing}` },
      404: { path: `${relations}/${NOWHERE}` },
    },
    listRelatedProjects: {
      200: { path: `${PROJECTS}/${own}/related` },
      404: { path: `${PROJECTS}/${NOWHERE}/related` },
      422: { path: `${PROJECTS}/${wide}/related` },
    },
    listResourceTypes: { 200: { path: "/api/v1/resource-types" } },
    getResourceType: { 200: { path: `${TYPES}/thing` }, 404: { path: `${TYPES}/none` } },
    registerResourceType: {
      200: { path: `${TYPES}/thing`, body: { size_schema: NAMED_SIZE } },
      413: { path: `${TYPES}/thing`, body: { size_schema: LARGE_SCHEMA } },
    },
    getResourceStats: { 200: { path: GROUPED, small: true }, 422: { path: GROUPED } },
    getEventStats: { 200: { path: `${COUNTED}&${WINDOW}` }, 422: { path: `${COUNTED}&${LONG_WINDOW}` } },
    getHealth: { 200: { path: "/healthz" } },
    getReadiness: { 200: { path: "/readyz" } },
    getMetrics: { 200: { path: "/metrics" } },
    getOpenApiDocument: { 200: { path: "/openapi.json" } },
    getDocumentationPage: { 200: { path: "/docs" } },
  };
}
