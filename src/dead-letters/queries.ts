/** Every statement over rejected_events, but for the one that ingest writes them with. */
import type { Queryable } from "../database/connection.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";

/** A refused item. */
export interface DeadLetter {
  readonly id: string;
  readonly receivedAt: Instant;
  readonly reason: string;
  /** JSON text of the item, of whatever kind it was. */
  readonly raw: string;
}

/** Where a page of dead letters goes on. */
export type DeadLetterPosition = Pick<DeadLetter, "receivedAt" | "id">;

/** One page of the refused items, by (received_at, id); `from` is inclusive, `to` exclusive. */
export async function pageOfDeadLetters(
  db: Queryable,
  window: { readonly from: Instant | null; readonly to: Instant | null },
  page: Page<DeadLetterPosition>,
): Promise<DeadLetter[]> {
  const statement = new Statement();
  const conditions: string[] = [];
  if (window.from !== null) conditions.push(`received_at >= ${statement.instant(window.from)}`);
  if (window.to !== null) conditions.push(`received_at < ${statement.instant(window.to)}`);
  if (page.after !== null) {
    const { receivedAt, id } = page.after;
    conditions.push(`(received_at, id) > (${statement.instant(receivedAt)}, ${statement.value(id)}::uuid)`);
  }
  const rows: { id: string; received: string; reason: string; raw: string }[] = await db.unsafe(
    `SELECT id::text AS id, (extract(epoch FROM received_at) * 1000000)::bigint::text AS received, reason, raw
       FROM rejected_events ${where(conditions)} ORDER BY received_at, id ${statement.limit(page.limit)}`,
    statement.values,
  );
  return rows.map(({ received, ...row }) => ({ ...row, receivedAt: instantFromMicros(received) }));
}
