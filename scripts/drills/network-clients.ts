/** What the network between clients and Tally does. */
import type { Drill, Plan, Rig } from "./drill.ts";
import { must } from "./drill.ts";
import { cutting } from "./rig/cutting.ts";
import { answersOf, onStage, type Stage, working } from "./rig/outage.ts";
import { FaultyNetwork } from "./rig/proxy.ts";

const BACK_MS = 60_000;

type Trouble = (network: FaultyNetwork, stage: Stage, plan: Plan) => Promise<string>;

/** The network is like that for a while. */
async function whileSo(
  { clients }: Stage,
  milliseconds: number,
  begin: () => void,
  end: () => void,
): Promise<string> {
  begin();
  const from = performance.now();
  await Bun.sleep(milliseconds);
  end();
  await working(clients, BACK_MS);
  return `slowest answer ${answersOf(clients, from).slowest} ms`;
}

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "in the middle of a body": (network, stage, plan) =>
    cutting(network, stage, plan, (chunk, way) =>
      way === "up" && chunk.byteLength > 2_000 ? "pass and cut" : "pass",
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
      long ? 60_000 : 1_500,
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
    // A body of several chunks, so that there is a middle.
    const { acknowledged, stored } = await onStage(rig, plan, { items: 200, clientUrl }, async (stage) => {
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
