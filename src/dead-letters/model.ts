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
    reason: Type.String({ description: "Why, in the words that its sender was told." }),
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
