/**
 * The steps of one reconciliation run whose cloud's lock is held: what the cloud holds, compared with the record, and
 * the difference booked.
 *
 *   row → ask the cloud → compare → size names → book → row
 */
import { writeAudit } from "../access/audit.ts";
import type { Queryable } from "../database/connection.ts";
import { faultOf } from "../database/faults.ts";
import { transaction } from "../database/transaction.ts";
import { formatInstant, type Instant } from "../event/instant.ts";
import { type ConfiguredCloud, RunFailure } from "./adapter.ts";
import { type BookingRun, book, bookingPipeline, correctionId } from "./booking.ts";
import { budgetSignal } from "./budget.ts";
import type { Held } from "./cloud-lock.ts";
import { compareWithRecord } from "./comparing.ts";
import type { Withheld } from "./diff.ts";
import type { Correction } from "./finding.ts";
import { collectBehind } from "./garbage.ts";
import { messageOf, observeCloud } from "./observe.ts";
import { CORRECTIONS_TOLD, countRun, logRun, type SyncOutcome } from "./outcome.ts";
import {
  closeAbandonedRuns,
  countsOfRun,
  finishRun,
  insertRun,
  lastCompletedStart,
  replaceSizeNames,
  updateRunStats,
} from "./queries.ts";
import type { RunRequest, RunServices } from "./request.ts";
import { RunStats } from "./stats.ts";

const SECOND = 1_000_000n;
const DAY = 86_400n * SECOND;
/** What the row of a run says whose process died. */
const ABANDONED = "the process that ran it ended before the run did";

/** One run. */
export class Run {
  readonly #services: RunServices;
  readonly #cloud: ConfiguredCloud;
  readonly #request: RunRequest;
  readonly #startedAt: Instant;
  readonly #held: Held;
  readonly #began = performance.now();
  readonly #booking: BookingRun;
  #stats = new RunStats();
  #compared = false;
  /** The booking was begun and not brought to its end. */
  #brokeOff = false;
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

  /**
   * @param signal cancels it
   * @returns what came of it, also where it failed
   * @throws what the database throws where the run's row could not be written
   */
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
        this.#services.log.error("a reconciliation run broke off", {
          cloud: this.#booking.cloud,
          sync_run_id: this.#booking.id,
          error,
        });
      }
    } finally {
      budget.end();
    }
    if (!dryRun) await this.#close();
    const outcome = this.#outcome(dryRun);
    if (!dryRun) countRun(this.#services.metrics, outcome, this.#services.now());
    logRun(this.#services.log, outcome);
    return outcome;
  }

  /** Writes the end into this run's row. */
  async #close(): Promise<void> {
    if (this.#brokeOff) await this.#recount();
    const { db } = this.#services;
    const { runId, status, finishedAt, stats } = this.#outcome(false);
    if (await finishRun(db, runId, status, finishedAt, stats.json())) return;
    this.#stats.fail("its lock was lost, and another run has closed its row");
  }

  #outcome(dryRun: boolean): SyncOutcome {
    return {
      runId: this.#booking.id,
      cloud: this.#cloud.cloud,
      dryRun,
      status: this.#stats.errorCount === 0 ? "completed" : "failed",
      startedAt: this.#startedAt,
      finishedAt: (this.#startedAt + microsSince(this.#began)) as Instant,
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
    const seen = report.observed.size;
    collectBehind(seen);
    const rules = {
      now: this.#startedAt,
      settleSeconds: settings.sync.settleSeconds,
      maxAbsentPercent: settings.sync.maxAbsentPercent,
      confirmMassDelete: this.#request.confirmMassDelete === true,
      completeTypes: report.completeTypes,
    };
    const difference = await compareWithRecord(db, this.#cloud, report.observed, rules, signal);
    collectBehind(seen);
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
    try {
      await updateRunStats(db, this.#booking.id, this.#stats.json());
      this.#corrections = await book(
        bookingPipeline(this.#services),
        this.#booking,
        difference.corrections,
        this.#stats,
        CORRECTIONS_TOLD,
      );
    } catch (error) {
      this.#brokeOff = true;
      throw error;
    }
  }

  /** What landed of a booking that broke off, its row alone knows: a commit may have failed, or its answer got lost. */
  async #recount(): Promise<void> {
    const kept = await countsOfRun(this.#services.db, this.#booking.id);
    if (kept === null) return;
    this.#stats.created = kept.created;
    this.#stats.updated = kept.updated;
    this.#stats.deleted = kept.deleted;
    this.#stats.deferred.recent = kept.recent;
  }

  /** From when on the cloud is asked what ended: the last completed run's start, and a day at most. */
  async #deletedSince(db: Queryable): Promise<Instant | null> {
    const last = await lastCompletedStart(db, this.#booking.cloud, this.#startedAt);
    if (last === null) return null;
    const from = last - BigInt(this.#services.settings.sync.settleSeconds) * SECOND;
    const earliest = this.#startedAt - DAY;
    return (from > earliest ? from : earliest) as Instant;
  }
}

function microsSince(began: number): bigint {
  return BigInt(Math.round((performance.now() - began) * 1_000));
}
