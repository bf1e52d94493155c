/** Connections that are cut at a chosen moment. */
import { type Plan, until } from "../drill.ts";
import { BACK_MS, type Stage, working } from "./outage.ts";
import type { FaultyNetwork, Verdict } from "./proxy.ts";
import { between } from "./random.ts";

/**
 * Cuts one connection a round, at one of the next few chunks for which `moment` says so; work must go on after each.
 * @returns how many, in words
 */
export async function cutting(
  network: FaultyNetwork,
  { clients }: Stage,
  { rounds, random }: Plan,
  moment: (chunk: Buffer, way: "up" | "down") => Verdict,
): Promise<string> {
  let cuts = 0;
  for (let round = 0; round < rounds; round++) {
    let skip = between(random, 0, 4);
    let armed = true;
    network.judge = (chunk, way) => {
      if (!armed) return "pass";
      const verdict = moment(chunk, way);
      if (verdict === "pass" || skip-- > 0) return "pass";
      armed = false;
      cuts++;
      return verdict;
    };
    await until("a connection is cut", BACK_MS, () => !armed);
    await working(clients, BACK_MS);
  }
  network.judge = null;
  return `${cuts} cuts`;
}
