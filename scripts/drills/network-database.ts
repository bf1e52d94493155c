/** What the network between Tally and its database does: cuts at the worst moments, slowness, silence. */
import type { Drill, Plan, Rig } from "./drill.ts";
import { must, until, within } from "./drill.ts";
import { CLIENTS } from "./rig/clients.ts";
import { cutting } from "./rig/cutting.ts";
import { answersOf, onStage, working } from "./rig/outage.ts";
import { FaultyNetwork } from "./rig/proxy.ts";
import { latency, narrow, type Slow, type Trouble, throughAll } from "./rig/troubles.ts";

/** The simple query that ends a transaction, as it stands in the stream. */
const COMMIT = /COMMIT\0/;
/** A request waits for its transaction's statements and the sign of life; nothing of it takes longer. */
const HANG_MS = 90_000;
/**
 * A transaction is of several statements, and batches that share resources wait for each other: at most 60 s in a
 * statement (src/database/pool.ts), and some round trips before and after it. No client may be kept longer, 503 or not.
 */
const SOME_ROUND_TRIPS: Slow = {
  longMs: 60_000,
  long: { leastMs: 2_000, mostMs: 75_000 },
  short: { leastMs: 100, mostMs: 20_000 },
};

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "before commit": (network, stage, plan) =>
    cutting(network, stage, plan, (chunk, way) =>
      way === "up" && COMMIT.test(chunk.toString("latin1")) ? "cut" : "pass",
    ),
  "between commit and answer": (network, stage, plan) =>
    cutting(network, stage, plan, (chunk, way) =>
      way === "down" && chunk.toString("latin1").includes("COMMIT\0") ? "cut" : "pass",
    ),
  "in the middle of a batch": (network, stage, plan) =>
    cutting(network, stage, plan, (chunk, way) =>
      way === "up" && chunk.byteLength > 1_000 ? "cut in half" : "pass",
    ),
  latency: latency(SOME_ROUND_TRIPS),
  "a narrow line": narrow(SOME_ROUND_TRIPS),
  "black hole": async (network, { clients, tally }, plan) => {
    network.swallowing = true;
    const from = performance.now();
    if (plan.long) await Bun.sleep(60_000);
    await Promise.all([
      until(
        "requests are answered",
        within(plan, 30_000),
        () => answersOf(clients, from).unavailable >= CLIENTS,
      ),
      until("it is not ready", within(plan, 30_000), async () => (await tally.readiness()) === 503),
    ]);
    const { cut, slowest } = answersOf(clients, from);
    must(cut === 0, `${cut} requests were cut off`);
    must(slowest < within(plan, 20_000), `an answer took ${slowest} ms`);
    network.swallowing = false;
    // The other side of a line that was dead for so long has forgotten its connections.
    network.cut();
    const back = await working(clients, within(plan, 10_000));
    return `slowest answer ${slowest} ms, back after ${back.toFixed(0)} ms`;
  },
};

async function run(rig: Rig, plan: Plan) {
  const held: { network: FaultyNetwork | null } = { network: null };
  try {
    const through = async ({ socket }: { socket: string }) => {
      held.network = await FaultyNetwork.start({ path: socket });
      return `postgres://tally@127.0.0.1:${held.network.port}/tally?sslmode=disable`;
    };
    const { outcome, acknowledged, stored, unavailable } = await onStage(
      rig,
      plan,
      {
        through,
        timeoutMs: HANG_MS,
        // By default it is ten seconds, which a short drill hasn't got.
        env: plan.long ? {} : { TALLY_REPORTING_DB_SILENCE_S: "2" },
      },
      (stage) => throughAll(TROUBLES, held.network, stage, rig, plan),
    );
    return {
      ...outcome,
      "events acknowledged": acknowledged,
      "events stored": stored,
      "answers 503": unavailable,
    };
  } finally {
    await held.network?.stop();
  }
}

export const networkDatabase: Drill = {
  name: "network-database",
  about:
    "between Tally and database: cut before commit, before its answer, mid-batch; slow, narrow, a black hole",
  rounds: { short: 2, long: 100 },
  run,
};
