/** The statements of one batch. Each is a fixed part of it, however many items there are. */
import type { Queryable, Transaction } from "../database/connection.ts";
import type { Source } from "../event/event.ts";
import { formatInstant } from "../event/instant.ts";
import type { Candidate, SizeName } from "./screen.ts";

/** The names of size members, per resource type, that a cloud's runs have stored. */
export async function sizeNames(
  db: Queryable,
  cloud: string,
  resourceTypes: readonly string[],
): Promise<Map<string, SizeName[]>> {
  const rows: { resource_type: string; member: string; value: string; name: string }[] = await db`
    SELECT resource_type, member, value, name
    FROM size_names
    WHERE cloud = ${cloud}
      AND resource_type IN (SELECT json_array_elements_text(${JSON.stringify(resourceTypes)}::text::json))`;
  const names = new Map<string, SizeName[]>();
  for (const { resource_type, member, value, name } of rows) {
    const list = names.get(resource_type);
    if (list === undefined) names.set(resource_type, [{ member, value, name }]);
    else list.push({ member, value, name });
  }
  return names;
}

/**
 * Stores one cloud's events and gives the positions of those that were new. The rows go in sorted by their key,
 * so that two batches that share events wait for each other rather than deadlock.
 * `received_at` is the transaction's instant plus one microsecond a position.
 */
export async function insertEvents(
  tx: Transaction,
  cloud: string,
  source: Source,
  candidates: readonly Candidate[],
): Promise<Set<number>> {
  const rows: string[] = [];
  for (const { index, event, text, members, payload } of candidates) {
    // The texts are the request's own: nothing is decoded and written again.
    const member = (name: string) => {
      const span = members.get(name);
      return span === undefined ? "null" : text.slice(span.start, span.end);
    };
    rows.push(
      `{"i":${index},"at":"${formatInstant(event.timestamp)}","id":${member("event_id")},"t":${member("event_type")}` +
        `,"p":${member("platform")},"rt":${member("resource_type")},"r":${member("resource_id")}` +
        `,"pr":${member("project_id")},"pl":${payload ?? "null"}}`,
    );
  }
  const stored: { i: number }[] = await tx`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT e.at, now() + e.i * interval '1 microsecond', e.id, e.t, e.p, ${cloud}, e.rt, e.r, e.pr, ${source}, e.pl
    FROM json_to_recordset(${`[${rows.join(",")}]`}::text::json)
      AS e(i int, at timestamptz, id text, t text, p text, rt text, r text, pr text, pl jsonb)
    ORDER BY e.at, e.id COLLATE "C", e.i
    ON CONFLICT DO NOTHING
    RETURNING (extract(epoch FROM received_at - now()) * 1000000)::int AS i`;
  return new Set(stored.map((row) => row.i));
}

/** A refused item to keep. */
export interface DeadLetter {
  readonly index: number;
  readonly kind: "schema" | "size_schema";
  readonly reason: string;
  /** The item's JSON text, NULs scrubbed; of an item that isn't kept, how large it was. */
  readonly raw: string;
  /** Whether `raw` is the item. */
  readonly whole: boolean;
  /** The cloud that the item named, whoever's it is; null where it named none. */
  readonly cloud: string | null;
}

/** Keeps refused items, with the credential that they came with (null for Tally's own pipelines). */
export async function insertDeadLetters(
  tx: Transaction,
  source: Source,
  credential: { readonly id: string; readonly platform: string; readonly cloud: string } | null,
  letters: readonly DeadLetter[],
): Promise<void> {
  const rows = letters.map(({ index, ...letter }) => ({ i: index, ...letter }));
  await tx`
    INSERT INTO rejected_events (received_at, reason, reason_kind, source, credential_id, platform, cloud, raw, whole,
                                 item_cloud)
    SELECT now() + l.i * interval '1 microsecond', l.reason, l.kind, ${source}, ${credential?.id ?? null}::text::uuid,
           ${credential?.platform ?? null}::text, ${credential?.cloud ?? null}::text, l.raw, l.whole, l.cloud
    FROM json_to_recordset(${JSON.stringify(rows)}::text::json)
      AS l(i int, kind text, reason text, raw text, whole boolean, cloud text)`;
}
