/** GET /api/v1/events, /api/v1/resources, one resource's events and lifecycle. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { apiCaller, type Scope } from "../access/callers.ts";
import type { ResourceKey } from "../event/event.ts";
import { storedInstant } from "../event/instant.ts";
import { storedEventJson } from "../event/stored.ts";
import { jsonAnswer, pageAnswer } from "../http/json.ts";
import { operation } from "../http/operation.ts";
import { after, encodeCursor, instantOf, positionOf } from "../http/page.ts";
import { choiceParam, cursorParam, instantParam, limitParam, textParam } from "../http/parameters.ts";
import type { Services } from "../http/services.ts";
import { Problem } from "../problem.ts";
import { lifecycleJson } from "./answers.ts";
import { EVENT, HISTORY_START, RESOURCE } from "./examples.ts";
import { MAX_HISTORY, readHistory } from "./history.ts";
import { type EventPosition, pageOfEvents, pageOfResources } from "./list-queries.ts";
import { EventList, Lifecycle, ResourceList } from "./model.ts";

const listEvents = operation({
  id: "listEvents",
  tag: "Events",
  summary: "List stored events",
  description:
    "By timestamp and event_id. A token of role project reads the events that name one of its projects, also those of resources that have another owner by now.",
  security: "apiToken",
  query: Type.Object({
    cloud: Type.Optional(textParam("Events of this cloud.")),
    platform: Type.Optional(textParam("Events of this platform.")),
    project_id: Type.Optional(
      textParam("Events that name this project; one out of the token's scope is a 403."),
    ),
    resource_type: Type.Optional(textParam("Events of resources of this type.")),
    resource_id: Type.Optional(textParam("Events of the resource with this id.")),
    event_type: Type.Optional(textParam("Events of exactly this type.")),
    source: Type.Optional(choiceParam("Events of this pipeline.", ["collector", "reconciliation"])),
    from: Type.Optional(instantParam("Events at this timestamp or later.")),
    to: Type.Optional(instantParam("Events before this timestamp.")),
    limit: limitParam,
    cursor: Type.Optional(cursorParam),
  }),
  answers: {
    200: { schema: EventList, description: "A page.", example: { items: [EVENT], next_cursor: null } },
  },
  problems: [{ kind: "forbidden", detail: "project_id is none of this token's projects" }],
});

const listResources = operation({
  id: "listResources",
  tag: "Resources",
  summary: "List what there is",
  description:
    "By cloud, type and id. A token of role project sees what its projects own now. A deleted resource keeps its row for ever.",
  security: "apiToken",
  query: Type.Object({
    cloud: Type.Optional(textParam("Resources of this cloud.")),
    platform: Type.Optional(textParam("Resources of this platform.")),
    project_id: Type.Optional(
      textParam("Resources that this project owns; one out of the token's scope is a 403."),
    ),
    resource_type: Type.Optional(textParam("Resources of this type.")),
    state: Type.Optional(textParam("Resources in exactly this state.")),
    status: choiceParam(
      "Living resources, deleted ones, or both. Independent of `state`: a contradiction finds nothing.",
      ["active", "deleted", "all"],
      "active",
    ),
    limit: limitParam,
    cursor: Type.Optional(cursorParam),
  }),
  answers: {
    200: { schema: ResourceList, description: "A page.", example: { items: [RESOURCE], next_cursor: null } },
  },
  problems: [{ kind: "forbidden", detail: "project_id is none of this token's projects" }],
});

const resourceParams = Type.Object({
  cloud: textParam("The resource's cloud."),
  resource_type: textParam("The resource's type."),
  resource_id: textParam("The resource's id; percent-encode what it holds of slashes and the like."),
});

const listResourceEvents = operation({
  id: "listResourceEvents",
  tag: "Resources",
  summary: "Read a resource's history",
  description:
    "In the order in which it is folded: timestamp, received_at, event_id. Whole, so next_cursor is null; over 10,000 stored events, or 256 MiB of their payloads, are refused. A token of role project reads resources that its projects own now, and of their events those that name its projects.",
  security: "apiToken",
  params: resourceParams,
  answers: {
    200: { schema: EventList, description: "The history.", example: { items: [EVENT], next_cursor: null } },
  },
  problems: [
    "not_found",
    { kind: "history_too_long", detail: `the resource has more than ${MAX_HISTORY} stored events` },
  ],
});

const getLifecycle = operation({
  id: "getResourceLifecycle",
  tag: "Resources",
  summary: "Read what of a resource is billed",
  description:
    "Folds the history into billable intervals. Who may read it, which events count and how many there may be is as for the history. After a transfer the new owner's intervals start there, and a warning says that the history doesn't open with a create.",
  security: "apiToken",
  params: resourceParams,
  answers: {
    200: {
      schema: Lifecycle,
      description: "The resource, its history and its intervals.",
      example: { resource: RESOURCE, events: [EVENT], intervals: [HISTORY_START], warnings: [] },
    },
  },
  problems: [
    "not_found",
    { kind: "history_too_long", detail: `the resource has more than ${MAX_HISTORY} stored events` },
  ],
});

/** A filter by a project that the token has nothing to do with is refused rather than answered with nothing. */
function checkProjectFilter(scope: Scope, cloud: string | undefined, projectId: string | undefined): void {
  if (scope === null || projectId === undefined) return;
  if (scope.some((own) => own.projectId === projectId && (cloud ?? own.cloud) === own.cloud)) return;
  throw new Problem("forbidden", "project_id is none of this token's projects");
}

function eventPosition(cursor: string): EventPosition {
  const [micros, eventId = ""] = positionOf("events", cursor, 2);
  return { timestamp: instantOf(micros), eventId };
}

/** @param event its JSON. */
function eventCursor(event: string): string {
  const { timestamp, event_id: eventId }: { timestamp: string; event_id: string } = JSON.parse(event);
  return encodeCursor("events", [String(storedInstant(timestamp)), eventId]);
}

function resourcePosition(cursor: string): ResourceKey {
  const [cloud = "", resourceType = "", resourceId = ""] = positionOf("resources", cursor, 3);
  return { cloud, resourceType, resourceId };
}

/** @param resource its JSON. */
function resourceCursor(resource: string): string {
  const { cloud, resource_type: type, resource_id: id }: Record<string, string> = JSON.parse(resource);
  return encodeCursor("resources", [cloud ?? "", type ?? "", id ?? ""]);
}

export function inventoryRoutes(services: Services) {
  const { db } = services;
  const keyOf = (params: { cloud: string; resource_type: string; resource_id: string }) => ({
    cloud: params.cloud,
    resourceType: params.resource_type,
    resourceId: params.resource_id,
  });

  return new Elysia({ name: "inventory" })
    .get(
      "/api/v1/events",
      async ({ request }) => {
        const { scope } = await apiCaller(services, request, "project");
        const query = listEvents.readQuery(request);
        checkProjectFilter(scope, query.cloud, query.project_id);
        const filter = {
          cloud: query.cloud ?? null,
          platform: query.platform ?? null,
          projectId: query.project_id ?? null,
          resourceType: query.resource_type ?? null,
          resourceId: query.resource_id ?? null,
          eventType: query.event_type ?? null,
          source: query.source ?? null,
          from: query.from ?? null,
          to: query.to ?? null,
        };
        const page = { limit: query.limit, after: after(query.cursor, eventPosition) };
        const { items, last } = await pageOfEvents(db, scope, filter, page);
        return pageAnswer(items, last && eventCursor(last));
      },
      listEvents.hook,
    )
    .get(
      "/api/v1/resources",
      async ({ request }) => {
        const { scope } = await apiCaller(services, request, "project");
        const query = listResources.readQuery(request);
        checkProjectFilter(scope, query.cloud, query.project_id);
        const filter = {
          cloud: query.cloud ?? null,
          platform: query.platform ?? null,
          projectId: query.project_id ?? null,
          resourceType: query.resource_type ?? null,
          state: query.state ?? null,
          status: query.status,
        };
        const page = { limit: query.limit, after: after(query.cursor, resourcePosition) };
        const { items, last } = await pageOfResources(db, scope, filter, page);
        return pageAnswer(items, last && resourceCursor(last));
      },
      listResources.hook,
    )
    .get(
      "/api/v1/resources/:cloud/:resource_type/:resource_id/events",
      async ({ request }) => {
        const { scope } = await apiCaller(services, request, "project");
        const key = keyOf(listResourceEvents.readParams(request));
        const { events } = await readHistory(db, scope, key);
        return pageAnswer(events.map(storedEventJson).join(","), null);
      },
      listResourceEvents.hook,
    )
    .get(
      "/api/v1/resources/:cloud/:resource_type/:resource_id/lifecycle",
      async ({ request }) => {
        const { scope } = await apiCaller(services, request, "project");
        const key = keyOf(getLifecycle.readParams(request));
        return jsonAnswer(lifecycleJson(await readHistory(db, scope, key)));
      },
      getLifecycle.hook,
    );
}
