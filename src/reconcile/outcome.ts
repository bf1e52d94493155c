/** What came of a reconciliation run, and how it is counted and logged. */
import type { Instant } from "../event/instant.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Withheld } from "./diff.ts";
import type { Correction } from "./finding.ts";
import type { RunStats } from "./stats.ts";

/** A correction, and the id of its event. */
export type IdentifiedCorrection = Correction & { readonly eventId: string };

/** What came of a run. */
export interface SyncOutcome {
  /** The id of its row in sync_runs; of a dry run, which has none, only what its event ids are made of. */
  readonly runId: string;
  readonly cloud: string;
  readonly dryRun: boolean;
  /** failed: it recorded an error. */
  readonly status: "completed" | "failed";
  readonly startedAt: Instant;
  readonly finishedAt: Instant;
  /** What was booked, or would be. */
  readonly stats: RunStats;
  /** False where it ended before the cloud and the record were compared. */
  readonly compared: boolean;
  readonly withheld: readonly Withheld[];
  /** What was booked, or would be: the first thousand. */
  readonly corrections: readonly IdentifiedCorrection[];
}

/** Corrections that an outcome tells one by one. */
export const CORRECTIONS_TOLD = 1_000;

/**
 * Counts a run; a dry run is not to be counted.
 * @param now when it ended, by the wall clock
 */
export function countRun(metrics: Metrics, outcome: SyncOutcome, now: Instant): void {
  const { cloud, status, withheld } = outcome;
  const { created, updated, deleted, deferred, errorCount } = outcome.stats;
  metrics.syncRuns.inc({ cloud, status });
  metrics.syncReconciled.inc({ cloud, action: "create" }, created);
  metrics.syncReconciled.inc({ cloud, action: "update" }, updated);
  metrics.syncReconciled.inc({ cloud, action: "delete" }, deleted);
  metrics.syncDeferred.inc({ cloud, reason: "transitional" }, deferred.transitional);
  metrics.syncDeferred.inc({ cloud, reason: "recent" }, deferred.recent);
  metrics.syncErrors.inc({ cloud }, errorCount);
  metrics.syncDuration.observe({ cloud }, Number(tookMicros(outcome)) / 1e6);
  metrics.syncWithheld.inc(
    { cloud },
    withheld.reduce((sum, { deletes }) => sum + deletes, 0),
  );
  if (status === "completed") metrics.syncLastSuccess.set({ cloud }, Number(now / 1_000_000n));
}

/** Logs a run's end. */
export function logRun(log: Logger, outcome: SyncOutcome): void {
  const { created, updated, deleted, deferred, errors, errorCount } = outcome.stats;
  const fields = {
    cloud: outcome.cloud,
    sync_run_id: outcome.runId,
    ...(outcome.dryRun ? { dry_run: true } : {}),
    created,
    updated,
    deleted,
    deferred,
    duration_ms: Number(tookMicros(outcome)) / 1e3,
  };
  if (outcome.status === "completed") log.info("reconciliation run completed", fields);
  else log.warn("reconciliation run failed", { ...fields, errors, error_count: errorCount });
}

function tookMicros({ startedAt, finishedAt }: SyncOutcome): bigint {
  return finishedAt - startedAt;
}
