/** The statements of one batch. Each is a fixed part of it, however many items there are. */
import type { Queryable, Transaction } from "../database/connection.ts";
import type { Source } from "../event/event.ts";
import { formatInstant } from "../event/instant.ts";
import { quote } from "../event/json-text.ts";
import type { Candidate, SizeName } from "./screen.ts";

/** A resource type within its cloud. */
export interface TypeOfCloud {
  readonly cloud: string;
  readonly resourceType: string;
}

/** The names of size members that the clouds' runs have stored, for those types, in one statement. */
export async function sizeNames(
  db: Queryable,
  types: readonly TypeOfCloud[],
): Promise<(TypeOfCloud & SizeName)[]> {
  const wanted = types.map(({ cloud, resourceType }) => ({ c: cloud, t: resourceType }));
  return await db`
    SELECT n.cloud, n.resource_type AS "resourceType", n.member, n.value, n.name
    FROM json_to_recordset(${JSON.stringify(wanted)}::text::json) AS wanted(c text, t text)
    JOIN size_names n ON n.cloud = wanted.c AND n.resource_type = wanted.t`;
}

/**
 * Stores those of one cloud's events that aren't stored yet.
 * @param candidates sorted by (timestamp, event id), each event once: two batches that share events then wait for
 *   each other rather than deadlock
 * @returns how many were new. `received_at` is the transaction's instant plus one microsecond a position.
 */
export async function insertEvents(
  tx: Transaction,
  cloud: string,
  source: Source,
  candidates: readonly Candidate[],
): Promise<number> {
  // Counted by what is returned: on a distributed table the statement's own count has the duplicates in it.
  const [stored]: { n: number }[] = await tx`
    WITH stored AS (
      INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                          project_id, source, payload)
      SELECT e.at, now() + e.i * interval '1 microsecond', e.id, e.t, e.p, ${cloud}, e.rt, e.r, e.pr, ${source}, e.pl
      FROM json_to_recordset(${`[${candidates.map(eventJson).join(",")}]`}::text::json)
        AS e(i int, at timestamptz, id text, t text, p text, rt text, r text, pr text, pl jsonb)
      ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT count(*)::int AS n FROM stored`;
  return stored?.n ?? 0;
}

function eventJson({ index, event, payload }: Candidate): string {
  return (
    `{"i":${index},"at":"${formatInstant(event.timestamp)}","id":${quote(event.eventId)}` +
    `,"t":"${event.eventType}","p":${quote(event.platform)},"rt":${quote(event.resourceType)}` +
    `,"r":${quote(event.resourceId)},"pr":${quote(event.projectId)},"pl":${payload ?? "null"}}`
  );
}

/**
 * Which of the candidates this very transaction has stored, by position: asked where it didn't store all of them.
 * An event that another transaction of the same microsecond stored at the same position is among them, too: whoever
 * asks compares their number.
 */
export async function eventsOfTransaction(
  tx: Transaction,
  cloud: string,
  candidates: readonly Candidate[],
): Promise<Set<number>> {
  const wanted = candidates.map(
    ({ index, event }) =>
      `{"i":${index},"at":"${formatInstant(event.timestamp)}","id":${quote(event.eventId)}}`,
  );
  const rows: { i: number }[] = await tx`
    SELECT k.i
    FROM json_to_recordset(${`[${wanted.join(",")}]`}::text::json) AS k(i int, at timestamptz, id text)
    JOIN events e ON e.cloud = ${cloud} AND e.timestamp = k.at AND e.event_id = k.id
      AND e.received_at = now() + k.i * interval '1 microsecond'`;
  return new Set(rows.map(({ i }) => i));
}

/**
 * Which of the candidates the events table refuses, by position, and why. Each is tried by itself, inside the database;
 * those that it takes are stored, so that the caller rolls back.
 * @throws for a role that may make no temporary function (42501)
 */
export async function refusedEvents(
  tx: Transaction,
  source: Source,
  candidates: readonly Candidate[],
): Promise<Map<number, string>> {
  await tx.unsafe(`
    CREATE FUNCTION pg_temp.tally_refused(items json, source text) RETURNS TABLE (refused int, why text)
    LANGUAGE plpgsql AS $$
    DECLARE
      item record;
    BEGIN
      FOR item IN SELECT value ->> 'c' AS cloud, (value ->> 'i')::int AS i, value ->> 'e' AS event
                    FROM json_array_elements(items)
      LOOP
        BEGIN
          INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type,
                              resource_id, project_id, source, payload)
          SELECT e.at, now() + item.i * interval '1 microsecond', e.id, e.t, e.p, item.cloud, e.rt, e.r, e.pr,
                 tally_refused.source, e.pl
          FROM json_to_record(item.event::json)
            AS e(at timestamptz, id text, t text, p text, rt text, r text, pr text, pl jsonb)
          ON CONFLICT DO NOTHING;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded THEN
          refused := item.i;
          why := SQLERRM;
          RETURN NEXT;
        END;
      END LOOP;
    END $$`);
  // Each event is a text within the array: what no json can be must not fail the others.
  const items = candidates.map((candidate) => ({
    c: candidate.event.cloud,
    i: candidate.index,
    e: eventJson(candidate),
  }));
  const rows: { refused: number; why: string }[] = await tx`
    SELECT refused, why FROM pg_temp.tally_refused(${JSON.stringify(items)}::text::json, ${source}::text)`;
  return new Map(rows.map(({ refused, why }) => [refused, why]));
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
