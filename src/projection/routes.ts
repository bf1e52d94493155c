/** POST /internal/projection/rebuild. */
import { Elysia } from "elysia";
import { internalCaller } from "../access/callers.ts";
import { jsonAnswer } from "../http/json.ts";
import { operation } from "../http/operation.ts";
import type { Services } from "../http/services.ts";
import { RebuildRequest, RebuildResult } from "./model.ts";
import { rebuild } from "./rebuild.ts";

const rebuildProjection = operation({
  id: "rebuildProjection",
  tag: "Internal",
  summary: "Replay stored history into the projection",
  description:
    "Works in bounded batches while events keep coming in. Rows come out as they are when the projection is sound; the rebuild is for when it isn't.",
  security: "internalToken",
  body: { schema: RebuildRequest, required: false, strict: true, example: { cloud: "os-prod-eu1" } },
  answers: {
    200: { schema: RebuildResult, description: "The rebuild is complete.", example: { rebuilt: 1842 } },
  },
});

export function projectionRoutes(services: Services) {
  return new Elysia({ name: "projection" }).post(
    "/internal/projection/rebuild",
    async ({ request }) => {
      const { actor } = internalCaller(services, request);
      const { value } = await rebuildProjection.readBody(request);
      const filter = { cloud: value?.cloud ?? null, resourceType: value?.resource_type ?? null };
      const rebuilt = await rebuild(services.db, actor, filter);
      return jsonAnswer(JSON.stringify({ rebuilt }));
    },
    rebuildProjection.hook,
  );
}
