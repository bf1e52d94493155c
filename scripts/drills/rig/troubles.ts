/** What a network does to those who talk through it, one trouble after the other. */
import { must, type Plan, type Rig, until } from "../drill.ts";
import type { Answered } from "./clients.ts";
import { answersOf, BACK_MS, type Stage, working } from "./outage.ts";
import type { FaultyNetwork } from "./proxy.ts";

/** One trouble, from its beginning until work goes on after it. @returns what came of it, in words */
export type Trouble = (network: FaultyNetwork, stage: Stage, plan: Plan) => Promise<string>;

/** How long a trouble lasts at least in a short drill, in milliseconds. */
const SHORT_MS = 1_500;

/** A network that is slow for a while. */
interface Slowness {
  /** How slow it is, in words. */
  readonly what: string;
  /** How long it lasts at least, in milliseconds; work that was begun under it must get through while it does. */
  readonly lastsMs: number;
  readonly begin: (network: FaultyNetwork) => void;
  readonly end: (network: FaultyNetwork) => void;
  /** No answer can come sooner, or the network was not slow. */
  readonly leastMs: number;
  /** None may take longer. */
  readonly mostMs: number;
}

/** Requests that were begun after `from` and are acknowledged. */
function begunAndDone({ clients }: Stage, from: number): Answered[] {
  return clients
    .since(from)
    .filter(({ outcome, at, milliseconds }) => outcome === "acknowledged" && at - milliseconds >= from);
}

/** Work goes on under it, as slowly as it must and no slower, and after it. */
function slowness(how: (plan: Plan) => Slowness): Trouble {
  return async (network, stage, plan) => {
    const { what, lastsMs, begin, end, leastMs, mostMs } = how(plan);
    begin(network);
    const from = performance.now();
    await Promise.all([
      Bun.sleep(lastsMs),
      until("a batch gets through", lastsMs + mostMs, () => begunAndDone(stage, from).length > 0),
    ]);
    const meanwhile = begunAndDone(stage, from);
    end(network);
    await working(stage.clients, BACK_MS);
    const fastest = Math.min(...meanwhile.map(({ milliseconds }) => milliseconds));
    must(fastest >= leastMs, `the network was not slow: an answer took ${fastest.toFixed(0)} ms`);
    const { slowest, unavailable } = answersOf(stage.clients, from);
    must(slowest <= mostMs, `an answer took ${slowest} ms, on a network that allows for ${mostMs}`);
    return `${what}: ${meanwhile.length} batches got through meanwhile, ${unavailable} answers of 503, slowest answer ${slowest} ms`;
  };
}

/** How slow it is, and what follows from that for one request. */
export interface Slow {
  /** How long it lasts in a long drill, in milliseconds. */
  readonly longMs: number;
  /** What a request must wait for at least and at most, in milliseconds: in a long drill, and in a short one. */
  readonly long: { readonly leastMs: number; readonly mostMs: number };
  readonly short: { readonly leastMs: number; readonly mostMs: number };
}

/** A round trip takes two seconds, one each way; a tenth of that in a short drill. */
export function latency(slow: Slow): Trouble {
  return slowness(({ long }) => ({
    what: long ? "2 s" : "200 ms",
    lastsMs: long ? slow.longMs : SHORT_MS,
    begin: (network) => {
      network.latencyMs = long ? 1_000 : 100;
    },
    end: (network) => {
      network.latencyMs = 0;
    },
    ...(long ? slow.long : slow.short),
  }));
}

/** Ten kilobytes a second; ten times that in a short drill. */
export function narrow(slow: Slow): Trouble {
  return slowness(({ long }) => ({
    what: long ? "10 KB/s" : "100 KB/s",
    lastsMs: long ? slow.longMs : SHORT_MS,
    begin: (network) => {
      network.bytesPerSecond = long ? 10_000 : 100_000;
    },
    end: (network) => {
      network.bytesPerSecond = null;
    },
    ...(long ? slow.long : slow.short),
  }));
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
