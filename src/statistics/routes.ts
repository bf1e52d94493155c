/** GET /api/v1/stats/resources and /api/v1/stats/events. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { apiCaller } from "../access/callers.ts";
import { jsonAnswer } from "../http/json.ts";
import { operation } from "../http/operation.ts";
import { choiceParam, instantParam, namesParam } from "../http/parameters.ts";
import type { Services } from "../http/services.ts";
import { groupsJson } from "./answers.ts";
import { eventGroups, MAX_WINDOW_DAYS, RESOURCE_DIMENSIONS, resourceGroups } from "./count.ts";
import { MAX_GROUPS, tooManyDetail } from "./groups.ts";
import { EventStatsList, ResourceStatsList } from "./model.ts";

const TOO_MANY = `More than ${MAX_GROUPS.toLocaleString("en")} groups are refused, counted by every dimension whatever \`group_by\` names.`;

const countResources = operation({
  id: "getResourceStats",
  tag: "Statistics",
  summary: "Count resources, now or at a past instant",
  description: `A token of role project counts what its projects own, and with \`at\` what they owned then. ${TOO_MANY}`,
  security: "apiToken",
  query: Type.Object({
    group_by: namesParam(
      "What to count by. cloud and resource_type must be among the names.",
      RESOURCE_DIMENSIONS,
      ["cloud", "resource_type"],
    ),
    status: choiceParam(
      "Living resources, deleted ones, or both; with `at`, what they were then.",
      ["active", "deleted", "all"],
      "active",
    ),
    at: Type.Optional(
      instantParam(
        "Counts the fleet as it stood at this instant, folded from the events up to it; one at the very instant has happened. What arrives late counts from when it happened.",
      ),
    ),
  }),
  answers: {
    200: {
      schema: ResourceStatsList,
      description: "The groups.",
      example: {
        items: [
          { cloud: "os-prod-eu1", resource_type: "instance", state: "active", count: 1204 },
          { cloud: "os-prod-eu1", resource_type: "instance", state: "shutoff", count: 87 },
          { cloud: "os-prod-eu1", resource_type: "volume", state: "in-use", count: 1530 },
        ],
      },
    },
  },
  problems: [{ kind: "result_too_large", detail: tooManyDetail("the resources") }],
});

const countEvents = operation({
  id: "getEventStats",
  tag: "Statistics",
  summary: "Count events over time",
  description: `By hours or days of UTC. A token of role project counts the events that name one of its projects. A window wider than ${MAX_WINDOW_DAYS} days is refused; an empty or inverted one holds nothing. ${TOO_MANY}`,
  security: "apiToken",
  query: Type.Object({
    group_by: namesParam(
      "What to count by, beside the hour or day. cloud and event_type must be among the names.",
      ["cloud", "event_type", "source"],
      ["cloud", "event_type"],
    ),
    from: instantParam("Events at this timestamp or later."),
    to: instantParam("Events before this timestamp."),
    interval: choiceParam("The width of a bucket: an hour or a day.", ["1h", "1d"]),
  }),
  answers: {
    200: {
      schema: EventStatsList,
      description: "The groups.",
      example: {
        items: [
          {
            bucket: "2026-03-01T00:00:00Z",
            cloud: "os-prod-eu1",
            event_type: "compute.instance.create.end",
            source: "collector",
            count: 42,
          },
        ],
      },
    },
  },
  problems: [{ kind: "result_too_large", detail: `the window is wider than ${MAX_WINDOW_DAYS} days` }],
});

export function statisticsRoutes(services: Services) {
  const { db } = services;
  return new Elysia({ name: "statistics" })
    .get(
      "/api/v1/stats/resources",
      async ({ request }) => {
        const { scope } = await apiCaller(services, request, "project");
        const { group_by: groupBy, status, at } = countResources.readQuery(request);
        const groups = await resourceGroups(db, scope, { groupBy, status, at: at ?? null });
        return jsonAnswer(
          groupsJson(
            groups,
            RESOURCE_DIMENSIONS.filter((name) => groupBy.includes(name)),
          ),
        );
      },
      countResources.hook,
    )
    .get(
      "/api/v1/stats/events",
      async ({ request }) => {
        const { scope } = await apiCaller(services, request, "project");
        const { group_by: groupBy, from, to, interval } = countEvents.readQuery(request);
        const groups = await eventGroups(db, scope, { groupBy, from, to, interval });
        const source = groupBy.includes("source") ? (["source"] as const) : [];
        return jsonAnswer(groupsJson(groups, ["bucket", "cloud", "event_type", ...source]));
      },
      countEvents.hook,
    );
}
