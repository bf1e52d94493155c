/** What the network between clients and Tally does. */
import type { Drill, Plan, Rig } from "./drill.ts";
import { cutting } from "./rig/cutting.ts";
import { onStage } from "./rig/outage.ts";
import { FaultyNetwork } from "./rig/proxy.ts";
import { forAWhile, latency, narrow, type Trouble, throughAll } from "./rig/troubles.ts";

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "in the middle of a body": (network, stage, plan) =>
    cutting(network, stage, plan, (chunk, way) =>
      way === "up" && chunk.byteLength > 2_000 ? "cut in half" : "pass",
    ),
  "between commit and answer": (network, stage, plan) =>
    cutting(network, stage, plan, (_, way) => (way === "down" ? "cut" : "pass")),
  "2 s latency": latency(30_000),
  "10 KB/s": narrow(60_000),
  "black hole": forAWhile(
    30_000,
    (network) => {
      network.swallowing = true;
    },
    (network) => {
      network.swallowing = false;
      network.cut();
    },
  ),
};

async function run(rig: Rig, plan: Plan) {
  const held: { network: FaultyNetwork | null } = { network: null };
  try {
    const clientUrl = async (tally: { url: string }) => {
      held.network = await FaultyNetwork.start({ host: "127.0.0.1", port: Number(new URL(tally.url).port) });
      return `http://127.0.0.1:${held.network.port}`;
    };
    const { outcome, acknowledged, stored } = await onStage(rig, plan, { clientUrl }, (stage) =>
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
