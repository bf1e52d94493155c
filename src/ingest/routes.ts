/** POST /api/v1/events. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { ingestCaller } from "../access/callers.ts";
import { BATCH_MAX_ITEMS } from "../event/bounds.ts";
import { jsonAnswer } from "../http/json.ts";
import { operation } from "../http/operation.ts";
import type { Services } from "../http/services.ts";
import { Problem } from "../problem.ts";
import { groupedIngest } from "./group.ts";
import { EventInput, IngestResult } from "./model.ts";

const ingestEvents = operation({
  id: "ingestEvents",
  tag: "Ingest",
  summary: "Hand in lifecycle events",
  description:
    "One event or an array of at most 1000. Each item is judged by itself: a refused one never touches its neighbours. The answer leaves after everything is durable, so a collector may drop the whole batch from its buffer; a refused item must not be sent again.",
  security: "ingestToken",
  body: {
    schema: Type.Union([EventInput, Type.Array(EventInput, { maxItems: BATCH_MAX_ITEMS })]),
    required: true,
    strict: false,
    example: [
      {
        event_id: "5f0c2a1e-8f8b-4a55-9a37-0a1f3f6d2c11",
        timestamp: "2026-03-01T08:00:00.25Z",
        event_type: "compute.instance.create.end",
        platform: "openstack",
        cloud: "os-prod-eu1",
        resource_type: "instance",
        resource_id: "257fe5d3-eaff-41eb-9df0-9ec4e06509c9",
        project_id: "1bc556d8a78249379a07b5a94c533e7a",
        payload: { state: "active", size: { vcpus: 2, ram_gb: 4, disk_gb: 40, flavor: "m1.medium" } },
      },
    ],
  },
  answers: {
    200: {
      schema: IngestResult,
      description: "What became of each item.",
      example: {
        accepted: 1,
        duplicates: 0,
        rejected: [{ index: 1, event_id: "a1", reason: "size_schema: 'vcpus' is a required property" }],
      },
    },
  },
  problems: [{ kind: "payload_too_large", detail: tooMany(BATCH_MAX_ITEMS + 1) }],
});

function tooMany(items: number): string {
  return `A request takes at most ${BATCH_MAX_ITEMS} events, this one holds ${items}; none of them was stored.`;
}

export function ingestRoutes(services: Services) {
  const ingest = groupedIngest({
    db: services.db,
    metrics: services.metrics,
    requireSizeSchema: services.settings.requireSizeSchema,
  });
  return new Elysia({ name: "ingest" }).post(
    "/api/v1/events",
    async ({ request }) => {
      const { actor, scope } = await ingestCaller(services, request);
      const { text, value } = await ingestEvents.readBody(request);
      if (Array.isArray(value) && value.length > BATCH_MAX_ITEMS) {
        throw new Problem("payload_too_large", tooMany(value.length));
      }
      const outcome = await ingest({ actor, scope, source: "collector" }, text, value);
      return jsonAnswer(JSON.stringify(outcome));
    },
    ingestEvents.hook,
  );
}
