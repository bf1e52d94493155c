/** Tally, its database, or both are killed at a random instant under load, and started again. Round after round. */
import type { Drill, Figures, Plan, Rig } from "./drill.ts";
import { must, thinkMs, within } from "./drill.ts";
import { Clients } from "./rig/clients.ts";
import { proveOn } from "./rig/proof.ts";
import { between } from "./rig/random.ts";
import { Tally } from "./rig/tally.ts";
import { Workload } from "./rig/workload.ts";

/** Rounds after which the whole database is checked, beside the check at the end. */
const CHECK_EVERY = 20;
/** A start that has to recover; longer is a fault. */
const BACK_MS = 30_000;

type Victim = "tally" | "database" | "both";

async function strike(tally: Tally, victim: Victim): Promise<void> {
  if (victim !== "tally") process.kill(tally.postmaster, "SIGKILL");
  if (victim !== "database") return await tally.kill();
  const code = await tally.ended(20_000);
  must(code === 1, `without its database Tally ended with ${code}, not with 1`);
}

async function killing(rig: Rig, plan: Plan, victim: Victim): Promise<Figures> {
  const tally = await Tally.start(rig);
  try {
    return await killingOf(tally, rig, plan, victim);
  } finally {
    await tally.stop();
  }
}

async function killingOf(tally: Tally, rig: Rig, plan: Plan, victim: Victim): Promise<Figures> {
  const { rounds, random } = plan;
  const clients = new Clients({
    url: tally.url,
    token: await tally.credential(),
    workload: new Workload({ run: victim, seed: between(random, 1, 1e9), items: 50 }),
    thinkMs: thinkMs(plan),
  });
  const starts: number[] = [];
  try {
    for (let round = 1; round <= rounds; round++) {
      await Bun.sleep(between(random, 30, 900));
      await strike(tally, victim);
      tally.launch();
      starts.push(await tally.ready(within(plan, BACK_MS)));
      if (round % CHECK_EVERY === 0 || round === rounds) {
        rig.say(`round ${round} of ${rounds}: ${clients.done} batches acknowledged`);
        if (round < rounds) await proveOn(tally, clients);
      }
    }
    await clients.finish();
    const { acknowledged, stored } = await proveOn(tally, clients);
    return {
      kills: rounds,
      "events acknowledged": acknowledged,
      "events stored": stored,
      "requests cut off": clients.cut,
      "slowest start (ms)": Math.round(Math.max(...starts)),
    };
  } finally {
    await clients.abandon();
  }
}

/** The drill for one victim. */
export function killDrill(name: string, about: string, victim: Victim): Drill {
  return { name, about, rounds: { short: 2, long: 100 }, run: (rig, plan) => killing(rig, plan, victim) };
}
