/** GET /api/v1/audit-log. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { storedInstant } from "../event/instant.ts";
import { pageAnswer } from "../http/json.ts";
import { roleNeeded } from "../http/needed.ts";
import { operation } from "../http/operation.ts";
import { after, cursorFault, encodeCursor, instantOf, positionOf } from "../http/page.ts";
import { cursorParam, instantParam, limitParam, textParam } from "../http/parameters.ts";
import type { Services } from "../http/services.ts";
import { apiCaller } from "./callers.ts";
import { type LogPosition, pageOfLog } from "./log.ts";
import { AuditList } from "./model.ts";

const listAuditLog = operation({
  id: "listAuditLog",
  tag: "Audit",
  summary: "Read what was done, and by whom",
  description: "Takes a token of role admin. Oldest first, by at and id. Every write has its entry.",
  security: "apiToken",
  query: Type.Object({
    actor: Type.Optional(textParam("What this credential, token or part of Tally did.")),
    action: Type.Optional(textParam("Entries of exactly this action.")),
    object_type: Type.Optional(textParam("What was done to things of this kind.")),
    from: Type.Optional(instantParam("Entries of this instant or later.")),
    to: Type.Optional(instantParam("Entries before this instant.")),
    limit: limitParam,
    cursor: Type.Optional(cursorParam),
  }),
  answers: {
    200: {
      schema: AuditList,
      description: "A page.",
      example: {
        items: [
          {
            id: 42,
            at: "2026-03-01T08:00:02.000001Z",
            actor: "0d0a4a4e-6a4e-4c39-9d3b-2f1f5a1f8a10",
            action: "events.ingest",
            object_type: "batch",
            object_id: "os-prod-eu1",
            details: { source: "collector", accepted: 998, duplicates: 1, rejected: 1 },
          },
        ],
        next_cursor: null,
      },
    },
  },
  problems: [{ kind: "forbidden", detail: roleNeeded("admin") }],
});

const LIST = "audit-log";

function readPosition(cursor: string): LogPosition {
  const [micros, id = ""] = positionOf(LIST, cursor, 2);
  if (!/^[1-9]\d{0,17}$/.test(id)) throw cursorFault();
  return { at: instantOf(micros), id };
}

/** @param entry its JSON. */
function entryCursor(entry: string): string {
  const { at, id }: { at: string; id: number } = JSON.parse(entry);
  return encodeCursor(LIST, [String(storedInstant(at)), String(id)]);
}

export function auditRoutes(services: Services) {
  const { db } = services;
  return new Elysia({ name: "audit" }).get(
    "/api/v1/audit-log",
    async ({ request }) => {
      await apiCaller(services, request, "admin");
      const query = listAuditLog.readQuery(request);
      const filter = {
        actor: query.actor ?? null,
        action: query.action ?? null,
        objectType: query.object_type ?? null,
        from: query.from ?? null,
        to: query.to ?? null,
      };
      const page = { limit: query.limit, after: after(query.cursor, readPosition) };
      const { items, last } = await pageOfLog(db, filter, page);
      return pageAnswer(items, last && entryCursor(last));
    },
    listAuditLog.hook,
  );
}
