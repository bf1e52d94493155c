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

const BUILT = "dist/tally";

const program = new Command("drills")
  .description("breaks things on purpose and proves that nothing acknowledged was lost or counted twice")
  .argument("[names...]", "which drills; all of them, when none is named")
  .option("--rounds <n>", "how often each is done; its long number, when not given", whole)
  .option("--seed <n>", "decides what is random; printed, so that a failure can be had again", whole)
  .option("--short", "the short version of each, as the tests run it")
  .option("--strict", "fail, too, where a drill could not be run on this machine")
  .option(
    "--executable <path>",
    `the executable; when not given, ${BUILT}, or the sources where nothing is built`,
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
  strict?: boolean;
  executable?: string;
  dir: string;
  list?: boolean;
}>();

const begun = performance.now();

function tell(text: string): void {
  console.error(`${((performance.now() - begun) / 1000).toFixed(0).padStart(5)} s  ${text}`);
}

/** What is run; null: the sources. Decided once, so that what the first line names is what every drill runs. */
const executable = options.executable ?? (existsSync(BUILT) ? BUILT : null);

/** The executable is copied: it may lie where the unprivileged user can't go, and be built anew meanwhile. */
function commandIn(place: string): string[] {
  if (executable === null) return [process.execPath, join(import.meta.dir, "../src/main.ts")];
  const copy = join(place, "tally-executable");
  copyFileSync(executable, copy);
  chmodSync(copy, 0o755);
  return [copy];
}

/** A place that can't be cleared away must not hide what its drill came to. */
function clear(place: string): void {
  try {
    rmSync(place, { recursive: true, force: true });
  } catch (error) {
    tell(`${place} is left: ${String(error)}`);
  }
}

async function one(drill: Drill, seed: number): Promise<Figures> {
  const place = mkdtempSync(join(options.dir, "tally-drill-"));
  chmodSync(place, 0o755);
  const durable = options.short !== true;
  const say = (text: string) => tell(`${drill.name}: ${text}`);
  const rig: Rig = { command: commandIn(place), place, shared: place, durable, say };
  const rounds = options.rounds ?? (options.short === true ? drill.rounds.short : drill.rounds.long);
  try {
    return await drill.run(rig, { rounds, long: options.short !== true, random: randomFrom(seed) });
  } finally {
    clear(place);
  }
}

if (options.list === true) {
  for (const { name, about } of DRILLS) console.log(`${name.padEnd(20)} ${about}`);
  process.exit(0);
}

const drills = program.args.length === 0 ? DRILLS : program.args.map(drillNamed);
const seed = options.seed ?? Math.floor(Math.random() * 1e9) + 1;
if (executable !== null && !existsSync(executable)) program.error(`error: there is no ${executable}`);
let held = 0;
let failed = 0;
let notRun = 0;
console.log(`${machineLine()}; ${executable ?? "the sources"}; seed ${seed}\n`);
for (const drill of drills) {
  const unable = drill.unable?.() ?? null;
  if (unable !== null) {
    notRun++;
    console.log(`${drill.name}: not run: ${unable}`);
    continue;
  }
  const from = performance.now();
  tell(`${drill.name}: ${drill.about}`);
  try {
    const figures = Object.entries(await one(drill, seed)).map(
      ([name, value]) => `${name} ${typeof value === "number" ? value.toLocaleString("en") : value}`,
    );
    const seconds = ((performance.now() - from) / 1000).toFixed(0);
    held++;
    console.log(`${drill.name}: held, ${seconds} s: ${figures.join("; ")}`);
  } catch (error) {
    failed++;
    const what = error instanceof Error ? error.message : String(error);
    console.log(`${drill.name}: FAILED (seed ${seed}): ${what}`);
  }
}
const others = [
  ...(failed === 0 ? [] : [`${failed} failed`]),
  ...(notRun === 0 ? [] : [`${notRun} not run`]),
];
console.log(`\n${[`${held} of ${drills.length} held`, ...others].join(", ")}`);
process.exit(failed > 0 || (notRun > 0 && options.strict === true) ? 1 : 0);
