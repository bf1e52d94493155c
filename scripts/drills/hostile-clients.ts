/** Clients that are slow, or mean harm. The others are served all the while. */
import { join } from "node:path";
import { residentMegabytes } from "../bench/machine.ts";
import type { Drill, Plan, Rig } from "./drill.ts";
import { must, thinkMs, within } from "./drill.ts";
import { Clients } from "./rig/clients.ts";
import { HOSTILITIES, PATIENT } from "./rig/hostilities.ts";
import { answersOf, working } from "./rig/outage.ts";
import { proveOn } from "./rig/proof.ts";
import { between } from "./rig/random.ts";
import { Tally } from "./rig/tally.ts";
import { Workload } from "./rig/workload.ts";

/** Somebody else's request must not take longer than that, whatever goes on. */
const SERVED_MS = 5_000;
/** What all of it may add to Tally's memory at its worst. */
const MEMORY_MB = 1_200;

/** Runs one hostility to its end. @returns what it was, in words. @throws {Error} with what it found */
async function suffer(name: string, url: string, token: string, long: boolean): Promise<string> {
  const child = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, "rig/hostile.ts"),
      name,
      new URL(url).port,
      token,
      long ? "long" : "short",
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  const [said, wrong] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  must((await child.exited) === 0, `${name}: ${wrong.slice(-500)}`);
  return said.trim();
}

/** One after the other, so that each has figures of its own; in a short drill those that only wait wait together. */
function turns(long: boolean): string[][] {
  const alone = Object.keys(HOSTILITIES).filter((name) => long || !PATIENT.includes(name));
  return [...(long ? [] : [[...PATIENT]]), ...alone.map((name) => [name])];
}

async function run(rig: Rig, plan: Plan) {
  const tally = await Tally.start(rig);
  try {
    const token = await tally.credential();
    const clients = new Clients({
      url: tally.url,
      token,
      workload: new Workload({ run: "honest", seed: between(plan.random, 1, 1e9), items: 50 }),
      thinkMs: thinkMs(plan),
      clients: 2,
    });
    try {
      return await beside({ clients, tally, token }, rig, plan);
    } finally {
      await clients.abandon();
    }
  } finally {
    await tally.stop();
  }
}

/** All of it, while these clients work. */
async function beside(
  { clients, tally, token }: { clients: Clients; tally: Tally; token: string },
  rig: Rig,
  plan: Plan,
) {
  const { long } = plan;
  const told: Record<string, string> = {};
  await working(clients);
  const before = residentMegabytes(tally.pid).now;
  for (const names of turns(long)) {
    const during = names.join(", ");
    const from = performance.now();
    const done = await Promise.all(names.map((name) => suffer(name, tally.url, token, long)));
    await working(clients);
    const others = answersOf(clients, from);
    must(
      others.cut === 0 && others.unavailable === 0,
      `others were not served during ${during}: ${others.cut} cut off, ${others.unavailable} answers of 503`,
    );
    must(
      others.slowest <= within(plan, SERVED_MS),
      `another's request took ${others.slowest} ms during ${during}`,
    );
    const { now } = residentMegabytes(tally.pid);
    for (const [at, name] of names.entries()) told[name] = `${done[at]}, others ${others.slowest} ms at most`;
    rig.say(`${during}: ${done.join(", ")}, others ${others.slowest} ms at most; ${now.toFixed(0)} MB`);
  }
  const { most } = residentMegabytes(tally.pid);
  must(most < before + MEMORY_MB, `memory went from ${before.toFixed(0)} to ${most.toFixed(0)} MB`);
  must((await tally.readiness()) === 200, "it is not ready afterwards");
  await clients.finish();
  const { acknowledged, stored } = await proveOn(tally, clients);
  return {
    ...told,
    "memory before and at most (MB)": `${before.toFixed(0)}, ${most.toFixed(0)}`,
    "events acknowledged": acknowledged,
    "events stored": stored,
  };
}

export const hostileClients: Drill = {
  name: "hostile-clients",
  about: "slow headers and bodies, idle connections, bombs, bodies too large, garbage; others are served",
  rounds: { short: 1, long: 1 },
  run,
};
