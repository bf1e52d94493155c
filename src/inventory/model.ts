/** The bodies of the read side, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";
import { pageOf } from "../http/page-model.ts";

const instant = (description: string) => Type.String({ format: "date-time", description });
const instantOrNull = (description: string) =>
  Type.Union([Type.String({ format: "date-time" }), Type.Null()], { description });
const anyObject = (description: string) => Type.Object({}, { additionalProperties: true, description });
const anyObjectOrNull = (description: string) =>
  Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()], { description });

export const StoredEvent = Type.Object(
  {
    event_id: Type.String({ description: "The key that makes sending it again harmless." }),
    timestamp: instant("When it happened."),
    event_type: Type.String({
      description: "What happened, like compute.instance.create.end or sync.update.",
    }),
    platform: Type.String({ description: "The platform of the resource." }),
    cloud: Type.String({ description: "The installation that the resource is in." }),
    resource_type: Type.String({ description: "What kind of thing the resource is." }),
    resource_id: Type.String({ description: "The cloud's own id of the resource." }),
    project_id: Type.String({
      description: "Who owned the resource from this event on, by the cloud's own id.",
    }),
    source: Type.String({
      description:
        "collector, or reconciliation for a correction by Tally's own comparison with the cloud. Recorded by Tally, not taken from the sender.",
    }),
    payload: anyObjectOrNull(
      "What was stored with it, every member and digit; null for a delete that came without.",
    ),
    received_at: instant("When Tally stored it."),
  },
  { $id: "StoredEvent", description: "An event as the record holds it, for ever." },
);

export const EventList = pageOf(
  "EventList",
  "The events, by timestamp and then event_id.",
  Type.Ref("StoredEvent"),
  "Stored events, a page at a time.",
);

export const Resource = Type.Object(
  {
    cloud: Type.String({ description: "The installation that the resource is in." }),
    resource_type: Type.String({ description: "What kind of thing it is." }),
    resource_id: Type.String({ description: "The cloud's own id of it." }),
    platform: Type.String({ description: "The platform that it runs on." }),
    project_id: Type.String({ description: "Who owns it now." }),
    state: Type.String({
      description: "Its present state; deleted once it is gone, whatever the event said.",
    }),
    size: anyObject("The size last reported, every digit of it; {} where none ever was."),
    created_at: instantOrNull(
      "Its first create; null where the history shows none. Folded from all events, those of earlier owners too, so it is no start of billing: the lifecycle's intervals are.",
    ),
    deleted_at: instantOrNull("Its delete; null while it lives."),
    first_event_at: instant(
      "Its earliest event, whatever that was and whoever owned it then: when it entered the record.",
    ),
    last_event_at: instant("Its newest event."),
    last_event_type: Type.String({ description: "What that event was." }),
    last_payload: anyObjectOrNull("What that event carried; null where it carried nothing."),
  },
  { $id: "Resource", description: "A resource as all its events together tell it to be now." },
);

export const ResourceList = pageOf(
  "ResourceList",
  "The resources, by cloud, type and id.",
  Type.Ref("Resource"),
  "Resources, a page at a time.",
);

export const LifecycleInterval = Type.Object(
  {
    from: instant("Its first instant."),
    to: instantOrNull("The first instant after it; null while it goes on."),
    state: Type.String({ description: "The state all through it." }),
    size: anyObject("The size all through it."),
    project_id: Type.String({ description: "The owner all through it." }),
  },
  {
    $id: "LifecycleInterval",
    description: "A span of time, [from, to), in which nothing that is billed changed.",
  },
);

export const Lifecycle = Type.Object(
  {
    resource: Type.Ref("Resource"),
    events: Type.Array(Type.Ref("StoredEvent"), {
      description: "What was folded, by timestamp, received_at and event_id.",
    }),
    intervals: Type.Array(Type.Ref("LifecycleInterval"), {
      description: "What is billed, oldest first. Changes at one instant leave nothing between them.",
    }),
    warnings: Type.Array(Type.String(), {
      description:
        "What the history leaves open: history_starts_without_create, event_after_delete. Each once.",
    }),
  },
  {
    $id: "Lifecycle",
    description:
      "A resource, its history, and what follows from it for a bill. `resource` is folded from everything that happened; `events`, `intervals` and `warnings` from what the reader's projects own.",
  },
);
