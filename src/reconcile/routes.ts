/** GET /api/v1/sync-runs. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { apiCaller } from "../access/callers.ts";
import { storedInstant } from "../event/instant.ts";
import { pageAnswer } from "../http/json.ts";
import { roleNeeded } from "../http/needed.ts";
import { operation } from "../http/operation.ts";
import { after, encodeCursor, instantOf, positionOf, uuidOf } from "../http/page.ts";
import { choiceParam, cursorParam, limitParam, textParam } from "../http/parameters.ts";
import type { Services } from "../http/services.ts";
import { SyncRunList } from "./model.ts";
import { pageOfRuns } from "./queries.ts";

const listSyncRuns = operation({
  id: "listSyncRuns",
  tag: "Reconciliation",
  summary: "List the reconciliation runs",
  description: "Takes a token of role read_all. Newest first, by started_at and id.",
  security: "apiToken",
  query: Type.Object({
    cloud: Type.Optional(textParam("Runs over this cloud.")),
    status: Type.Optional(choiceParam("Runs in this state.", ["running", "completed", "failed"])),
    limit: limitParam,
    cursor: Type.Optional(cursorParam),
  }),
  answers: {
    200: {
      schema: SyncRunList,
      description: "A page.",
      example: {
        items: [
          {
            id: "0c9d5f2e-58a1-4a77-9a0e-64a6f0b5c001",
            cloud: "os-prod-eu1",
            platform: "openstack",
            status: "completed",
            started_at: "2026-03-01T08:00:00Z",
            finished_at: "2026-03-01T08:00:07.25Z",
            stats: {
              created: 3,
              updated: 12,
              deleted: 1,
              deferred: { transitional: 2, recent: 1 },
              errors: [],
              error_count: 0,
            },
          },
        ],
        next_cursor: null,
      },
    },
  },
  problems: [{ kind: "forbidden", detail: roleNeeded("read_all") }],
});

const LIST = "sync-runs";

function readPosition(cursor: string) {
  const [micros, id] = positionOf(LIST, cursor, 2);
  return { startedAt: instantOf(micros), id: uuidOf(id) };
}

/** @param run its JSON. */
function runCursor(run: string): string {
  const { started_at: startedAt, id }: { started_at: string; id: string } = JSON.parse(run);
  return encodeCursor(LIST, [String(storedInstant(startedAt)), id]);
}

export function reconcileRoutes(services: Services) {
  const { db } = services;
  return new Elysia({ name: "reconcile" }).get(
    "/api/v1/sync-runs",
    async ({ request }) => {
      await apiCaller(services, request, "read_all");
      const query = listSyncRuns.readQuery(request);
      const filter = { cloud: query.cloud ?? null, status: query.status ?? null };
      const page = { limit: query.limit, after: after(query.cursor, readPosition) };
      const { items, last } = await pageOfRuns(db, filter, page);
      return pageAnswer(items, last && runCursor(last));
    },
    listSyncRuns.hook,
  );
}
