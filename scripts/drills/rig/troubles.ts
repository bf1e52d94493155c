/** What a network does to those who talk through it, one trouble after the other. */
import { must, type Plan, type Rig, until } from "../drill.ts";
import type { Answered } from "./clients.ts";
import { answersOf, BACK_MS, type Stage, working } from "./outage.ts";
import type { FaultyNetwork } from "./proxy.ts";

/** One trouble, from its beginning until work goes on after it. @returns what came of it, in words */
export type Trouble = (network: FaultyNetwork, stage: Stage, plan: Plan) => Promise<string>;

/** How long a trouble lasts at least in a short drill, in milliseconds. */
const SHORT_MS = 1_500;

/** How slow it is, and what follows from that for one request. */
export interface Slow {
  /** How long it lasts in a long drill, in milliseconds. */
  readonly longMs: number;
  /** What a request must wait for at least and at most, in milliseconds: in a long drill, and in a short one. */
  readonly long: { readonly leastMs: number; readonly mostMs: number };
  readonly short: { readonly leastMs: number; readonly mostMs: number };
}

/** What makes a network slow. */
interface Slowness {
  /** How slow it is, in words. */
  readonly what: string;
  readonly begin: (network: FaultyNetwork) => void;
  readonly end: (network: FaultyNetwork) => void;
}

/** Requests that were begun after `from` and are acknowledged. */
function begunAndDone({ clients }: Stage, from: number): Answered[] {
  return clients
    .since(from)
    .filter(({ outcome, at, milliseconds }) => outcome === "acknowledged" && at - milliseconds >= from);
}

/** Work that is begun under it gets through while it lasts, as slowly as it must and no slower; and it goes on after it. */
function slowness(slow: Slow, how: (long: boolean) => Slowness): Trouble {
  return async (network, stage, { long }) => {
    const { what, begin, end } = how(long);
    const { leastMs, mostMs } = long ? slow.long : slow.short;
    const lastsMs = long ? slow.longMs : SHORT_MS;
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

/** A round trip takes two seconds, one each way; a tenth of that in a short drill. */
export function latency(slow: Slow): Trouble {
  return slowness(slow, (long) => ({
    what: long ? "2 s" : "200 ms",
    begin: (network) => {
      network.latencyMs = long ? 1_000 : 100;
    },
    end: (network) => {
      network.latencyMs = 0;
    },
  }));
}

/** Ten kilobytes a second; ten times that in a short drill. */
export function narrow(slow: Slow): Trouble {
  return slowness(slow, (long) => ({
    what: long ? "10 KB/s" : "100 KB/s",
    begin: (network) => {
      network.bytesPerSecond = long ? 10_000 : 100_000;
    },
    end: (network) => {
      network.bytesPerSecond = null;
    },
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
