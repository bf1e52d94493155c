/** The bodies of reconciliation, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";
import { pageOf } from "../http/page-model.ts";

export const SyncRun = Type.Object(
  {
    id: Type.String({ format: "uuid", description: "The run." }),
    cloud: Type.String({ description: "The cloud that was compared with the record." }),
    platform: Type.String({ description: "The platform that the cloud runs." }),
    status: Type.Unsafe<"running" | "completed" | "failed">({
      type: "string",
      enum: ["running", "completed", "failed"],
      description: "failed: it recorded at least one error; what it could decide all the same it did.",
    }),
    started_at: Type.String({ format: "date-time", description: "When it began." }),
    finished_at: Type.Union([Type.String({ format: "date-time" }), Type.Null()], {
      description: "When it ended; null while it runs.",
    }),
    stats: Type.Object(
      {},
      { additionalProperties: true, description: "What it corrected, put off, and failed at." },
    ),
  },
  { $id: "SyncRun", description: "One comparison of a cloud with the record." },
);

export const SyncRunList = pageOf(
  "SyncRunList",
  "The runs, newest first, by started_at and id.",
  Type.Ref("SyncRun"),
  "Reconciliation runs, a page at a time.",
);
