/** GET /api/v1/rejected-events, and POST for their retries. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { apiCaller } from "../access/callers.ts";
import { formatInstant, storedInstant } from "../event/instant.ts";
import { jsonAnswer, pageAnswer } from "../http/json.ts";
import { roleNeeded } from "../http/needed.ts";
import { operation } from "../http/operation.ts";
import { after, encodeCursor, instantOf, positionOf, uuidOf } from "../http/page.ts";
import {
  choiceParam,
  cursorParam,
  instantParam,
  integerParam,
  limitParam,
  textParam,
  uuidParam,
} from "../http/parameters.ts";
import type { Services } from "../http/services.ts";
import { DeadLetterList, RetriedEvent, RetryResult } from "./model.ts";
import { type DeadLetterPosition, pageOfDeadLetters } from "./queries.ts";
import { retryLetter, retryLetters } from "./retry.ts";

/** Letters of one call: about ten seconds' work. */
const CALL_MAX_LETTERS = 10_000;

const filters = {
  from: Type.Optional(instantParam("Items refused at this instant or later.")),
  to: Type.Optional(instantParam("Items refused before this instant.")),
  reason: Type.Optional(
    choiceParam("Items whose reason is of this kind.", ["schema", "size_schema", "scope"]),
  ),
  cloud: Type.Optional(textParam("Items that name this cloud, whether it is their sender's or not.")),
};

const LETTER = {
  id: "6f1c9a52-6f0e-4f43-8f0a-0d3c7a5b7e11",
  received_at: "2026-03-01T08:00:02.000001Z",
  reason: "size_schema: 'vcpus' is a required property",
  raw: { event_id: "a1", payload: { size: {} } },
};

const listRejectedEvents = operation({
  id: "listRejectedEvents",
  tag: "Dead letters",
  summary: "List refused items",
  description:
    "Takes a token of role admin. By received_at and id. `scope` as a reason comes of retries only: an item that is out of scope when it is handed in is refused and not kept.",
  security: "apiToken",
  query: Type.Object({
    ...filters,
    status: choiceParam(
      "Items that wait for somebody, items that a retry has resolved, or both.",
      ["open", "resolved", "all"],
      "open",
    ),
    limit: limitParam,
    cursor: Type.Optional(cursorParam),
  }),
  answers: {
    200: {
      schema: DeadLetterList,
      description: "A page.",
      example: { items: [LETTER], next_cursor: null },
    },
  },
  problems: [{ kind: "forbidden", detail: roleNeeded("admin") }],
});

const retryRejectedEvent = operation({
  id: "retryRejectedEvent",
  tag: "Dead letters",
  summary: "Retry a refused item",
  description:
    "Takes a token of role admin. The item goes through the pipeline that refused it, under the platform and cloud of the credential that it came with. Stored now, or already: it is resolved and leaves the list. Refused again: it stays, with its new reason. NUL characters were taken out of it when it was kept, so an item that held some goes in without them: not quite what was sent. Asking again for a resolved one changes nothing. An item that was too large to keep can't be retried: 409.",
  security: "apiToken",
  params: Type.Object({ id: uuidParam("The dead letter.") }),
  answers: {
    200: {
      schema: RetriedEvent,
      description: "What became of it.",
      example: {
        id: LETTER.id,
        outcome: "stored",
        reason: null,
        resolved_at: "2026-03-02T09:00:00.5Z",
      },
    },
  },
  problems: [
    { kind: "forbidden", detail: roleNeeded("admin") },
    "not_found",
    { kind: "conflict", detail: "the item was too large to be kept, so there is nothing to retry" },
  ],
});

const retryRejectedEvents = operation({
  id: "retryRejectedEvents",
  tag: "Dead letters",
  summary: "Retry refused items",
  description:
    "Takes a token of role admin, and the list's filters. Each open item that they mean is retried once, oldest first, as it would be by itself, in transactions of at most 500. At most `limit` in one call; go on with `cursor` where some remain. Items that were too large to keep are left alone. What a call that ends early has resolved stays resolved.",
  security: "apiToken",
  query: Type.Object({
    ...filters,
    limit: integerParam("How many items are retried at most.", {
      minimum: 1,
      maximum: CALL_MAX_LETTERS,
      preset: CALL_MAX_LETTERS,
    }),
    cursor: Type.Optional(cursorParam),
  }),
  answers: {
    200: {
      schema: RetryResult,
      description: "How many went which way.",
      example: { retried: 1000, resolved: 998, refused: 2, remaining: 0, next_cursor: null },
    },
  },
  problems: [{ kind: "forbidden", detail: roleNeeded("admin") }],
});

const LIST = "rejected-events";

function readPosition(cursor: string): DeadLetterPosition {
  const [micros, id] = positionOf(LIST, cursor, 2);
  return { receivedAt: instantOf(micros), id: uuidOf(id) };
}

function writePosition({ receivedAt, id }: DeadLetterPosition): string {
  return encodeCursor(LIST, [String(receivedAt), id]);
}

/** @param letter its JSON. */
function letterCursor(letter: string): string {
  const { received_at: receivedAt, id }: { received_at: string; id: string } = JSON.parse(letter);
  return writePosition({ receivedAt: storedInstant(receivedAt), id });
}

export function deadLetterRoutes(services: Services) {
  const { db, metrics, settings } = services;
  const pipeline = { db, metrics, requireSizeSchema: settings.requireSizeSchema };
  const filterOf = (query: Pick<ReturnType<typeof listRejectedEvents.readQuery>, keyof typeof filters>) => ({
    from: query.from ?? null,
    to: query.to ?? null,
    kind: query.reason ?? null,
    cloud: query.cloud ?? null,
  });

  return new Elysia({ name: "dead-letters" })
    .get(
      "/api/v1/rejected-events",
      async ({ request }) => {
        await apiCaller(services, request, "admin");
        const query = listRejectedEvents.readQuery(request);
        const page = { limit: query.limit, after: after(query.cursor, readPosition) };
        const { items, last } = await pageOfDeadLetters(db, filterOf(query), query.status, page);
        return pageAnswer(items, last && letterCursor(last));
      },
      listRejectedEvents.hook,
    )
    .post(
      "/api/v1/rejected-events/retry",
      async ({ request }) => {
        const { actor } = await apiCaller(services, request, "admin");
        const query = retryRejectedEvents.readQuery(request);
        const bounds = { limit: query.limit, after: after(query.cursor, readPosition) };
        const { next, ...sums } = await retryLetters(pipeline, actor, filterOf(query), bounds);
        return jsonAnswer(JSON.stringify({ ...sums, next_cursor: next && writePosition(next) }));
      },
      retryRejectedEvents.hook,
    )
    .post(
      "/api/v1/rejected-events/:id/retry",
      async ({ request }) => {
        const { actor } = await apiCaller(services, request, "admin");
        const { id } = retryRejectedEvent.readParams(request);
        const fate = await retryLetter(pipeline, actor, id);
        return jsonAnswer(
          JSON.stringify({
            id,
            outcome: fate.outcome,
            reason: fate.outcome === "refused" ? fate.reason : null,
            resolved_at: fate.resolvedAt && formatInstant(fate.resolvedAt),
          }),
        );
      },
      retryRejectedEvent.hook,
    );
}
