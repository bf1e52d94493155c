/** The bodies of the resource-type registry, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";

const document = (description: string) =>
  Type.Unsafe<object>({ type: "object", additionalProperties: true, description });

export const RegisterResourceType = Type.Object(
  {
    size_schema: document(
      "A JSON Schema (draft 2020-12) that payload.size must fit. It is compiled before it is stored, so whatever is accepted can be enforced.",
    ),
  },
  {
    $id: "RegisterResourceType",
    description: "What the sizes of one resource type are held to from now on.",
    additionalProperties: false,
  },
);

export const ResourceType = Type.Object(
  {
    platform: Type.String({ description: "The platform that the type belongs to." }),
    resource_type: Type.String({ description: "The type's name on that platform." }),
    size_schema: document(
      "The registered JSON Schema (draft 2020-12), digit for digit and in its own order.",
    ),
    updated_at: Type.String({ format: "date-time", description: "When this schema was written." }),
  },
  { $id: "ResourceType", description: "A resource type and what its sizes are held to." },
);

export const ResourceTypeList = Type.Object(
  {
    items: Type.Array(Type.Ref("ResourceType"), {
      description: "Every registered type, by platform and name.",
    }),
    next_cursor: Type.Union([Type.String(), Type.Null()], {
      description: "Always null: the registry is small and answered whole.",
    }),
  },
  { $id: "ResourceTypeList", description: "The registered resource types." },
);
