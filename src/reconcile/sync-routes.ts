/** POST /internal/sync/{cloud}. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { internalCaller } from "../access/callers.ts";
import { formatInstant, type Instant } from "../event/instant.ts";
import { quote } from "../event/json-text.ts";
import { jsonAnswer } from "../http/json.ts";
import { operation } from "../http/operation.ts";
import { textParam } from "../http/parameters.ts";
import type { Services } from "../http/services.ts";
import { Problem } from "../problem.ts";
import { RunFailure } from "./adapter.ts";
import { SyncRequest, SyncResult } from "./model.ts";
import type { IdentifiedCorrection, SyncOutcome } from "./outcome.ts";
import type { RunRequest } from "./request.ts";
import { CloudHeld, runSync } from "./run.ts";

const syncCloud = operation({
  id: "syncCloud",
  tag: "Internal",
  summary: "Compare a cloud with the record, and book the difference",
  description:
    "Answers when the run is over. One run a cloud at a time: 409 while another one holds it. 500 where the run recorded any error: its reasons are in the run's row and in the log, and what it could decide all the same it booked. A caller that hangs up cancels the run: it then books nothing, or all that it had decided.",
  security: "internalToken",
  params: Type.Object({ cloud: textParam("The cloud, as the clouds file names it.") }),
  body: { schema: SyncRequest, required: false, strict: true, example: { dry_run: true } },
  answers: {
    200: {
      schema: SyncResult,
      description: "The run ended without an error.",
      example: {
        stats: { created: 3, updated: 12, deleted: 1 },
        sync_run_id: "0c9d5f2e-58a1-4a77-9a0e-64a6f0b5c001",
      },
    },
  },
  problems: [
    { kind: "not_found", detail: "no cloud of that name is configured" },
    { kind: "conflict", detail: "another run of os-prod-eu1 is under way" },
  ],
});

export function syncRoutes(services: Services) {
  return new Elysia({ name: "sync" }).post(
    "/internal/sync/:cloud",
    async ({ request }) => {
      const { actor } = internalCaller(services, request);
      const { cloud: name } = syncCloud.readParams(request);
      const { value } = await syncCloud.readBody(request);
      const cloud = services.clouds.find((configured) => configured.cloud === name);
      if (cloud === undefined) throw new Problem("not_found", "no cloud of that name is configured");
      refuseClock(value?.at, services.settings.sync.allowAt);
      const outcome = await runOrConflict(
        services,
        cloud,
        {
          ...(value?.at === undefined ? {} : { at: value.at }),
          dryRun: value?.dry_run === true,
          confirmMassDelete: value?.confirm_mass_delete === true,
          actor,
        },
        request.signal,
      );
      return jsonAnswer(answerOf(outcome));
    },
    syncCloud.hook,
  );
}

/** @throws Problem validation where a request names an instant and the settings don't allow it */
function refuseClock(at: Instant | undefined, allowed: boolean): void {
  if (at === undefined || allowed) return;
  throw new Problem("validation", undefined, {
    errors: [{ loc: "body.at", msg: "is taken only with TALLY_REPORTING_SYNC_ALLOW_AT=true" }],
  });
}

async function runOrConflict(
  services: Services,
  cloud: Services["clouds"][number],
  request: RunRequest,
  hungUp: AbortSignal,
): Promise<SyncOutcome> {
  const cancel = new AbortController();
  const onHangUp = () => cancel.abort(new RunFailure("the run's caller hung up"));
  if (hungUp.aborted) onHangUp();
  hungUp.addEventListener("abort", onHangUp, { once: true });
  try {
    return await runSync(services, cloud, request, cancel.signal);
  } catch (error) {
    if (error instanceof CloudHeld) throw new Problem("conflict", error.message);
    throw error;
  } finally {
    hungUp.removeEventListener("abort", onHangUp);
  }
}

/** @throws Problem internal where the run failed; a dry run only fails where there is nothing to answer. */
function answerOf(outcome: SyncOutcome): string {
  const { runId, dryRun, compared, status, stats, corrections } = outcome;
  if (dryRun ? !compared : status === "failed") {
    throw new Problem(
      "internal",
      dryRun
        ? "the dry run failed before anything could be compared; the log says why"
        : `run ${runId} failed; its row in the list of runs and the log say why`,
    );
  }
  const { created, updated, deleted } = stats;
  const result = `"stats":${JSON.stringify({ created, updated, deleted })},"sync_run_id":"${runId}"`;
  if (!dryRun) return `{${result}}`;
  return (
    `{${result},"corrections":[${corrections.map(correctionJson).join(",")}]` +
    `,"errors":${JSON.stringify(stats.errors)}}`
  );
}

/** The component `SyncCorrection`; its size goes in digit for digit. */
function correctionJson(correction: IdentifiedCorrection): string {
  const { eventId, timestamp, action, resourceType, resourceId, projectId, state, size, reason } = correction;
  return (
    `{"event_id":"${eventId}","timestamp":"${formatInstant(timestamp)}","event_type":"sync.${action}"` +
    `,"resource_type":${quote(resourceType)},"resource_id":${quote(resourceId)},"project_id":${quote(projectId)}` +
    `,"state":${state === null ? "null" : quote(state)},"size":${size ?? "null"},"reason":${quote(reason)}}`
  );
}
