/** The bodies of the project registry, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";
import { IDENTIFIER_MAX_BYTES } from "../event/bounds.ts";
import { pageOf } from "../http/page-model.ts";
import { instantParam, textParam, uuidParam } from "../http/parameters.ts";

const uuid = (description: string) => Type.String({ format: "uuid", description });
const instant = (description: string) => Type.String({ format: "date-time", description });
const anyObject = (description: string) =>
  Type.Unsafe<object>({ type: "object", additionalProperties: true, description });
const METADATA_BOUND =
  "At most 65,536 bytes as it is stored, with exponents spelled out; more is a 422. Numbers keep their digits.";

export const Uuid = Type.String({
  $id: "Uuid",
  format: "uuid",
  pattern: "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
  description: "An id that Tally gave, in either case.",
});

export const CreateProject = Type.Object(
  {
    platform: textParam(
      "The platform that the project is on. `meta` and `partner` are those of virtual projects, which own no resources: they group other projects.",
      IDENTIFIER_MAX_BYTES,
    ),
    cloud: textParam(
      "The installation that the project is in. A virtual project names its platform here again, and no other project may name `meta` or `partner`.",
      IDENTIFIER_MAX_BYTES,
    ),
    external_id: textParam("What the cloud itself calls the project: events carry it.", IDENTIFIER_MAX_BYTES),
    name: Type.Optional(textParam("What people call it.", IDENTIFIER_MAX_BYTES)),
    metadata: Type.Optional(
      anyObject(`Anything worth keeping about it; left out, it is {}. ${METADATA_BOUND}`),
    ),
  },
  {
    $id: "CreateProject",
    additionalProperties: false,
    description: "A project to register. No two projects of a cloud have the same external_id.",
  },
);

export const UpdateProject = Type.Object(
  {
    name: Type.Optional(textParam("Its name from now on.", IDENTIFIER_MAX_BYTES)),
    metadata: Type.Optional(
      anyObject(`All of its metadata from now on: what isn't sent along is gone. ${METADATA_BOUND}`),
    ),
  },
  {
    $id: "UpdateProject",
    additionalProperties: false,
    minProperties: 1,
    description: "What to change of a project, at least one thing. What is left out stays.",
  },
);

export const Project = Type.Object(
  {
    id: uuid("What this API calls it."),
    platform: Type.String({
      description: "Its platform; `meta` and `partner` are those of virtual projects.",
    }),
    cloud: Type.String({
      description: "The installation that it is in; a virtual project's is its platform again.",
    }),
    external_id: Type.String({ description: "What its cloud calls it: the project_id of events." }),
    name: Type.Union([Type.String(), Type.Null()], { description: "What people call it; null for no name." }),
    metadata: anyObject("What was stored about it, digit for digit."),
    created_at: instant("When it was registered."),
  },
  { $id: "Project", description: "A registered project: one pair of cloud and external_id." },
);

export const ProjectList = pageOf(
  "ProjectList",
  "The projects, by cloud and external_id.",
  Type.Ref("Project"),
  "Registered projects, a page at a time.",
);

export const ProjectRef = Type.Object(
  {
    id: uuid("What this API calls it."),
    cloud: Type.String({ description: "The installation that it is in." }),
    external_id: Type.String({ description: "What its cloud calls it." }),
  },
  {
    $id: "ProjectRef",
    description:
      "Which project is meant, and no more: name and metadata are for tokens that may read the registry.",
  },
);

export const ProjectActivity = Type.Object(
  {
    resource_type: Type.String({ description: "The kind of resource." }),
    created: Type.Integer({ description: "Lives that began in the window, by an event of this project." }),
    deleted: Type.Integer({ description: "Lives that ended in the window, by an event of this project." }),
    total_minutes: Type.Integer({
      format: "int64",
      description:
        "How long the project had such resources within the window, all of them together, in whole minutes; what remains of the last one is cut off. What still runs counts up to now.",
    }),
    active_now: Type.Integer({ description: "How many it has at this moment, whatever the window." }),
  },
  { $id: "ProjectActivity", description: "One resource type of a project, within a window." },
);

export const ProjectSummary = Type.Object(
  {
    project: Type.Ref("ProjectRef"),
    resource_types: Type.Array(Type.Ref("ProjectActivity"), {
      description: "A row for each type that the project has ever had, by type; [] for none.",
    }),
  },
  { $id: "ProjectSummary", description: "What a project had of each resource type within a window." },
);

const ADJUSTMENTS =
  "`pricing_adjustments`, where it is there, is an array of 1 to 64 objects of `type` (discount, kickback, surcharge, project_discount), `rate` (a decimal as a string, from 0 to 1, with up to six fractional digits), `scope` (all, a platform, or platform.resource_type) and, if wanted, a `description` of up to 500 characters.";

export const CreateRelation = Type.Object(
  {
    target_id: uuidParam(
      "The project that the relation leads to: a registered one, and not the one it leaves.",
    ),
    relation_type: textParam(
      "What the relation means, any text. `infrastructure_tenant` (unless the settings name others) attributes the target's cost to the source; `member_of` puts the source into a group, `managed_by` under a partner, and neither attributes anything.",
      IDENTIFIER_MAX_BYTES,
    ),
    valid_from: Type.Optional(instantParam("From when it holds; left out, from now on.")),
    metadata: Type.Optional(
      anyObject(`Anything worth keeping about it; left out, it is {}. ${ADJUSTMENTS} ${METADATA_BOUND}`),
    ),
  },
  {
    $id: "CreateRelation",
    additionalProperties: false,
    description: "A relation from the path's project to another one.",
  },
);

export const UpdateRelation = Type.Object(
  {
    valid_to: Type.Optional(
      instantParam(
        "From when on it no longer holds; after valid_from, and not null: what is closed stays closed, only its instant can be corrected.",
      ),
    ),
    metadata: Type.Optional(
      anyObject(
        `All of its metadata from now on: what isn't sent along is gone. Except that \`pricing_adjustments\` never change: they have to come as they are stored, else it is a 409; for others, close the relation and create its successor. ${METADATA_BOUND}`,
      ),
    ),
  },
  {
    $id: "UpdateRelation",
    additionalProperties: false,
    minProperties: 1,
    description: "What to change of a relation, at least one thing. What is left out stays.",
  },
);

export const Relation = Type.Object(
  {
    id: uuid("What this API calls it."),
    source_id: uuid("The project that it leaves."),
    target_id: uuid("The project that it leads to."),
    relation_type: Type.String({ description: "What it means." }),
    valid_from: instant("Its first instant."),
    valid_to: Type.Union([Type.String({ format: "date-time" }), Type.Null()], {
      description: "The first instant at which it no longer holds; null while it is open.",
    }),
    metadata: anyObject(`What was stored about it, digit for digit. ${ADJUSTMENTS}`),
    created_at: instant("When it was written."),
  },
  {
    $id: "Relation",
    description:
      "A relation between two projects, valid at t if valid_from ≤ t and valid_to is null or after t. It is closed, never removed: earlier instants keep it.",
  },
);

export const RelationList = Type.Object(
  {
    items: Type.Array(Type.Ref("Relation"), { description: "The relations, by created_at and id." }),
  },
  { $id: "RelationList", description: "A project's relations at one instant." },
);

export const RelatedProject = Type.Object(
  {
    project: Type.Ref("Project"),
    relation_type: Type.String({ description: "The type of the last relation on the way to it." }),
    depth: Type.Integer({ description: "How many relations the way has." }),
    path: Type.Array(Type.String({ format: "uuid" }), {
      description: "The relations on the way, from the start on.",
    }),
  },
  { $id: "RelatedProject", description: "A project that relations lead to, and the way there." },
);

export const RelatedProjectList = Type.Object(
  {
    items: Type.Array(Type.Ref("RelatedProject"), {
      description: "The projects, nearest first, in the order in which they were reached.",
    }),
  },
  { $id: "RelatedProjectList", description: "Where the relations of a project lead." },
);
