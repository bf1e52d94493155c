/** Every statement over rejected_events, but for the one that ingest writes them with. */
import type { Queryable, Transaction } from "../database/connection.ts";
import { instantMember, type ObjectPage, objectSql, readPage } from "../database/object-text.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import type { Source } from "../event/event.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";
import type { ReasonKind } from "../ingest/screen.ts";

/** Which dead letters are meant; null filters nothing. */
export interface DeadLetterFilter {
  /** Inclusive, on the instant of the refusal. */
  readonly from: Instant | null;
  /** Exclusive. */
  readonly to: Instant | null;
  readonly kind: ReasonKind | null;
  /** The cloud that the item itself named. */
  readonly cloud: string | null;
}

/** Whether a retry has stored the item. */
export type DeadLetterStatus = "open" | "resolved" | "all";

/** Where a page of dead letters goes on. */
export interface DeadLetterPosition {
  readonly receivedAt: Instant;
  readonly id: string;
}

/** The component `DeadLetteredEvent`. */
const LETTER = objectSql([
  { name: "id", kind: "plain", sql: "id::text" },
  instantMember("received_at", "received_at"),
  { name: "reason", kind: "text", sql: "reason" },
  { name: "raw", kind: "json", sql: "raw" },
]);

function conditionsOf(
  statement: Statement,
  filter: DeadLetterFilter,
  status: DeadLetterStatus,
  after: DeadLetterPosition | null,
): string[] {
  const conditions = statement.equals({ reason_kind: filter.kind, item_cloud: filter.cloud });
  if (status !== "all") conditions.push(`resolved_at IS ${status === "open" ? "NULL" : "NOT NULL"}`);
  if (filter.from !== null) conditions.push(`received_at >= ${statement.instant(filter.from)}`);
  if (filter.to !== null) conditions.push(`received_at < ${statement.instant(filter.to)}`);
  if (after !== null) {
    const { receivedAt, id } = after;
    conditions.push(`(received_at, id) > (${statement.instant(receivedAt)}, ${statement.value(id)}::uuid)`);
  }
  return conditions;
}

/** One page of the refused items, by (received_at, id): each one's JSON. */
export async function pageOfDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  status: DeadLetterStatus,
  page: Page<DeadLetterPosition>,
): Promise<ObjectPage> {
  const statement = new Statement();
  const conditions = conditionsOf(statement, filter, status, page.after);
  return await readPage(
    db,
    `SELECT ${LETTER} AS item FROM rejected_events ${where(conditions)}
      ORDER BY received_at, id ${statement.limit(page.limit + 1)}`,
    statement.values,
    page.limit,
  );
}

/** A dead letter with all that its item needs to go through the pipeline again. */
export interface HeldLetter extends DeadLetterPosition {
  /** JSON text of the item, of whatever kind it was. */
  readonly raw: string;
  readonly source: Source;
  /** The credential that the item came with; null for an item of Tally's own. */
  readonly credential: { readonly id: string; readonly platform: string; readonly cloud: string } | null;
  /** False: the item was too large to keep. */
  readonly whole: boolean;
  readonly resolvedAt: Instant | null;
}

const HELD = `
  id::text AS id, (extract(epoch FROM received_at) * 1000000)::bigint::text AS received, raw, source,
  credential_id::text AS credential, platform, cloud, whole,
  (extract(epoch FROM resolved_at) * 1000000)::bigint::text AS resolved`;

interface HeldRow {
  readonly id: string;
  readonly received: string;
  readonly raw: string;
  readonly source: Source;
  readonly credential: string | null;
  readonly platform: string | null;
  readonly cloud: string | null;
  readonly whole: boolean;
  readonly resolved: string | null;
}

function heldLetter({ id, received, raw, source, whole, resolved, ...row }: HeldRow): HeldLetter {
  const { credential, platform, cloud } = row;
  const known = credential !== null && platform !== null && cloud !== null;
  return {
    id,
    receivedAt: instantFromMicros(received),
    raw,
    source,
    credential: known ? { id: credential, platform, cloud } : null,
    whole,
    resolvedAt: resolved === null ? null : instantFromMicros(resolved),
  };
}

/** One dead letter, resolved or not, or null. */
export async function findLetter(db: Queryable, id: string): Promise<HeldLetter | null> {
  const rows: HeldRow[] = await db.unsafe(`SELECT ${HELD} FROM rejected_events WHERE id = $1::text::uuid`, [
    id,
  ]);
  return rows[0] === undefined ? null : heldLetter(rows[0]);
}

/** The open letters whose items were kept, by (received_at, id). */
export async function pageOfRetriable(
  db: Queryable,
  filter: DeadLetterFilter,
  page: Page<DeadLetterPosition>,
): Promise<HeldLetter[]> {
  const statement = new Statement();
  const conditions = [...conditionsOf(statement, filter, "open", page.after), "whole"];
  const rows: HeldRow[] = await db.unsafe(
    `SELECT ${HELD} FROM rejected_events ${where(conditions)}
      ORDER BY received_at, id ${statement.limit(page.limit)}`,
    statement.values,
  );
  return rows.map(heldLetter);
}

/** How many such letters come after that position. */
export async function countRetriable(
  db: Queryable,
  filter: DeadLetterFilter,
  after: DeadLetterPosition | null,
): Promise<number> {
  const statement = new Statement();
  const conditions = [...conditionsOf(statement, filter, "open", after), "whole"];
  const rows: { n: number }[] = await db.unsafe(
    `SELECT count(*)::int AS n FROM rejected_events ${where(conditions)}`,
    statement.values,
  );
  return rows[0]?.n ?? 0;
}

/**
 * Locks those of the letters that are open, in one order everywhere: two retries of the same letters wait for
 * each other, and the later one finds them resolved.
 */
export async function lockOpen(tx: Transaction, ids: readonly string[]): Promise<Set<string>> {
  const rows: { id: string }[] = await tx`
    SELECT id::text AS id FROM rejected_events
     WHERE id IN (SELECT i::uuid FROM json_array_elements_text(${JSON.stringify(ids)}::text::json) AS i)
       AND resolved_at IS NULL
     ORDER BY id FOR UPDATE`;
  return new Set(rows.map(({ id }) => id));
}

/** Marks letters as resolved. */
export async function resolveLetters(tx: Transaction, ids: readonly string[]): Promise<void> {
  await tx`
    UPDATE rejected_events SET resolved_at = now()
     WHERE id IN (SELECT i::uuid FROM json_array_elements_text(${JSON.stringify(ids)}::text::json) AS i)`;
}

/** Why a letter's item was refused this time. */
export interface NewReason {
  readonly id: string;
  readonly kind: ReasonKind;
  readonly reason: string;
}

/** Gives letters their new reasons. */
export async function refuseAgain(tx: Transaction, reasons: readonly NewReason[]): Promise<void> {
  await tx`
    UPDATE rejected_events r SET reason = n.reason, reason_kind = n.kind
      FROM json_to_recordset(${JSON.stringify(reasons)}::text::json) AS n(id uuid, kind text, reason text)
     WHERE r.id = n.id`;
}
