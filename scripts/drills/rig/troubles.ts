/** What a network does to those who talk through it, one trouble after the other. */
import { must, type Plan, type Rig } from "../drill.ts";
import { answersOf, BACK_MS, type Stage, working } from "./outage.ts";
import type { FaultyNetwork } from "./proxy.ts";

/** One trouble, from its beginning until work goes on after it. @returns what came of it, in words */
export type Trouble = (network: FaultyNetwork, stage: Stage, plan: Plan) => Promise<string>;

/** How long a trouble lasts in a short drill, in milliseconds. */
const SHORT_MS = 1_000;

/**
 * The network is like that for a while; work goes on after it. What came of it is what clients were answered.
 * @param longMs for how long in a long drill
 */
export function forAWhile(
  longMs: number,
  begin: (network: FaultyNetwork) => void,
  end: (network: FaultyNetwork) => void,
): Trouble {
  return async (network, { clients }, { long }) => {
    const done = clients.done;
    begin(network);
    const from = performance.now();
    await Bun.sleep(long ? longMs : SHORT_MS);
    const meanwhile = clients.done - done;
    end(network);
    await working(clients, BACK_MS);
    return `${meanwhile} batches acknowledged meanwhile, slowest answer ${answersOf(clients, from).slowest} ms`;
  };
}

/** A round trip takes two seconds: one each way. */
export function latency(longMs: number): Trouble {
  return forAWhile(
    longMs,
    (network) => {
      network.latencyMs = 1_000;
    },
    (network) => {
      network.latencyMs = 0;
    },
  );
}

/** Ten kilobytes a second. */
export function narrow(longMs: number): Trouble {
  return forAWhile(
    longMs,
    (network) => {
      network.bytesPerSecond = 10_000;
    },
    (network) => {
      network.bytesPerSecond = null;
    },
  );
}

/** Each trouble after the one before. @returns what came of each, by its name */
export async function throughAll(
  troubles: Readonly<Record<string, Trouble>>,
  network: FaultyNetwork | null,
  stage: Stage,
  rig: Rig,
  plan: Plan,
): Promise<Record<string, string>> {
  must(network !== null, "there is no network");
  const told: Record<string, string> = {};
  for (const [name, trouble] of Object.entries(troubles)) {
    told[name] = await trouble(network, stage, plan);
    rig.say(`${name}: ${told[name]}`);
  }
  return told;
}
