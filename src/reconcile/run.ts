/**
 * One reconciliation run: what a cloud holds, compared with the record, and the difference booked.
 *
 *   lock → row → ask the cloud → compare → size names → book → row
 */
import { writeAudit } from "../access/audit.ts";
import type { Queryable } from "../database/connection.ts";
import { faultOf } from "../database/faults.ts";
import { transaction } from "../database/transaction.ts";
import { formatInstant, type Instant } from "../event/instant.ts";
import type { Services } from "../http/services.ts";
import { type ConfiguredCloud, RunFailure } from "./adapter.ts";
import { type BookingRun, book, bookingPipeline, correctionId } from "./booking.ts";
import { budgetSignal } from "./budget.ts";
import { type Held, withCloudLock } from "./cloud-lock.ts";
import { compareWithRecord } from "./comparing.ts";
import type { Correction, Withheld } from "./diff.ts";
import { messageOf, observeCloud } from "./observe.ts";
import {
  closeAbandonedRuns,
  finishRun,
  insertRun,
  lastCompletedStart,
  lastStarts,
  replaceSizeNames,
} from "./queries.ts";
import { RunStats } from "./stats.ts";

/** What a run works with. */
export type RunServices = Pick<Services, "db" | "settings" | "now" | "log" | "metrics">;

/** What a run is asked for. */
export interface RunRequest {
  /** What the run takes for now; left out: the wall clock. Whether a caller may say is the caller's to check. */
  readonly at?: Instant;
  /** Decide, and book nothing. */
  readonly dryRun?: boolean;
  /** Book also what the brake would withhold. */
  readonly confirmMassDelete?: boolean;
  /** Who asks, for the audit log; `internal` unless told. */
  readonly actor?: string;
  /** Run only if no run of the cloud began after this instant: for who comes by the clock. */
  readonly unlessSince?: Instant;
}

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

/** Another run holds the cloud. */
export class CloudHeld extends Error {
  override readonly name = "CloudHeld";
  constructor(cloud: string) {
    super(`another run of ${cloud} is under way`);
  }
}

/** Corrections that an outcome tells one by one. */
export const CORRECTIONS_TOLD = 1_000;

const SECOND = 1_000_000n;
const DAY = 86_400n * SECOND;
/** Starts that lie no further than this in the future are another machine's; later ones were asked for. Microseconds. */
export const CLOCK_SKEW = 60n * SECOND;
/** What the row of a run says whose process died. */
const ABANDONED = "the process that ran it ended before the run did";

/**
 * Runs one cloud once.
 *
 * @param signal cancels the run: nothing is booked then, unless everything that it decided was being booked already
 * @returns what came of it, also where it failed: its reasons are in its row and in the log
 * @throws {CloudHeld} where another run holds the cloud; what the database throws where a run's row could not be
 *   written: then nothing was booked, or the next run closes the row
 */
export async function runSync(
  services: RunServices,
  cloud: ConfiguredCloud,
  request: RunRequest,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const outcome = await runUnlessDone(services, cloud, request, signal);
  if (outcome === null) throw new Error("only a run that comes by the clock can have been done already");
  return outcome;
}

/** The same for who comes by the clock: null where a run began after `unlessSince`. */
export async function runUnlessDone(
  services: RunServices,
  cloud: ConfiguredCloud,
  request: RunRequest,
  signal: AbortSignal,
): Promise<SyncOutcome | null> {
  const silenceMs = services.settings.database.silenceSeconds * 1_000;
  const locked = await withCloudLock(services.db, cloud.cloud, silenceMs, async (held) => {
    const startedAt = request.at ?? services.now();
    if (request.unlessSince !== undefined) {
      const upTo = (startedAt + CLOCK_SKEW) as Instant;
      const last = (await lastStarts(services.db, [cloud.cloud], upTo)).get(cloud.cloud);
      if (last !== undefined && last > request.unlessSince) return null;
    }
    return await new Run(services, cloud, request, startedAt, held).run(signal);
  });
  if (locked.held) throw new CloudHeld(cloud.cloud);
  return locked.value;
}

class Run {
  readonly #services: RunServices;
  readonly #cloud: ConfiguredCloud;
  readonly #request: RunRequest;
  readonly #startedAt: Instant;
  readonly #held: Held;
  readonly #began = performance.now();
  readonly #booking: BookingRun;
  #stats = new RunStats();
  #compared = false;
  #withheld: readonly Withheld[] = [];
  #corrections: readonly Correction[] = [];

  constructor(
    services: RunServices,
    cloud: ConfiguredCloud,
    request: RunRequest,
    startedAt: Instant,
    held: Held,
  ) {
    this.#services = services;
    this.#cloud = cloud;
    this.#request = request;
    this.#startedAt = startedAt;
    this.#held = held;
    const { cloud: name, platform } = cloud;
    this.#booking = { id: crypto.randomUUID(), cloud: name, platform, actor: request.actor ?? "internal" };
  }

  async run(signal: AbortSignal): Promise<SyncOutcome> {
    const dryRun = this.#request.dryRun === true;
    if (!dryRun) await this.#open();
    const budget = budgetSignal(signal, this.#services.settings.sync.budgetSeconds);
    try {
      await this.#decideAndBook(budget.signal, dryRun);
      if (budget.signal.aborted) {
        this.#stats.fail(
          `${messageOf(budget.signal.reason)}, while its corrections were booked: all of them were`,
        );
      }
    } catch (error) {
      const ofDatabase = faultOf(error) !== "other";
      this.#stats.fail(`${ofDatabase ? "the database failed: " : ""}${messageOf(error)}`);
      if (!(error instanceof RunFailure)) {
        this.#services.log.error("a reconciliation run broke off", { ...this.#told(), error });
      }
    } finally {
      budget.end();
    }
    const finishedAt = (this.#startedAt + microsSince(this.#began)) as Instant;
    const status = this.#stats.errorCount === 0 ? "completed" : "failed";
    if (!dryRun) {
      await finishRun(this.#services.db, this.#booking.id, status, finishedAt, this.#stats.json());
      this.#count(status);
    }
    this.#log(status, dryRun);
    return {
      runId: this.#booking.id,
      cloud: this.#cloud.cloud,
      dryRun,
      status,
      startedAt: this.#startedAt,
      finishedAt,
      stats: this.#stats,
      compared: this.#compared,
      withheld: this.#withheld,
      corrections: this.#corrections.map((correction) => ({
        ...correction,
        eventId: correctionId(this.#booking, correction),
      })),
    };
  }

  /** Closes what dead processes left, and writes this run's row. */
  async #open(): Promise<void> {
    const { db, log, metrics } = this.#services;
    const { id, cloud, platform, actor } = this.#booking;
    const abandoned = await transaction(db, async (tx) => {
      const closed = await closeAbandonedRuns(tx, cloud, this.#startedAt, ABANDONED);
      await insertRun(tx, { id, cloud, platform, startedAt: this.#startedAt, stats: this.#stats.json() });
      const { at, confirmMassDelete } = this.#request;
      const details = {
        cloud,
        confirm_mass_delete: confirmMassDelete === true,
        ...(at === undefined ? {} : { at: formatInstant(at) }),
      };
      await writeAudit(tx, [{ actor, action: "sync.run", objectType: "sync_run", objectId: id, details }]);
      return closed;
    });
    for (const runId of abandoned) {
      log.warn("closed a reconciliation run whose process died", { cloud, sync_run_id: runId });
      metrics.syncRuns.inc({ cloud, status: "failed" });
    }
  }

  async #decideAndBook(signal: AbortSignal, dryRun: boolean): Promise<void> {
    const { db, settings } = this.#services;
    const { cloud } = this.#booking;
    const since = await this.#deletedSince(db);
    const report = await observeCloud(this.#cloud.adapter, since, this.#stats, signal);
    const rules = {
      now: this.#startedAt,
      settleSeconds: settings.sync.settleSeconds,
      maxAbsentPercent: settings.sync.maxAbsentPercent,
      confirmMassDelete: this.#request.confirmMassDelete === true,
      completeTypes: report.completeTypes,
    };
    const difference = await compareWithRecord(db, this.#cloud, report.observed, rules, signal);
    this.#compared = true;
    this.#withheld = difference.withheld;
    this.#stats.deferred.transitional = difference.deferred.transitional;
    this.#stats.deferred.recent = difference.deferred.recent;
    for (const { resourceType, resourceId, why } of difference.unknown) {
      this.#stats.fail(`${resourceType} ${resourceId}: ${why}`);
    }
    for (const { resourceType, absent, living, deletes } of difference.withheld) {
      this.#stats.fail(
        `${resourceType}: ${absent} of ${living} living resources are not listed, more than ` +
          `${settings.sync.maxAbsentPercent} %: ${deletes} deletes are withheld until a run confirms the mass delete`,
      );
    }
    signal.throwIfAborted();
    if (dryRun) {
      for (const { action } of difference.corrections) this.#stats.correct(action);
      this.#corrections = difference.corrections.slice(0, CORRECTIONS_TOLD);
      return;
    }
    // Without the lock another run may be at the same cloud.
    await this.#held.check();
    const { sizeNames } = report;
    if (sizeNames !== null) {
      try {
        await transaction(db, (tx) => replaceSizeNames(tx, cloud, sizeNames));
      } catch (error) {
        this.#stats.fail(`size names: ${messageOf(error)}`);
      }
    }
    this.#corrections = await book(
      bookingPipeline(this.#services),
      this.#booking,
      difference.corrections,
      this.#stats,
      CORRECTIONS_TOLD,
    );
  }

  /** From when on the cloud is asked what ended: the last completed run's start, and a day at most. */
  async #deletedSince(db: Queryable): Promise<Instant | null> {
    const last = await lastCompletedStart(db, this.#booking.cloud, this.#startedAt);
    if (last === null) return null;
    const from = last - BigInt(this.#services.settings.sync.settleSeconds) * SECOND;
    const earliest = this.#startedAt - DAY;
    return (from > earliest ? from : earliest) as Instant;
  }

  #told() {
    return { cloud: this.#booking.cloud, sync_run_id: this.#booking.id };
  }

  #count(status: "completed" | "failed"): void {
    const { metrics, now } = this.#services;
    const { cloud } = this.#booking;
    const { created, updated, deleted, deferred, errorCount } = this.#stats;
    metrics.syncRuns.inc({ cloud, status });
    metrics.syncReconciled.inc({ cloud, action: "create" }, created);
    metrics.syncReconciled.inc({ cloud, action: "update" }, updated);
    metrics.syncReconciled.inc({ cloud, action: "delete" }, deleted);
    metrics.syncDeferred.inc({ cloud, reason: "transitional" }, deferred.transitional);
    metrics.syncDeferred.inc({ cloud, reason: "recent" }, deferred.recent);
    metrics.syncErrors.inc({ cloud }, errorCount);
    metrics.syncDuration.observe({ cloud }, Number(microsSince(this.#began)) / 1e6);
    metrics.syncWithheld.inc(
      { cloud },
      this.#withheld.reduce((sum, { deletes }) => sum + deletes, 0),
    );
    if (status === "completed") metrics.syncLastSuccess.set({ cloud }, Number(now() / SECOND));
  }

  #log(status: "completed" | "failed", dryRun: boolean): void {
    const { log } = this.#services;
    const { created, updated, deleted, deferred, errors, errorCount } = this.#stats;
    const fields = {
      ...this.#told(),
      ...(dryRun ? { dry_run: true } : {}),
      created,
      updated,
      deleted,
      deferred,
      duration_ms: Number(microsSince(this.#began)) / 1e3,
    };
    if (status === "completed") log.info("reconciliation run completed", fields);
    else log.warn("reconciliation run failed", { ...fields, errors, error_count: errorCount });
  }
}

function microsSince(began: number): bigint {
  return BigInt(Math.round((performance.now() - began) * 1_000));
}
