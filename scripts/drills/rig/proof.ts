/** What every drill ends with: the checker, and every acknowledged event there exactly once, as it was sent. */
import type { Database, Transaction } from "../../../src/database/connection.ts";
import { snapshot } from "../../../src/database/snapshot.ts";
import type { Fault } from "../../../src/verify/fault.ts";
import { verify } from "../../../src/verify/verify.ts";
import { must } from "../drill.ts";
import { type Ledger, NOT_SENT, type Sent } from "./clients.ts";
import type { Tally } from "./tally.ts";
import { type Batch, REFUSED_FOR, type Workload } from "./workload.ts";

/** So many events are compared by one statement. */
const PORTION = 10_000;

/** What was proven. */
export interface Proof {
  /** Events for which a client has read a 200. */
  readonly acknowledged: number;
  /** Events that are there. */
  readonly stored: number;
}

/** What is there of one batch. */
interface Found {
  readonly batch: number;
  readonly rows: number;
  readonly ids: number;
  readonly letters: number;
}

const NOTHING: Omit<Found, "batch"> = { rows: 0, ids: 0, letters: 0 };

async function foundByBatch(tx: Transaction, run: string): Promise<Map<number, Found>> {
  const rows: Found[] = await tx`
    WITH stored AS (
      SELECT split_part(event_id, ':', 2)::int AS batch, count(*)::int AS n, count(DISTINCT event_id)::int AS ids
      FROM events WHERE starts_with(event_id, ${`${run}:`}) GROUP BY 1
    ), refused AS (
      SELECT split_part(raw::json ->> 'event_id', ':', 2)::int AS batch, count(*)::int AS n
      FROM rejected_events WHERE starts_with(raw, ${`{"event_id":"${run}:`}) GROUP BY 1
    )
    SELECT batch, coalesce(s.n, 0) AS rows, coalesce(s.ids, 0) AS ids, coalesce(r.n, 0) AS letters
    FROM stored s FULL JOIN refused r USING (batch)`;
  return new Map(rows.map((found) => [found.batch, found]));
}

/** Every event there as it was sent: a row of the same instant and id, whose columns are equal, digit for digit. */
async function mustBeAsSent(tx: Transaction, events: readonly string[]): Promise<void> {
  const [wrong]: { id: string; sent: string; stored: string }[] = await tx`
    SELECT sent.event_id AS id, to_json(sent)::text AS sent,
           (SELECT coalesce(json_agg(e), '[]')::text FROM events e WHERE e.event_id = sent.event_id) AS stored
    FROM json_to_recordset(${`[${events.join(",")}]`}::text::json)
      AS sent(event_id text, timestamp timestamptz, event_type text, platform text, cloud text, resource_type text,
              resource_id text, project_id text, payload jsonb)
    LEFT JOIN events e ON e.timestamp = sent.timestamp AND e.event_id = sent.event_id
    WHERE (e.event_type, e.platform, e.cloud, e.resource_type, e.resource_id, e.project_id, e.source, e.payload::text)
      IS DISTINCT FROM (sent.event_type, sent.platform, sent.cloud, sent.resource_type, sent.resource_id,
                        sent.project_id, 'collector', sent.payload::text)
    LIMIT 1`;
  if (wrong !== undefined)
    throw new Error(`event ${wrong.id} is not there as it was sent: ${wrong.sent}; there is ${wrong.stored}`);
}

/** Every dead letter of the set keeps an item that had to be refused, as it was sent. */
async function mustBeAsRefused(tx: Transaction, run: string, texts: ReadonlySet<string>): Promise<void> {
  const kept: { raw: string; why: string }[] = await tx`
    SELECT DISTINCT raw, reason AS why FROM rejected_events WHERE starts_with(raw, ${`{"event_id":"${run}:`})`;
  for (const { raw, why } of kept)
    must(
      texts.has(raw) && why === REFUSED_FOR,
      `a dead letter keeps what nobody sent, or why is wrong: ${why}: ${raw}`,
    );
}

/** Holds the database against what clients were told, and lets the checker look. @throws {Error} as both of them */
export async function prove(db: Database, ...all: readonly Ledger[]): Promise<Proof> {
  const proof = await mustHold(db, ...all);
  await mustVerify(db);
  return proof;
}

/** The same on the embedded database of a Tally. */
export async function proveOn(tally: Tally, ...all: readonly Ledger[]): Promise<Proof> {
  const db = tally.embedded();
  try {
    return await prove(db, ...all);
  } finally {
    await db.close({ timeout: 0 });
  }
}

/**
 * Holds the database against what clients were told.
 * @throws {Error} where an acknowledged event is missing, there twice or not as it was sent, where a batch is there by
 *   half or without its dead letters, where something is there that nobody sent, or where clients were told otherwise
 */
export async function mustHold(db: Database, ...all: readonly Ledger[]): Promise<Proof> {
  let acknowledged = 0;
  let stored = 0;
  for (const { workload, sent } of all) {
    // Clients may be at work: what is acknowledged after this moment may be stored after the next.
    const told = new Map(sent);
    const found = await snapshot(db, async (tx) => await holdBatches(tx, workload, told, sent));
    for (const { rows } of found) stored += rows;
    for (const [number, { acknowledged: times }] of told)
      if (times > 0) acknowledged += workload.batch(number).events.length;
  }
  return { acknowledged, stored };
}

async function holdBatches(
  tx: Transaction,
  workload: Workload,
  told: ReadonlyMap<number, Sent>,
  /** What is known of them once the database was read. */
  sent: ReadonlyMap<number, Sent>,
): Promise<Found[]> {
  const { run } = workload;
  const found = await foundByBatch(tx, run);
  const refused = new Set<string>();
  let events: string[] = [];
  for (const number of new Set([...told.keys(), ...found.keys()])) {
    const batch = workload.batch(number);
    const there = found.get(number) ?? { batch: number, ...NOTHING };
    const { attempts } = sent.get(number) ?? NOT_SENT;
    must(attempts > 0, `batch ${number} is there, and nobody sent it`);
    mustBeWholeOrNotThere(batch, there, told.get(number) ?? NOT_SENT, attempts);
    if (there.rows === 0) continue;
    events.push(...batch.events);
    for (const { text } of batch.refused) refused.add(text);
    if (events.length < PORTION) continue;
    await mustBeAsSent(tx, events);
    events = [];
  }
  await mustBeAsSent(tx, events);
  await mustBeAsRefused(tx, run, refused);
  return [...found.values()];
}

/** @param attempts how often it was sent by now, where `told` is what was known before */
function mustBeWholeOrNotThere(batch: Batch, there: Found, told: Sent, attempts: number): void {
  const { number, events, refused } = batch;
  const { rows, ids, letters } = there;
  const all = events.length;
  const is = `is there with ${rows} rows of ${ids} ids and ${letters} dead letters`;
  const what = `batch ${number} of ${all} events and ${refused.length} items to refuse`;
  if (told.acknowledged > 0) must(rows === all && ids === all, `${what} was acknowledged, and ${is}`);
  must((rows === all && ids === all) || rows === 0, `${what} is there by half: it ${is}`);
  // Each time that it is taken in, its refused items are kept anew.
  const least = Math.max(told.acknowledged, rows > 0 ? 1 : 0) * refused.length;
  const most = (rows > 0 ? attempts : 0) * refused.length;
  // Where every attempt was answered, nothing is left open.
  const answered = told.acknowledged > 0 && told.acknowledged === attempts;
  must(
    letters >= least && letters <= (answered ? least : most),
    `${what} was sent ${attempts} times and acknowledged ${told.acknowledged} times, and ${is}`,
  );
  if (answered)
    must(
      told.accepted === all,
      `every request with ${what} was answered 200, and ${told.accepted} events were told to be new`,
    );
  must(told.accepted <= all, `of ${what}, ${told.accepted} were told to be new`);
}

/** @throws {Error} that names the first faults */
export async function mustVerify(db: Database): Promise<void> {
  const faults: Fault[] = [];
  const { faults: count } = await verify(db, (fault) => {
    if (faults.length < 5) faults.push(fault);
  });
  must(
    count === 0,
    `the checker finds ${count} faults: ${faults.map(({ where, what }) => `${where}: ${what}`).join("; ")}`,
  );
}
