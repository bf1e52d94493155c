/** What every drill ends with: the checker, and every acknowledged event there exactly once. */
import type { Database } from "../../../src/database/connection.ts";
import type { Fault } from "../../../src/verify/fault.ts";
import { verify } from "../../../src/verify/verify.ts";
import { must } from "../drill.ts";
import type { Ledger } from "./clients.ts";

/** What was proven. */
export interface Proof {
  readonly acknowledged: number;
  readonly stored: number;
}

async function storedByBatch(db: Database, run: string): Promise<Map<number, { rows: number; ids: number }>> {
  const rows: { batch: number; n: number; ids: number }[] = await db`
    SELECT split_part(event_id, ':', 2)::int AS batch, count(*)::int AS n, count(DISTINCT event_id)::int AS ids
    FROM events WHERE starts_with(event_id, ${`${run}:`}) GROUP BY 1`;
  return new Map(rows.map(({ batch, n, ids }) => [batch, { rows: n, ids }]));
}

/** Holds the database against what clients were told, and lets the checker look. @throws {Error} as both of them */
export async function prove(db: Database, ...all: readonly Ledger[]): Promise<Proof> {
  const proof = await mustHold(db, ...all);
  await mustVerify(db);
  return proof;
}

/**
 * Holds the database against what clients were told.
 * @throws {Error} where an acknowledged event is missing or there twice, a batch is there by half, or an event is
 *   there that nobody sent
 */
export async function mustHold(db: Database, ...all: readonly Ledger[]): Promise<Proof> {
  let acknowledged = 0;
  let stored = 0;
  for (const { workload, acknowledged: now, unsure } of all) {
    // Clients may be at work: what is acknowledged after this moment may be stored after the next.
    const batches = new Map(now);
    const found = await storedByBatch(db, workload.run);
    for (const number of batches.keys()) {
      const { rows, ids } = found.get(number) ?? { rows: 0, ids: 0 };
      const what = `batch ${number} of ${workload.items} events was acknowledged, and is there with ${rows} rows of ${ids} ids`;
      must(rows === workload.items && ids === workload.items, what);
      acknowledged += rows;
    }
    for (const [number, { rows, ids }] of found) {
      stored += rows;
      if (batches.has(number)) continue;
      must(unsure.has(number) || now.has(number), `batch ${number} is there, and nobody sent it`);
      must(
        rows === workload.items && ids === rows,
        `batch ${number} is there by half: ${rows} of ${workload.items}`,
      );
    }
    const told = [...batches.values()].reduce((sum, accepted) => sum + accepted, 0);
    must(told <= stored, `${told} events were told to be new, and only ${stored} are there`);
  }
  return { acknowledged, stored };
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
