/** What the network between clients and Tally does. */
import { readFileSync } from "node:fs";
import { type Drill, must, type Plan, type Rig, until } from "./drill.ts";
import { cutting } from "./rig/cutting.ts";
import { BACK_MS, onStage, working } from "./rig/outage.ts";
import { FaultyNetwork } from "./rig/proxy.ts";
import { latency, narrow, type Slow, type Trouble, throughAll } from "./rig/troubles.ts";

const ESTABLISHED = "01";

/** A body goes there and its answer comes back; the rest is what Tally takes by itself. */
const ONE_ROUND_TRIP: Slow = {
  longMs: 30_000,
  long: { leastMs: 2_000, mostMs: 10_000 },
  short: { leastMs: 200, mostMs: 10_000 },
};
/** The smallest body is of 10 KB, the largest of 40. */
const ONE_BODY: Slow = {
  longMs: 60_000,
  long: { leastMs: 800, mostMs: 20_000 },
  short: { leastMs: 60, mostMs: 10_000 },
};
/** Tally gives a transfer 240 s (src/http/envelope.ts), and Bun looks at its clocks every few seconds. */
const HALF_OPEN_MS = 260_000;
/** These clients wait for longer than the black hole lasts; whatever else takes so long hangs. */
const HANGS_MS = { short: 30_000, long: 330_000 };

/** How many connections to that port stand, as the one who listens there sees it. */
function standing(port: number): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((row) => row.trim().split(/\s+/));
  return rows.filter(([, from, , state]) => from === local && state === ESTABLISHED).length;
}

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "in the middle of a body": (network, stage, plan) =>
    cutting(network, stage, plan, (chunk, way) =>
      way === "up" && chunk.byteLength > 2_000 ? "cut in half" : "pass",
    ),
  "between commit and answer": (network, stage, plan) =>
    cutting(network, stage, plan, (_, way) => (way === "down" ? "cut" : "pass")),
  latency: latency(ONE_ROUND_TRIP),
  "a narrow line": narrow(ONE_BODY),
  "black hole": async (network, { clients, tally }, plan) => {
    network.swallowing = true;
    const from = performance.now();
    await Bun.sleep(plan.long ? 30_000 : 1_000);
    const port = Number(new URL(tally.url).port);
    if (plan.long) {
      must(standing(port) > 0, "no connection to Tally stands");
      // Clients don't tell Tally that they have gone: it must find out by itself.
      await until("Tally gives every connection up", HALF_OPEN_MS, () => standing(port) === 0);
    }
    must((await tally.readiness()) === 200, "it is not ready");
    const lasted = performance.now() - from;
    network.swallowing = false;
    network.cut();
    const back = await working(clients, BACK_MS);
    return `${(lasted / 1000).toFixed(0)} s, back after ${back.toFixed(0)} ms`;
  },
};

async function run(rig: Rig, plan: Plan) {
  const timeoutMs = plan.long ? HANGS_MS.long : HANGS_MS.short;
  const held: { network: FaultyNetwork | null } = { network: null };
  try {
    const clientUrl = async (tally: { url: string }) => {
      held.network = await FaultyNetwork.start({ host: "127.0.0.1", port: Number(new URL(tally.url).port) });
      return `http://127.0.0.1:${held.network.port}`;
    };
    const { outcome, acknowledged, stored } = await onStage(rig, plan, { clientUrl, timeoutMs }, (stage) =>
      throughAll(TROUBLES, held.network, stage, rig, plan),
    );
    return { ...outcome, "events acknowledged": acknowledged, "events stored": stored };
  } finally {
    await held.network?.stop();
  }
}

export const networkClients: Drill = {
  name: "network-clients",
  about: "between clients and Tally: cut mid-body, between commit and answer; slow, narrow, a black hole",
  rounds: { short: 2, long: 100 },
  run,
};
