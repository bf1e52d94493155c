/** What a run counts, as `sync_runs.stats` keeps it. */
import type { Action, Deferral } from "./finding.ts";

/** So many errors are told in words; all are counted. */
const ERRORS_TOLD = 50;
/** An error's text is cut off behind this many characters. */
const ERROR_MAX_LENGTH = 500;

/** The member that counts what an action did. */
const COUNTED = { create: "created", update: "updated", delete: "deleted" } as const satisfies Record<
  Action,
  string
>;

/** A run's counts so far. */
export class RunStats {
  created = 0;
  updated = 0;
  deleted = 0;
  readonly deferred: Record<Deferral, number> = { transitional: 0, recent: 0 };
  /** The first of them, in words. */
  readonly errors: string[] = [];
  errorCount = 0;

  /** Counts one correction that was booked, or would be. */
  correct(action: Action): void {
    this[COUNTED[action]]++;
  }

  /** Takes an error: the run ends as failed. */
  fail(text: string): void {
    this.errorCount++;
    if (this.errors.length >= ERRORS_TOLD) return;
    const printable = text.toWellFormed().replaceAll("\0", "");
    this.errors.push(
      printable.length > ERROR_MAX_LENGTH
        ? `${printable.slice(0, ERROR_MAX_LENGTH).toWellFormed()}…`
        : printable,
    );
  }

  /** The same counts, to be counted on elsewhere. */
  copy(): RunStats {
    const copy = new RunStats();
    copy.become(this);
    return copy;
  }

  /** Takes another's counts in the place of its own. */
  become({ created, updated, deleted, deferred, errors, errorCount }: RunStats): void {
    this.created = created;
    this.updated = updated;
    this.deleted = deleted;
    this.deferred.transitional = deferred.transitional;
    this.deferred.recent = deferred.recent;
    this.errors.splice(0, this.errors.length, ...errors);
    this.errorCount = errorCount;
  }

  /** The JSON text of `sync_runs.stats`. */
  json(): string {
    const { created, updated, deleted, deferred, errors, errorCount } = this;
    return JSON.stringify({ created, updated, deleted, deferred, errors, error_count: errorCount });
  }
}
