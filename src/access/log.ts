/** Reading the audit log. */
import type { Queryable } from "../database/connection.ts";
import { instantMember, type ObjectPage, objectSql, readPage, textMembers } from "../database/object-text.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import type { Instant } from "../event/instant.ts";

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
export interface LogPosition {
  readonly at: Instant;
  /** A number's digits. */
  readonly id: string;
}

/** The component `AuditEntry`. */
const ENTRY = objectSql([
  { name: "id", kind: "json", sql: "l.id::text" },
  instantMember("at", "l.at"),
  ...textMembers("l", ["actor", "action", "object_type", "object_id"]),
  { name: "details", kind: "json", sql: "l.details::text" },
]);

/** One page of the log, by (at, id): each entry's JSON. */
export async function pageOfLog(
  db: Queryable,
  filter: LogFilter,
  page: Page<LogPosition>,
): Promise<ObjectPage> {
  const statement = new Statement();
  const { actor, action, objectType, from, to } = filter;
  const conditions = statement.equals({ actor, action, object_type: objectType });
  if (from !== null) conditions.push(`at >= ${statement.instant(from)}`);
  if (to !== null) conditions.push(`at < ${statement.instant(to)}`);
  if (page.after !== null) {
    const { at, id } = page.after;
    conditions.push(`(at, id) > (${statement.instant(at)}, ${statement.value(id)}::bigint)`);
  }
  return await readPage(
    db,
    `SELECT ${ENTRY} AS item FROM audit_log l ${where(conditions)} ORDER BY at, id ${statement.limit(page.limit + 1)}`,
    statement.values,
    page.limit,
  );
}
