/** GET /api/v1/rejected-events. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { apiCaller } from "../access/callers.ts";
import { snapshot } from "../database/snapshot.ts";
import { formatInstant } from "../event/instant.ts";
import { pageAnswer } from "../http/json.ts";
import { operation } from "../http/operation.ts";
import { after, cursorFault, cut, encodeCursor, instantOf, positionOf } from "../http/page.ts";
import { cursorParam, instantParam, limitParam } from "../http/parameters.ts";
import type { Services } from "../http/services.ts";
import { DeadLetterList } from "./model.ts";
import { type DeadLetter, pageOfDeadLetters } from "./queries.ts";

const listRejectedEvents = operation({
  id: "listRejectedEvents",
  tag: "Events",
  summary: "List refused items",
  description: "Takes a token of role admin. By received_at and id.",
  security: "apiToken",
  query: Type.Object({
    from: Type.Optional(instantParam("Items refused at this instant or later.")),
    to: Type.Optional(instantParam("Items refused before this instant.")),
    limit: limitParam,
    cursor: Type.Optional(cursorParam),
  }),
  answers: {
    200: {
      schema: DeadLetterList,
      description: "A page.",
      example: {
        items: [
          {
            id: "6f1c9a52-6f0e-4f43-8f0a-0d3c7a5b7e11",
            received_at: "2026-03-01T08:00:02.000001Z",
            reason: "size_schema: 'vcpus' is a required property",
            raw: { event_id: "a1", payload: { size: {} } },
          },
        ],
        next_cursor: null,
      },
    },
  },
  problems: ["forbidden"],
});

function deadLetterPosition(cursor: string) {
  const [micros, id = ""] = positionOf("rejected-events", cursor, 2);
  if (!/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(id)) throw cursorFault();
  return { receivedAt: instantOf(micros), id };
}

/** The component `DeadLetteredEvent`. */
function deadLetterJson({ id, receivedAt, reason, raw }: DeadLetter): string {
  return `{"id":"${id}","received_at":"${formatInstant(receivedAt)}","reason":${JSON.stringify(reason)},"raw":${raw}}`;
}

export function deadLetterRoutes(services: Services) {
  const { db } = services;
  return new Elysia({ name: "dead-letters" }).get(
    "/api/v1/rejected-events",
    async ({ request }) => {
      await apiCaller(services, request, "admin");
      const query = listRejectedEvents.readQuery(request);
      const window = { from: query.from ?? null, to: query.to ?? null };
      const page = { limit: query.limit + 1, after: after(query.cursor, deadLetterPosition) };
      const rows = await snapshot(db, (tx) => pageOfDeadLetters(tx, window, page));
      const { items, last } = cut(rows, query.limit);
      const next = last && encodeCursor("rejected-events", [String(last.receivedAt), last.id]);
      return pageAnswer(items.map(deadLetterJson), next);
    },
    listRejectedEvents.hook,
  );
}
