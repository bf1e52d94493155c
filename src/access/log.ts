/** Reading the audit log. */
import type { Queryable } from "../database/connection.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";

/** One entry, as it is kept. */
export interface LoggedEntry {
  /** A number's digits. */
  readonly id: string;
  readonly at: Instant;
  readonly actor: string;
  readonly action: string;
  readonly objectType: string;
  readonly objectId: string;
  /** JSON text. */
  readonly details: string;
}

/** Which entries are meant; null filters nothing. */
export interface LogFilter {
  readonly actor: string | null;
  readonly action: string | null;
  readonly objectType: string | null;
  /** Inclusive. */
  readonly from: Instant | null;
  /** Exclusive. */
  readonly to: Instant | null;
}

/** Where a page of entries goes on. */
export type LogPosition = Pick<LoggedEntry, "at" | "id">;

interface Row {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly object_type: string;
  readonly object_id: string;
  readonly details: string;
}

/** One page of the log, by (at, id). */
export async function pageOfLog(
  db: Queryable,
  filter: LogFilter,
  page: Page<LogPosition>,
): Promise<LoggedEntry[]> {
  const statement = new Statement();
  const { actor, action, objectType, from, to } = filter;
  const conditions = statement.equals({ actor, action, object_type: objectType });
  if (from !== null) conditions.push(`at >= ${statement.instant(from)}`);
  if (to !== null) conditions.push(`at < ${statement.instant(to)}`);
  if (page.after !== null) {
    const { at, id } = page.after;
    conditions.push(`(at, id) > (${statement.instant(at)}, ${statement.value(id)}::bigint)`);
  }
  const rows: Row[] = await db.unsafe(
    `SELECT id::text AS id, (extract(epoch FROM audit_log.at) * 1000000)::bigint::text AS at, actor, action, object_type,
            object_id, details::text AS details
       FROM audit_log ${where(conditions)} ORDER BY audit_log.at, audit_log.id ${statement.limit(page.limit)}`,
    statement.values,
  );
  return rows.map(({ object_type, object_id, at: micros, ...row }) => ({
    ...row,
    at: instantFromMicros(micros),
    objectType: object_type,
    objectId: object_id,
  }));
}
