/**
 * What goes wrong, gone wrong on purpose: `bun run drills -- --help`. Each drill ends with the checker and with "every
 * acknowledged event is there exactly once". docs/reliability.md holds what the long ones came to.
 */
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { machineLine } from "./bench/machine.ts";
import { DRILLS, drillNamed } from "./drills/all.ts";
import type { Drill, Figures, Rig } from "./drills/drill.ts";
import { randomFrom } from "./drills/rig/random.ts";

function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text) || Number(text) < 1)
    throw new InvalidArgumentError("must be a whole number from 1 on");
  return Number(text);
}

const program = new Command("drills")
  .description("breaks things on purpose and proves that nothing acknowledged was lost or counted twice")
  .argument("[names...]", "which drills; all of them, when none is named")
  .option("--rounds <n>", "how often each is done; its long number, when not given", whole)
  .option("--seed <n>", "decides what is random; printed, so that a failure can be had again", whole)
  .option("--short", "the short version of each, as the tests run it")
  .option(
    "--executable <path>",
    "the executable; where there is none, Tally runs from its sources",
    "dist/tally",
  )
  .option("--dir <path>", "where databases go; its disk is what is worked", tmpdir())
  .option("--list", "say which drills there are")
  .addHelpText(
    "after",
    `\nDrills:\n${DRILLS.map(({ name, about }) => `  ${name.padEnd(20)} ${about}`).join("\n")}`,
  )
  .parse();

const options = program.opts<{
  rounds?: number;
  seed?: number;
  short?: boolean;
  executable: string;
  dir: string;
  list?: boolean;
}>();

const begun = performance.now();

function tell(text: string): void {
  console.error(`${((performance.now() - begun) / 1000).toFixed(0).padStart(5)} s  ${text}`);
}

/** The executable is copied: it may lie where the unprivileged user can't go, and be built anew meanwhile. */
function commandIn(place: string): string[] {
  if (!existsSync(options.executable)) return [process.execPath, join(import.meta.dir, "../src/main.ts")];
  const copy = join(place, "tally-executable");
  copyFileSync(options.executable, copy);
  chmodSync(copy, 0o755);
  return [copy];
}

async function one(drill: Drill, seed: number): Promise<Figures | string> {
  const unable = drill.unable?.() ?? null;
  if (unable !== null) return `not run: ${unable}`;
  const place = mkdtempSync(join(options.dir, "tally-drill-"));
  chmodSync(place, 0o755);
  const durable = options.short !== true;
  const say = (text: string) => tell(`${drill.name}: ${text}`);
  const rig: Rig = { command: commandIn(place), place, shared: place, durable, say };
  const rounds = options.rounds ?? (options.short === true ? drill.rounds.short : drill.rounds.long);
  try {
    return await drill.run(rig, { rounds, long: options.short !== true, random: randomFrom(seed) });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

if (options.list === true) {
  for (const { name, about } of DRILLS) console.log(`${name.padEnd(20)} ${about}`);
  process.exit(0);
}

const drills = program.args.length === 0 ? DRILLS : program.args.map(drillNamed);
const seed = options.seed ?? Math.floor(Math.random() * 1e9) + 1;
let failed = 0;
console.log(`${machineLine()}; seed ${seed}\n`);
for (const drill of drills) {
  const from = performance.now();
  tell(`${drill.name}: ${drill.about}`);
  let outcome: string;
  try {
    const figures = await one(drill, seed);
    const seconds = `${((performance.now() - from) / 1000).toFixed(0)} s`;
    outcome =
      typeof figures === "string"
        ? figures
        : `held, ${seconds}: ${Object.entries(figures)
            .map(
              ([name, value]) => `${name} ${typeof value === "number" ? value.toLocaleString("en") : value}`,
            )
            .join("; ")}`;
  } catch (error) {
    failed++;
    outcome = `FAILED (seed ${seed}): ${error instanceof Error ? error.message : String(error)}`;
  }
  console.log(`${drill.name}: ${outcome}`);
}
console.log(`\n${drills.length - failed} of ${drills.length} held`);
process.exit(failed === 0 ? 0 : 1);
