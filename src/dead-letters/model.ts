/** The bodies of the dead letters, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";
import { pageOf } from "../http/page-model.ts";

export const DeadLetteredEvent = Type.Object(
  {
    id: Type.String({
      format: "uuid",
      description: "The dead letter's own id; an item's can't be relied on.",
    }),
    received_at: Type.String({ format: "date-time", description: "When it was refused." }),
    reason: Type.String({
      description: "Why, in the words that its sender was told, or that the last retry gave.",
    }),
    raw: Type.Unknown({
      description:
        'The item as it came, any JSON value, NUL characters taken out. One over 64 KiB is `{"not_stored": {"bytes": n}}`.',
    }),
  },
  { $id: "DeadLetteredEvent", description: "An item that ingest refused." },
);

export const DeadLetterList = pageOf(
  "DeadLetterList",
  "The refused items, by received_at and id.",
  Type.Ref("DeadLetteredEvent"),
  "Refused items, a page at a time.",
);

export const RetriedEvent = Type.Object(
  {
    id: Type.String({ format: "uuid", description: "The dead letter." }),
    outcome: Type.Unsafe<"stored" | "duplicate" | "refused" | "already_resolved">({
      type: "string",
      enum: ["stored", "duplicate", "refused", "already_resolved"],
      description:
        "stored: the event is in the record now. duplicate: it was already. refused: it is not, and `reason` says why. already_resolved: an earlier retry did it, this one changed nothing.",
    }),
    reason: Type.Union([Type.String(), Type.Null()], {
      description: "Why it was refused this time; null where it wasn't.",
    }),
    resolved_at: Type.Union([Type.String({ format: "date-time" }), Type.Null()], {
      description: "When it was resolved; null where it is still open.",
    }),
  },
  { $id: "RetriedEvent", description: "What a retry made of one refused item." },
);

export const RetryResult = Type.Object(
  {
    retried: Type.Integer({ description: "Items that went through the pipeline: resolved + refused." }),
    resolved: Type.Integer({ description: "Items that are in the record now, or were already." }),
    refused: Type.Integer({ description: "Items that were refused again, each with its new reason." }),
    remaining: Type.Integer({ description: "Items behind the last one, which `limit` kept out." }),
    next_cursor: Type.Union([Type.String(), Type.Null()], {
      description: "Hand it back as `cursor` to go on with the remaining ones; null where there are none.",
    }),
  },
  { $id: "RetryResult", description: "What a retry of many refused items came to." },
);
