/** The bodies of reconciliation, as the OpenAPI document names them. */
import { Type } from "@sinclair/typebox";
import { pageOf } from "../http/page-model.ts";
import { instantParam } from "../http/parameters.ts";

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
      {
        additionalProperties: true,
        description:
          "created, updated, deleted: how many corrections it booked. deferred: what it left to the next run, transitional and recent. errors: the first fifty, in words. error_count: how many there were.",
      },
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

export const SyncRequest = Type.Object(
  {
    at: Type.Optional(
      instantParam(
        "What the run takes for now: its start, and the instant of every correction that the platform itself doesn't date. Refused unless TALLY_REPORTING_SYNC_ALLOW_AT is set: it is for simulated clouds.",
      ),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ description: "Answer what the run would book, and book nothing. False unless given." }),
    ),
    confirm_mass_delete: Type.Optional(
      Type.Boolean({
        description:
          "Book also the deletes that are withheld because too many resources are no longer listed. False unless given.",
      }),
    ),
  },
  {
    $id: "SyncRequest",
    additionalProperties: false,
    description: "How to run. A request without a body runs now, and books.",
  },
);

export const SyncStats = Type.Object(
  {
    created: Type.Integer({ description: "Resources that the record didn't have among the living." }),
    deleted: Type.Integer({ description: "Living resources of the record that are gone." }),
    updated: Type.Integer({ description: "Resources whose state, size or owner differed." }),
  },
  { $id: "SyncStats", description: "How many corrections a run booked, or would book, by what they do." },
);

export const SyncCorrection = Type.Object(
  {
    event_id: Type.String({ description: "The id that its event would have." }),
    timestamp: Type.String({ format: "date-time", description: "When its event would be dated." }),
    event_type: Type.Unsafe<string>({
      type: "string",
      enum: ["sync.create", "sync.update", "sync.delete"],
      description: "What it would do.",
    }),
    resource_type: Type.String({ description: "The kind of resource." }),
    resource_id: Type.String({ description: "The resource." }),
    project_id: Type.String({ description: "Who would own it." }),
    state: Type.Union([Type.String(), Type.Null()], { description: "Its state; null on a delete." }),
    size: Type.Unsafe<object | null>({
      type: ["object", "null"],
      description: "Its size; null on a delete, and where it stays as it is.",
    }),
    reason: Type.String({ description: "What differs, in words." }),
  },
  { $id: "SyncCorrection", description: "An event that a run would book." },
);

export const SyncResult = Type.Object(
  {
    stats: Type.Ref("SyncStats"),
    sync_run_id: Type.String({
      description:
        "The run, as the list of runs names it. A dry run is on no list: its id is only what its event ids are made of.",
    }),
    corrections: Type.Optional(
      Type.Array(Type.Ref("SyncCorrection"), {
        description: "On a dry run: what would be booked, the first thousand; stats counts all.",
      }),
    ),
    errors: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "On a dry run: what a run would fail for; such a run books the corrections all the same.",
      }),
    ),
  },
  { $id: "SyncResult", description: "What a run did, or would do." },
);
