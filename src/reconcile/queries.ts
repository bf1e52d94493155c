/** The statements over sync_runs and size_names. */
import type { Queryable, Transaction } from "../database/connection.ts";
import {
  instantMember,
  instantOrNullMember,
  type ObjectPage,
  objectSql,
  readPage,
  textMembers,
} from "../database/object-text.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import { formatInstant, type Instant, instantFromMicros } from "../event/instant.ts";
import type { ObservedSizeName } from "./adapter.ts";

/** How far a run has come. */
export type RunStatus = "running" | "completed" | "failed";

/** Which runs are meant; null filters nothing. */
export interface RunFilter {
  readonly cloud: string | null;
  readonly status: RunStatus | null;
}

/** Where a page of runs goes on. */
export interface RunPosition {
  readonly startedAt: Instant;
  readonly id: string;
}

/** The component `SyncRun`. */
const RUN = objectSql([
  { name: "id", kind: "plain", sql: "r.id::text" },
  ...textMembers("r", ["cloud", "platform"]),
  { name: "status", kind: "plain", sql: "r.status" },
  instantMember("started_at", "r.started_at"),
  instantOrNullMember("finished_at", "r.finished_at"),
  { name: "stats", kind: "json", sql: "r.stats::text" },
]);

/** One page of the runs, newest first, by (started_at, id): each one's JSON. */
export async function pageOfRuns(
  db: Queryable,
  filter: RunFilter,
  page: Page<RunPosition>,
): Promise<ObjectPage> {
  const statement = new Statement();
  const conditions = statement.equals({ cloud: filter.cloud, status: filter.status });
  if (page.after !== null) {
    const { startedAt, id } = page.after;
    conditions.push(`(started_at, id) < (${statement.instant(startedAt)}, ${statement.value(id)}::uuid)`);
  }
  return await readPage(
    db,
    `SELECT ${RUN} AS item FROM sync_runs r ${where(conditions)}
      ORDER BY r.started_at DESC, r.id DESC ${statement.limit(page.limit + 1)}`,
    statement.values,
    page.limit,
  );
}

/** A run that begins. */
export interface NewRun {
  readonly id: string;
  readonly cloud: string;
  readonly platform: string;
  readonly startedAt: Instant;
  /** JSON text. */
  readonly stats: string;
}

/** Writes the row of a run that begins. */
export async function insertRun(tx: Queryable, run: NewRun): Promise<void> {
  await tx`
    INSERT INTO sync_runs (id, started_at, cloud, platform, status, stats)
    VALUES (${run.id}::text::uuid, ${formatInstant(run.startedAt)}::text::timestamptz, ${run.cloud}, ${run.platform},
            'running', ${run.stats}::text::jsonb)`;
}

/** Says how far a run has come. */
export async function updateRunStats(tx: Queryable, id: string, stats: string): Promise<void> {
  await tx`UPDATE sync_runs SET stats = ${stats}::text::jsonb WHERE id = ${id}::text::uuid AND status = 'running'`;
}

/** What a run has booked so far: its row and the batches that it counts land together. */
export async function countsOfRun(
  db: Queryable,
  id: string,
): Promise<{ created: number; updated: number; deleted: number; recent: number } | null> {
  const rows: { created: number; updated: number; deleted: number; recent: number }[] = await db`
    SELECT (stats ->> 'created')::int AS created, (stats ->> 'updated')::int AS updated,
           (stats ->> 'deleted')::int AS deleted, (stats -> 'deferred' ->> 'recent')::int AS recent
    FROM sync_runs WHERE id = ${id}::text::uuid`;
  return rows[0] ?? null;
}

/**
 * Writes a run's end.
 * @returns whether it did: a row that says `running` no more is not its run's any more
 */
export async function finishRun(
  tx: Queryable,
  id: string,
  status: Exclude<RunStatus, "running">,
  finishedAt: Instant,
  stats: string,
): Promise<boolean> {
  const rows: unknown[] = await tx`
    UPDATE sync_runs
       SET status = ${status}, finished_at = ${formatInstant(finishedAt)}::text::timestamptz, stats = ${stats}::text::jsonb
     WHERE id = ${id}::text::uuid AND status = 'running'
    RETURNING id`;
  return rows.length > 0;
}

/**
 * Closes a cloud's rows that say `running`. Only for who holds the cloud's lock: then nobody else runs it, and what
 * is left is from processes that died. What such a run had booked by then its row already says.
 * @returns the ids of the rows
 */
export async function closeAbandonedRuns(
  tx: Queryable,
  cloud: string,
  at: Instant,
  error: string,
): Promise<string[]> {
  const rows: { id: string }[] = await tx`
    UPDATE sync_runs
       SET status = 'failed', finished_at = greatest(started_at, ${formatInstant(at)}::text::timestamptz),
           stats = stats || jsonb_build_object('errors', jsonb_build_array(${error}::text), 'error_count', 1)
     WHERE cloud = ${cloud} AND status = 'running'
    RETURNING id::text AS id`;
  return rows.map(({ id }) => id);
}

/** When the newest completed run of a cloud began that didn't begin after `upTo`; null where there is none. */
export async function lastCompletedStart(
  db: Queryable,
  cloud: string,
  upTo: Instant,
): Promise<Instant | null> {
  const rows: { started: string }[] = await db`
    SELECT (extract(epoch FROM started_at) * 1000000)::bigint::text AS started
    FROM sync_runs
    WHERE cloud = ${cloud} AND status = 'completed' AND started_at <= ${formatInstant(upTo)}::text::timestamptz
    ORDER BY started_at DESC
    LIMIT 1`;
  return rows[0] === undefined ? null : instantFromMicros(rows[0].started);
}

/** When each of some clouds was last begun to be run, whatever came of it, up to an instant. */
export async function lastStarts(
  db: Queryable,
  clouds: readonly string[],
  upTo: Instant,
): Promise<Map<string, Instant>> {
  const rows: { cloud: string; started: string }[] = await db`
    SELECT c.cloud, (extract(epoch FROM r.started_at) * 1000000)::bigint::text AS started
    FROM json_array_elements_text(${JSON.stringify(clouds)}::text::json) AS c(cloud)
    CROSS JOIN LATERAL (
      SELECT started_at FROM sync_runs
      WHERE sync_runs.cloud = c.cloud AND started_at <= ${formatInstant(upTo)}::text::timestamptz
      ORDER BY started_at DESC
      LIMIT 1) AS r`;
  return new Map(rows.map(({ cloud, started }) => [cloud, instantFromMicros(started)]));
}

/** Puts these names in the place of all that the cloud had. */
export async function replaceSizeNames(
  tx: Transaction,
  cloud: string,
  names: readonly ObservedSizeName[],
): Promise<void> {
  await tx`DELETE FROM size_names WHERE cloud = ${cloud}`;
  if (names.length === 0) return;
  await tx`
    INSERT INTO size_names (cloud, resource_type, member, value, name)
    SELECT ${cloud}, n."resourceType", n.member, n.value, n.name
    FROM json_to_recordset(${JSON.stringify(names)}::text::json)
      AS n("resourceType" text, member text, value text, name text)
    ORDER BY 2, 3, 4
    ON CONFLICT DO NOTHING`;
}
