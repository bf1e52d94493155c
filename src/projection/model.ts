/** The bodies of the rebuild, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";
import { textParam } from "../http/parameters.ts";

export const RebuildRequest = Type.Object(
  {
    cloud: Type.Optional(textParam("Replay this cloud's resources only.")),
    resource_type: Type.Optional(textParam("Replay resources of this type only.")),
  },
  {
    $id: "RebuildRequest",
    description: "Which resources to replay; without a member, all that have events.",
    additionalProperties: false,
  },
);

export const RebuildResult = Type.Object(
  { rebuilt: Type.Integer({ description: "Resources whose history was replayed." }) },
  { $id: "RebuildResult", description: "What the rebuild replayed." },
);
