/** Three `tally serve` on one database behind a round-robin client, and one of them is killed. */
import { describe, expect, test } from "bun:test";
import { openPool } from "../../src/database/pool.ts";
import { verify } from "../../src/verify/verify.ts";
import { place, readiness, run, type Serving, serve } from "../executable/tally.ts";
import { emptyDatabase } from "../support/database.ts";
import { startPgbouncer, WITHOUT_PGBOUNCER } from "./pgbouncer.ts";

const MINUTE = 60_000;
const CLIENTS = 6;
const BATCHES = 12;
const EVENTS = 20;
/** The victim dies once so many batches were acknowledged. */
const KILL_AFTER = 24;

function batch(client: number, number: number): string {
  const items = Array.from({ length: EVENTS }, (_, at) => ({
    event_id: `load-${client}-${number}-${at}`,
    timestamp: new Date(Date.UTC(2026, 2, 1, 0, 0, number, at)).toISOString(),
    event_type: number === 0 ? "volume.create.end" : "volume.resize.end",
    platform: "openstack",
    cloud: "c1",
    resource_type: "volume",
    // Every client writes to the same resources.
    resource_id: `volume-${at}`,
    project_id: `p${number % 3}`,
    payload: { state: "available", size: { size_gb: 1 + ((client + number) % 7), type: "ssd" } },
  }));
  return JSON.stringify(items);
}

/** Sends a batch until it is answered 200, each time to the next process. @returns how many were new */
async function send(next: () => string, token: string, body: string): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const answer = await fetch(`${next()}/api/v1/events`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body,
      signal: AbortSignal.timeout(20_000),
    }).catch(() => null);
    const text = answer?.status === 200 ? await answer.text().catch(() => null) : null;
    const accepted = /^\{"accepted":(\d+),"duplicates":\d+,"rejected":\[\]\}$/.exec(text ?? "")?.[1];
    if (accepted !== undefined) return Number(accepted);
    await Bun.sleep(20);
  }
  throw new Error("a batch was never acknowledged");
}

/**
 * The load, the kill and the look at what is there then.
 * @param url where Tally finds the database
 * @param direct where the checker does
 */
async function survives(url: string, direct: string): Promise<void> {
  const at = place();
  const serving: Serving[] = [];
  try {
    const env = { TALLY_REPORTING_DB_URL: url, TALLY_REPORTING_DB_MAX_CONNS: "4" };
    expect((await run(at, { args: ["migrate", "up"], env })).code).toBe(0);
    serving.push(...(await Promise.all([serve(at, env), serve(at, env), serve(at, env)])));
    await Promise.all(serving.map((process) => readiness(process.url, 200)));
    const made = await run(at, {
      args: ["credential", "create", "--platform", "openstack", "--cloud", "c1"],
      env,
    });
    const token = made.stdout.trim();
    let turn = 0;
    const next = () => serving[turn++ % serving.length]?.url ?? "";
    let acknowledged = 0;
    let accepted = 0;
    let killed: Promise<number> | null = null;
    const client = async (number: number) => {
      for (let n = 0; n < BATCHES; n++) {
        accepted += await send(next, token, batch(number, n));
        acknowledged++;
        if (acknowledged >= KILL_AFTER) killed ??= serving[0]?.stop("SIGKILL") ?? null;
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
    expect(killed).not.toBeNull();
    await killed;

    const db = openPool({ url: direct }, { maxConnections: 2 });
    const [row] = await db`SELECT count(*)::int AS events, count(DISTINCT event_id)::int AS ids FROM events`;
    const all = CLIENTS * BATCHES * EVENTS;
    expect({ ...row }).toEqual({ events: all, ids: all });
    // What was stored and not acknowledged, because its process died, came again as a duplicate.
    expect(accepted).toBeLessThanOrEqual(all);
    const faults: unknown[] = [];
    await verify(db, (fault) => faults.push(fault));
    await db.close({ timeout: 0 });
    expect(faults).toEqual([]);
  } finally {
    for (const process of serving) await process.stop("SIGKILL");
    at.remove();
  }
}

describe("three processes under load, one of them killed: nothing is lost, nothing is there twice", () => {
  test(
    "on the database itself",
    async () => {
      const own = await emptyDatabase();
      await survives(own.url, own.url);
      await own.drop();
    },
    2 * MINUTE,
  );

  if (WITHOUT_PGBOUNCER !== null) console.warn(WITHOUT_PGBOUNCER);
  test.skipIf(WITHOUT_PGBOUNCER !== null)(
    "behind PgBouncer in transaction mode",
    async () => {
      const own = await emptyDatabase();
      const [row]: { name: string }[] = await own.db`SELECT quote_ident(current_database()) AS name`;
      // The tests' own server is set not to wait for the disk, which readiness takes exception to.
      await own.db.unsafe(`ALTER DATABASE ${row?.name} SET synchronous_commit = on`);
      const pooler = await startPgbouncer(own.url);
      await survives(pooler.url, own.url);
      await pooler.stop();
      await own.drop();
    },
    2 * MINUTE,
  );
});
