/**
 * The disk under the embedded database fills up, by somebody else's file: first to where Tally stops writing, then, all
 * at once, to the last byte. A tmpfs is that disk.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LEAST_ROOM } from "../../src/database/embedded/room.ts";
import type { Drill, Figures, Plan, Rig } from "./drill.ts";
import { must, thinkMs, until, within } from "./drill.ts";
import { Clients } from "./rig/clients.ts";
import { answersOf, working } from "./rig/outage.ts";
import { proveOn } from "./rig/proof.ts";
import { between } from "./rig/random.ts";
import { Tally } from "./rig/tally.ts";
import { Workload } from "./rig/workload.ts";

const DISK_BYTES = 900 * 2 ** 20;
const ANSWER_MS = 5_000;
const BACK_MS = 60_000;

/** @returns what went wrong; null: nothing */
function run(...command: string[]): string | null {
  try {
    const { exitCode, stderr } = Bun.spawnSync(command);
    return exitCode === 0 ? null : `${command.join(" ")}: ${stderr.toString().trim()}`;
  } catch (error) {
    return `${command.join(" ")}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function mount(at: string): string | null {
  return run("mount", "-t", "tmpfs", "-o", `size=${DISK_BYTES},mode=0755`, "tmpfs", at);
}

/** A file of somebody else's. */
class Ballast {
  readonly #path: string;
  readonly #disk: string;

  constructor(disk: string) {
    this.#disk = disk;
    this.#path = join(disk, "ballast");
  }

  /** Takes all but so many bytes; the database takes some, too, meanwhile. */
  leave(bytes: number): void {
    let wrong: string | null = null;
    for (let attempt = 0; attempt < 20; attempt++) {
      const { bavail, bsize } = statfsSync(this.#disk);
      const taken = existsSync(this.#path) ? Bun.file(this.#path).size : 0;
      const more = bavail * bsize - bytes - attempt * 65_536;
      if (more <= 0) return;
      wrong = run("fallocate", "-l", String(taken + more), this.#path);
      if (wrong === null) return;
    }
    must(wrong === null, wrong ?? "");
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }
}

function unable(): string | null {
  if (process.getuid?.() !== 0) return "mounting a small disk takes root";
  const at = mkdtempSync(join(tmpdir(), "tally-drill-mount-"));
  const wrong = mount(at);
  if (wrong === null) {
    const left = run("umount", at);
    // What is still mounted is not cleared away.
    if (left !== null) return left;
  }
  rmSync(at, { recursive: true, force: true });
  return wrong;
}

async function nearlyFull(tally: Tally, clients: Clients, ballast: Ballast, plan: Plan): Promise<number> {
  ballast.leave(LEAST_ROOM - 32 * 2 ** 20);
  await until("it is not ready", within(plan, 15_000), async () => (await tally.readiness()) === 503);
  const full = performance.now();
  const told = () => answersOf(clients, full).unavailable >= clients.count;
  await until("writes are told of", within(plan, ANSWER_MS), told);
  const { cut, slowest } = answersOf(clients, full);
  must(cut === 0, `${cut} requests were cut off`);
  must(slowest <= within(plan, ANSWER_MS), `an answer took ${slowest} ms`);
  must(tally.runs, "Tally ended, with room left");
  ballast.remove();
  await tally.ready(BACK_MS);
  return await working(clients, BACK_MS);
}

/** @returns whether the database had to be started again */
async function full(tally: Tally, clients: Clients, ballast: Ballast, plan: Plan): Promise<boolean> {
  ballast.leave(0);
  const from = performance.now();
  const told = () => !tally.runs || answersOf(clients, from).unavailable >= clients.count;
  await until("writes are told of", within(plan, ANSWER_MS), told);
  if (plan.long) await Bun.sleep(2_000);
  ballast.remove();
  // A PostgreSQL that found no room for its log has crashed, and Tally ended with it: its supervisor starts it again.
  const settled = async () => !tally.runs || (await tally.readiness()) === 200;
  await until("it is ready again, or has ended", BACK_MS, settled);
  const ended = !tally.runs;
  if (ended) await tally.start();
  await working(clients, BACK_MS);
  return ended;
}

async function underLoad(tally: Tally, rig: Rig, plan: Plan, ballast: Ballast): Promise<Figures> {
  const { rounds, random } = plan;
  const clients = new Clients({
    url: tally.url,
    token: await tally.credential(),
    workload: new Workload({ run: "disk", seed: between(random, 1, 1e9), items: 200 }),
    thinkMs: thinkMs(plan),
  });
  let restarts = 0;
  const back: number[] = [];
  try {
    for (let round = 1; round <= rounds; round++) {
      await working(clients);
      back.push(await nearlyFull(tally, clients, ballast, plan));
      if (await full(tally, clients, ballast, plan)) restarts++;
      rig.say(`round ${round} of ${rounds}`);
    }
    await clients.finish();
    const { acknowledged, stored } = await proveOn(tally, clients);
    return {
      "disk (MiB)": DISK_BYTES / 2 ** 20,
      "times full": 2 * rounds,
      "restarts by the supervisor": restarts,
      "answers 503": clients.answers.filter(({ outcome }) => outcome === "unavailable").length,
      "slowest return (ms)": Math.round(Math.max(...back)),
      "events acknowledged": acknowledged,
      "events stored": stored,
    };
  } finally {
    await clients.abandon();
  }
}

async function onDisk(disk: string, rig: Rig, plan: Plan): Promise<Figures> {
  const ballast = new Ballast(disk);
  const tally = await Tally.start(rig, { dataDir: join(disk, "data") });
  try {
    return await underLoad(tally, rig, plan, ballast);
  } finally {
    await tally.stop();
  }
}

async function drill(rig: Rig, plan: Plan): Promise<Figures> {
  const disk = join(rig.place, "disk");
  mkdirSync(disk);
  const wrong = mount(disk);
  must(wrong === null, wrong ?? "");
  chmodSync(disk, 0o755);
  let failure: unknown = null;
  try {
    return await onDisk(disk, rig, plan);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    const left = run("umount", disk);
    must(left === null, failure === null ? `${left}` : `${failure}; and then ${left}`);
  }
}

export const diskFull: Drill = {
  name: "disk-full",
  about: "the disk fills up: 503 while it is full, nothing acknowledged that isn't there, recovers",
  rounds: { short: 1, long: 5 },
  unable,
  run: drill,
};
