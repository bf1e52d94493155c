/** What the network between clients and Tally does. */
import type { Drill, Plan, Rig } from "./drill.ts";
import { must } from "./drill.ts";
import { cutting } from "./rig/cutting.ts";
import { onStage, type Stage, whileSo } from "./rig/outage.ts";
import { FaultyNetwork } from "./rig/proxy.ts";

type Trouble = (network: FaultyNetwork, stage: Stage, plan: Plan) => Promise<string>;

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "in the middle of a body": (network, stage, plan) =>
    cutting(network, stage, plan, (chunk, way) =>
      way === "up" && chunk.byteLength > 2_000 ? "cut in half" : "pass",
    ),
  "between commit and answer": (network, stage, plan) =>
    cutting(network, stage, plan, (_, way) => (way === "down" ? "cut" : "pass")),
  "2 s latency": (network, stage, { long }) =>
    whileSo(
      stage,
      long ? 30_000 : 1_000,
      () => {
        network.latencyMs = 1_000;
      },
      () => {
        network.latencyMs = 0;
      },
    ),
  "10 KB/s": (network, stage, { long }) =>
    whileSo(
      stage,
      long ? 60_000 : 1_000,
      () => {
        network.bytesPerSecond = 10_000;
      },
      () => {
        network.bytesPerSecond = null;
      },
    ),
  "black hole": (network, stage, { long }) =>
    whileSo(
      stage,
      long ? 30_000 : 1_000,
      () => {
        network.swallowing = true;
      },
      () => {
        network.swallowing = false;
        network.cut();
      },
    ),
};

async function run(rig: Rig, plan: Plan) {
  const held: { network: FaultyNetwork | null } = { network: null };
  const told: Record<string, string> = {};
  try {
    const clientUrl = async (tally: { url: string }) => {
      held.network = await FaultyNetwork.start({ host: "127.0.0.1", port: Number(new URL(tally.url).port) });
      return `http://127.0.0.1:${held.network.port}`;
    };
    const { acknowledged, stored } = await onStage(rig, plan, { clientUrl }, async (stage) => {
      for (const [name, trouble] of Object.entries(TROUBLES)) {
        must(held.network !== null, "there is no network");
        told[name] = await trouble(held.network, stage, plan);
        rig.say(`${name}: ${told[name]}`);
      }
    });
    return { ...told, "events acknowledged": acknowledged, "events stored": stored };
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
