/** The bodies of the audit log, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";
import { pageOf } from "../http/page-model.ts";

export const AuditEntry = Type.Object(
  {
    id: Type.Integer({ description: "The entry's own number; entries of one instant are in its order." }),
    at: Type.String({ format: "date-time", description: "When it was done." }),
    actor: Type.String({
      description:
        "Who did it: the id of a credential or token, internal, scheduler, admin-cli, or auth-disabled while nobody is asked.",
    }),
    action: Type.String({ description: "What was done, like resource_type.put or events.ingest." }),
    object_type: Type.String({ description: "What kind of thing it was done to." }),
    object_id: Type.String({ description: "Which one; empty where it was done to several." }),
    details: Type.Object(
      {},
      { additionalProperties: true, description: "What explains it later; differs by action." },
    ),
  },
  { $id: "AuditEntry", description: "One thing that was done, and by whom." },
);

export const AuditList = pageOf(
  "AuditList",
  "The entries, oldest first, by at and id.",
  Type.Ref("AuditEntry"),
  "The audit log, a page at a time.",
);
