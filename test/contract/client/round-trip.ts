/**
 * A billing engineer's program against Tally, written with nothing but the generated types and openapi-fetch. The
 * test beside it generates `api.ts` from the served document, compiles both, and runs this against the server that
 * served it; no other compiler run sees this file.
 */
import createClient from "openapi-fetch";
import type { components, paths } from "./api.ts";

type Event = components["schemas"]["EventInput"];

const [url = "", collector = "", admin = "", project = ""] = process.argv.slice(2);
const client = createClient<paths>({
  baseUrl: url,
  // Lists of names are one comma-separated value.
  querySerializer: { array: { style: "form", explode: false } },
});
const as = (token: string) => ({ authorization: `Bearer ${token}` });

/** The answer's data; anything else ends the program. */
function data<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  if (data === undefined) throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`);
  return data;
}

function same(what: string, found: unknown, expected: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  }
}

const key = { platform: "openstack", cloud: "eu1", resource_type: "disk", resource_id: "a/b c?d" };
const event = (id: string, timestamp: string, event_type: string, payload?: object): Event => ({
  ...key,
  event_id: id,
  timestamp,
  event_type,
  project_id: "p1",
  ...(payload === undefined ? {} : { payload }),
});

// The registry of sizes.
const type = { platform: key.platform, resource_type: key.resource_type };
const registered = data(
  await client.PUT("/api/v1/resource-types/{platform}/{resource_type}", {
    headers: as(admin),
    params: { path: type },
    body: { size_schema: { type: "object", required: ["gb"] } },
  }),
);
same("registered", registered.size_schema, { type: "object", required: ["gb"] });
const unknownType = await client.GET("/api/v1/resource-types/{platform}/{resource_type}", {
  headers: as(admin),
  params: { path: { ...type, resource_type: "none" } },
});
same("an unknown type", unknownType.error?.type, "urn:tally:error:not_found");
same("types", data(await client.GET("/api/v1/resource-types", { headers: as(project) })).next_cursor, null);

// In: one item is refused, and taken once its schema is mended.
const ingested = data(
  await client.POST("/api/v1/events", {
    headers: as(collector),
    body: [
      event("1", "2026-03-01T00:00:00Z", "disk.create", { state: "on", size: { gb: 10 } }),
      event("2", "2026-03-02T00:00:00.5Z", "disk.resize", { state: "on", size: { gb: 20 } }),
      event("3", "2026-03-03T00:00:00Z", "disk.resize", { state: "on", size: { tb: 1 } }),
      event("4", "2026-03-04T00:00:00Z", "disk.delete"),
    ],
  }),
);
same("ingested", [ingested.accepted, ingested.duplicates], [3, 0]);
same("refused", ingested.rejected, [
  { index: 2, event_id: "3", reason: "size_schema: 'gb' is a required property" },
]);
const letters = data(
  await client.GET("/api/v1/rejected-events", {
    headers: as(admin),
    params: { query: { reason: "size_schema", cloud: "eu1" } },
  }),
);
same("letters", letters.items.length, 1);
const id = letters.items[0]?.id ?? "";
const again = data(
  await client.POST("/api/v1/rejected-events/{id}/retry", { headers: as(admin), params: { path: { id } } }),
);
same("retried", again.outcome, "refused");
await client.PUT("/api/v1/resource-types/{platform}/{resource_type}", {
  headers: as(admin),
  params: { path: type },
  body: { size_schema: {} },
});
const many = data(await client.POST("/api/v1/rejected-events/retry", { headers: as(admin), params: {} }));
same("retried", many, { retried: 1, resolved: 1, refused: 0, remaining: 0, next_cursor: null });

// Out: pages, the history, what is billed.
const ids: string[] = [];
let cursor: string | null = null;
do {
  const query: { limit: number; from: string; cursor?: string } = { limit: 3, from: "2026-01-01T00:00:00Z" };
  if (cursor !== null) query.cursor = cursor;
  const page: components["schemas"]["EventList"] = data(
    await client.GET("/api/v1/events", { headers: as(project), params: { query } }),
  );
  ids.push(...page.items.map((item) => item.event_id));
  cursor = page.next_cursor;
} while (cursor !== null);
same("events", ids, ["1", "2", "3", "4"]);
const { platform: _, ...path } = key;
const life = data(
  await client.GET("/api/v1/resources/{cloud}/{resource_type}/{resource_id}/lifecycle", {
    headers: as(project),
    params: { path },
  }),
);
same(
  "intervals",
  life.intervals.map(({ from, to, size }) => [from, to, size]),
  [
    ["2026-03-01T00:00:00Z", "2026-03-02T00:00:00.5Z", { gb: 10 }],
    ["2026-03-02T00:00:00.5Z", "2026-03-03T00:00:00Z", { gb: 20 }],
    ["2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z", { tb: 1 }],
  ],
);
same("warnings", life.warnings, []);
same("deleted", life.resource.deleted_at, "2026-03-04T00:00:00Z");
const active = data(
  await client.GET("/api/v1/resources", { headers: as(project), params: { query: { cloud: "eu1" } } }),
);
same("active", active.items, []);
const stats = data(
  await client.GET("/api/v1/stats/resources", {
    headers: as(admin),
    params: { query: { group_by: ["cloud", "resource_type"], at: "2026-03-01T12:00:00Z" } },
  }),
);
same("stats at", stats.items[0]?.count, 1);
const counts = data(
  await client.GET("/api/v1/stats/events", {
    headers: as(admin),
    params: {
      query: {
        group_by: ["cloud", "event_type"],
        from: "2026-03-01T00:00:00Z",
        to: "2026-03-02T00:00:00Z",
        interval: "1d",
      },
    },
  }),
);
same("counts", [counts.items.length, counts.items[0]?.event_type], [1, "disk.create"]);

// What was done.
const log = data(
  await client.GET("/api/v1/audit-log", {
    headers: as(admin),
    params: { query: { object_type: "rejected_event" } },
  }),
);
same(
  "log",
  log.items.map(({ action }) => action),
  ["rejected_events.retry", "rejected_events.retry"],
);
const runs = data(await client.GET("/api/v1/sync-runs", { headers: as(admin) }));
same("runs", runs, { items: [], next_cursor: null });

// Projects, their relations, and what one of them used.
const page = data(
  await client.GET("/api/v1/projects", {
    headers: as(admin),
    params: { query: { cloud: "eu1", external_id: "p1" } },
  }),
);
const own = page.items[0]?.id ?? "";
const group = data(
  await client.POST("/api/v1/projects", {
    headers: as(admin),
    body: { platform: "meta", cloud: "meta", external_id: "group", metadata: { owner: "billing" } },
  }),
);
const renamed = data(
  await client.PATCH("/api/v1/projects/{id}", {
    headers: as(admin),
    params: { path: { id: own } },
    body: { name: "Project one" },
  }),
);
same("renamed", [renamed.name, renamed.external_id], ["Project one", "p1"]);
const relation = data(
  await client.POST("/api/v1/projects/{id}/relations", {
    headers: as(admin),
    params: { path: { id: own } },
    body: { target_id: group.id, relation_type: "member_of" },
  }),
);
const related = data(
  await client.GET("/api/v1/projects/{id}/related", { headers: as(admin), params: { path: { id: own } } }),
);
same("related", related.items.length, 1);
const closed = await client.DELETE("/api/v1/projects/{id}/relations/{relation_id}", {
  headers: as(admin),
  params: { path: { id: own, relation_id: relation.id } },
});
same("closed", closed.response.status, 204);
const summary = data(
  await client.GET("/api/v1/projects/{id}/summary", {
    headers: as(project),
    params: {
      path: { id: own },
      query: { from: "2026-03-01T00:00:00Z", to: "2026-04-01T00:00:00Z" },
    },
  }),
);
same("summary", JSON.stringify(summary).includes(`"total_minutes":${3 * 24 * 60}`), true);

// Faults are typed, too.
const forbidden = await client.GET("/api/v1/audit-log", { headers: as(project) });
same("forbidden", [forbidden.response.status, forbidden.error?.status], [403, 403]);
console.log("round trip done");
