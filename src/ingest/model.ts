/** The bodies of ingest, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";

export const EventInput = Type.Object(
  {
    event_id: Type.Optional(
      Type.Unknown({
        description: "The idempotency key, 1 to 256 bytes. The same id at the same timestamp is a duplicate.",
      }),
    ),
    timestamp: Type.Optional(
      Type.Unknown({ description: "When it happened: RFC 3339 with an offset, down to the microsecond." }),
    ),
    event_type: Type.Optional(
      Type.Unknown({
        description:
          "What happened: dotted parts of a-z, 0-9 and _, like compute.instance.create.end. A part create or delete decides the effect.",
      }),
    ),
    platform: Type.Optional(
      Type.Unknown({ description: "The platform that the resource lives on; never meta or partner." }),
    ),
    cloud: Type.Optional(
      Type.Unknown({ description: "The installation that the resource lives in; never meta or partner." }),
    ),
    resource_type: Type.Optional(
      Type.Unknown({ description: "The kind of resource, like instance or volume." }),
    ),
    resource_id: Type.Optional(Type.Unknown({ description: "The resource, as its cloud names it." })),
    project_id: Type.Optional(
      Type.Unknown({ description: "The project that owns the resource at or after this event." }),
    ),
    source: Type.Optional(
      Type.Unknown({
        description: "May be left out. Whatever it says, the pipeline's own source is what is stored.",
      }),
    ),
    payload: Type.Optional(
      Type.Unknown({
        description:
          "state (required but on a delete), size (the full size object; required on a create), provider (raw data kept for audit), and whatever else came along.",
      }),
    ),
  },
  {
    $id: "EventInput",
    description:
      "One lifecycle event as a collector sends it. Each item is judged by itself; the answer tells its fate.",
    additionalProperties: true,
  },
);

export const RejectedEvent = Type.Object(
  {
    index: Type.Integer({ description: "The item's position in the request, from 0." }),
    event_id: Type.String({
      description:
        "The event id that the item carried, its first 1024 bytes at most; empty where it carried none.",
    }),
    reason: Type.String({
      description: "Why, prefixed by the check that refused it: schema, scope or size_schema.",
    }),
  },
  { $id: "RejectedEvent", description: "One refused item. Sending it again unchanged is refused again." },
);

export const IngestResult = Type.Object(
  {
    accepted: Type.Integer({ description: "Events stored by this call." }),
    duplicates: Type.Integer({
      description: "Items that were stored already, or stand twice in the request.",
    }),
    rejected: Type.Array(Type.Ref("RejectedEvent"), {
      description: "One entry a refused item, in the request's order.",
    }),
  },
  {
    $id: "IngestResult",
    description:
      "What became of each item. The three counts add up to the number of items; all of it is durable.",
  },
);
