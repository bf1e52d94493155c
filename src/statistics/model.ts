/** The bodies of the statistics, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";

const count = (description: string) => Type.Integer({ format: "int64", description });

export const ResourceStatsItem = Type.Object(
  {
    cloud: Type.String({ description: "The installation that the resources are in." }),
    resource_type: Type.String({ description: "What kind of thing they are." }),
    state: Type.Optional(Type.String({ description: "Their state; only where `group_by` names it." })),
    platform: Type.Optional(Type.String({ description: "Their platform; only where `group_by` names it." })),
    project_id: Type.Optional(
      Type.String({ description: "Their owner, by the cloud's own id; only where `group_by` names it." }),
    ),
    count: count("How many resources share these values."),
  },
  { $id: "ResourceStatsItem", description: "One group of resources." },
);

export const ResourceStatsList = Type.Object(
  {
    items: Type.Array(Type.Ref("ResourceStatsItem"), {
      description:
        "The groups, by cloud, resource_type, state, platform and project_id; a group of nothing isn't there.",
    }),
  },
  { $id: "ResourceStatsList", description: "How many resources there are, or were." },
);

export const EventStatsItem = Type.Object(
  {
    bucket: Type.String({
      format: "date-time",
      description:
        "When the hour or the UTC day begins that the events fall in. It may lie before `from`; what is counted doesn't.",
    }),
    cloud: Type.String({ description: "The installation that the events tell of." }),
    event_type: Type.String({ description: "What happened." }),
    source: Type.Optional(
      Type.String({ description: "collector or reconciliation; only where `group_by` names it." }),
    ),
    count: count("How many events share these values."),
  },
  { $id: "EventStatsItem", description: "One group of events." },
);

export const EventStatsList = Type.Object(
  {
    items: Type.Array(Type.Ref("EventStatsItem"), {
      description:
        "The groups, by bucket, cloud, event_type and source; an hour or day without events isn't there.",
    }),
  },
  { $id: "EventStatsList", description: "How many events there were, over time." },
);
