/** The statements over sync_runs. */
import type { Queryable } from "../database/connection.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";

/** How far a run has come. */
export type RunStatus = "running" | "completed" | "failed";

/** One run, as it is kept. */
export interface SyncRun {
  readonly id: string;
  readonly cloud: string;
  readonly platform: string;
  readonly status: RunStatus;
  readonly startedAt: Instant;
  readonly finishedAt: Instant | null;
  /** JSON text. */
  readonly stats: string;
}

/** Which runs are meant; null filters nothing. */
export interface RunFilter {
  readonly cloud: string | null;
  readonly status: RunStatus | null;
}

/** Where a page of runs goes on. */
export type RunPosition = Pick<SyncRun, "startedAt" | "id">;

interface Row {
  readonly id: string;
  readonly cloud: string;
  readonly platform: string;
  readonly status: RunStatus;
  readonly started: string;
  readonly finished: string | null;
  readonly stats: string;
}

/** One page of the runs, newest first, by (started_at, id). */
export async function pageOfRuns(
  db: Queryable,
  filter: RunFilter,
  page: Page<RunPosition>,
): Promise<SyncRun[]> {
  const statement = new Statement();
  const conditions = statement.equals({ cloud: filter.cloud, status: filter.status });
  if (page.after !== null) {
    const { startedAt, id } = page.after;
    conditions.push(`(started_at, id) < (${statement.instant(startedAt)}, ${statement.value(id)}::uuid)`);
  }
  const rows: Row[] = await db.unsafe(
    `SELECT sync_runs.id::text AS id, cloud, platform, status, stats::text AS stats,
            (extract(epoch FROM started_at) * 1000000)::bigint::text AS started,
            (extract(epoch FROM finished_at) * 1000000)::bigint::text AS finished
       FROM sync_runs ${where(conditions)}
      ORDER BY started_at DESC, sync_runs.id DESC ${statement.limit(page.limit)}`,
    statement.values,
  );
  return rows.map(({ started, finished, ...row }) => ({
    ...row,
    startedAt: instantFromMicros(started),
    finishedAt: finished === null ? null : instantFromMicros(finished),
  }));
}
