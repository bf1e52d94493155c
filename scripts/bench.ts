/**
 * What ingest costs: the built executable's API against a bare floor and against one statement an item, on one and
 * the same PostgreSQL server, the executable's own, with every commit durable. `bun run bench -- --help`.
 *
 *   api    POST /api/v1/events, keep-alive, bodies made beforehand
 *   floor  the same rows by two plain statements a batch: no HTTP, no checks, nothing read back
 *   items  one statement after the other for each item: insert the event; lock the row; read it; write it
 *
 * Every run starts from the same tables; what contestants leave behind is compared. docs/performance.md has figures.
 */
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { type DelayingProxy, startProxy } from "./bench/delay.ts";
import { fixed, markdownTable, median, spread } from "./bench/figures.ts";
import { machineLine, residentMegabytes } from "./bench/machine.ts";
import { benchReads } from "./bench/reads.ts";
import { benchRebuild } from "./bench/rebuild.ts";
import { benchReconcile } from "./bench/reconcile.ts";
import { benchScale } from "./bench/scale.ts";
import { type Contestant, type Measurement, type Route, roundTrip, Session } from "./bench/session.ts";
import { benchSmall } from "./bench/small.ts";
import { benchStart } from "./bench/start.ts";
import { reset } from "./bench/statements.ts";
import { type RunningTally, runJob, startTally } from "./bench/tally.ts";
import { benchTransfer } from "./bench/transfer.ts";

function number(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!(value >= least)) throw new InvalidArgumentError(`must be a number of at least ${least}`);
    return value;
  };
}

function numbers(text: string): number[] {
  return text.split(",").map((part) => Math.trunc(number(1)(part)));
}

/** Benchmarks with surroundings of their own: `bun run bench <name>`. */
const OTHERS: Readonly<Record<string, (executable: string, args: readonly string[]) => Promise<void>>> = {
  reads: benchReads,
  reconcile: benchReconcile,
  rebuild: benchRebuild,
  scale: benchScale,
  small: benchSmall,
  transfer: benchTransfer,
  start: benchStart,
};
const other = OTHERS[process.argv[2] ?? ""];
if (other !== undefined) {
  const args = process.argv.slice(3);
  // npm takes the "--" away that stands before a script's options, bun leaves it.
  if (args[0] === "--") args.shift();
  await other(join(import.meta.dir, "../dist/tally"), args);
  process.exit(0);
}

const PARTS = ["floor", "items", "delay", "memory"];

function parts(text: string): string[] {
  const named = text.split(",");
  const unknown = named.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) throw new InvalidArgumentError(`${unknown} is none of ${PARTS.join(", ")}`);
  return named;
}

const program = new Command("bench")
  .description("measures ingest on the built executable (bun run build makes it)")
  .option("--executable <path>", "the executable to measure", join(import.meta.dir, "../dist/tally"))
  .option("--parts <names>", `what to measure, of ${PARTS.join(",")}`, parts, PARTS)
  .option("--connections <list>", "numbers of connections", numbers, [1, 4, 8])
  .option("--repeats <n>", "runs of each contestant; they take turns", number(1), 3)
  .option(
    "--warm-up <s>",
    "how long the API is used before anything is measured, as a service's would be",
    number(0),
    20,
  )
  .option("--budget <s>", "about how long all of it may take, but for the run for memory", number(1), 220)
  .option("--delay <ms>", "what the proxy adds to each round trip to the database", number(0), 0.5)
  .option("--minutes <m>", "how long the run is that memory is watched over", number(0.01), 0.25)
  .option("--dir <path>", "where the database goes; its disk is what is measured", tmpdir())
  .parse();

const options = program.opts<{
  executable: string;
  parts: string[];
  connections: number[];
  repeats: number;
  warmUp: number;
  budget: number;
  delay: number;
  minutes: number;
  dir: string;
}>();

/** Batches that there are known resources for. */
const MOST_BATCHES = 112;
/** Each connection's first batches don't count: it is new, and so is the program behind it, the floor's too. */
const WARMUP_BATCHES = 6;
const MEMORY_CONNECTIONS = 4;
const begun = performance.now();

function say(text: string): void {
  console.error(`${((performance.now() - begun) / 1000).toFixed(0).padStart(4)} s  ${text}`);
}

/** Every contestant `repeats` times, taking turns, the order turned round each time. */
async function takeTurns(
  session: Session,
  route: Route,
  contestants: readonly { contestant: Contestant; batches: number; warmup: number }[],
  connections: number,
): Promise<Measurement[]> {
  const all: Measurement[] = [];
  for (let repeat = 0; repeat < options.repeats; repeat++) {
    for (const { contestant, batches, warmup } of repeat % 2 === 0 ? contestants : contestants.toReversed()) {
      const measured = await session.measure(route, { contestant, connections, batches, warmup });
      all.push(measured);
      runsLeft--;
      say(`${connections} connections, ${contestant}: ${Math.round(measured.rate)} events/s`);
    }
  }
  sameWork(all);
  return all;
}

/** Contestants that wrote the same batches must have left the same tables. */
function sameWork(all: readonly Measurement[]): void {
  for (const [batches, group] of Map.groupBy(all, (measured) => measured.batches)) {
    const found = new Set(group.map((measured) => measured.digest));
    if (found.size > 1) throw new Error(`not the same work in ${batches} batches: ${[...found].join(" | ")}`);
  }
}

function ratesOf(all: readonly Measurement[], contestant: Contestant, connections: number): number[] {
  return all
    .filter((measured) => measured.contestant === contestant && measured.connections === connections)
    .map(({ rate }) => rate);
}

function print(title: string, all: readonly Measurement[], contestants: readonly Contestant[]): void {
  const others = contestants.filter((contestant) => contestant !== "api");
  console.log(`\n## ${title}\n`);
  console.log("Events a second: median (least–most).\n");
  console.log(
    markdownTable(
      ["connections", ...contestants, ...others.map((other) => `api ÷ ${other}`)],
      options.connections.map((connections) => {
        const rates = (contestant: Contestant) => ratesOf(all, contestant, connections);
        return [
          String(connections),
          ...contestants.map((contestant) => spread(rates(contestant))),
          ...others.map((other) => (median(rates("api")) / median(rates(other))).toFixed(2)),
        ];
      }),
    ),
  );
  console.log("\nMilliseconds a batch: median latency, and CPU time by process.\n");
  console.log(
    markdownTable(
      ["contestant", "connections", "latency", "CPU tally", "CPU postgres", "CPU client"],
      contestants.flatMap((contestant) =>
        options.connections.map((connections) => {
          const runs = all.filter((m) => m.contestant === contestant && m.connections === connections);
          const show = (pick: (m: Measurement) => number) => median(runs.map(pick)).toFixed(1);
          const tally = contestant === "api" ? show((m) => m.cpu.tally) : "";
          return [
            contestant,
            String(connections),
            show((m) => m.latency),
            tally,
            show((m) => m.cpu.postgres),
            show((m) => m.cpu.client),
          ];
        }),
      ),
    ),
  );
}

/** The shortest run that still says something, in seconds. */
const SHORTEST_RUN = 0.75;
/** Runs of each contestant that are still to come; the budget is shared out among them. */
let runsLeft =
  options.repeats *
  options.connections.length *
  (options.parts.filter((part) => part === "floor" || part === "items").length +
    (options.parts.includes("floor") || options.parts.includes("items") ? 1 : 0) +
    (options.parts.includes("delay") ? 2 : 0));

/** How many batches fill one run's share of the budget, by a first, discarded run that also warms the program up. */
async function batchesFor(session: Session, route: Route, contestant: Contestant): Promise<number> {
  const batches = contestant === "items" ? 1 : 64;
  const connections = contestant === "items" ? 1 : 4;
  const from = performance.now();
  const { rate } = await session.measure(route, { contestant, connections, batches, warmup: 0 });
  const now = performance.now();
  const around = (now - from) / 1000 - (batches * 1000) / rate;
  const share = (options.budget - (now - begun) / 1000) / runsLeft - around;
  return Math.max(1, Math.round((rate * Math.max(SHORTEST_RUN, share)) / 1000));
}

/** The first seconds of a process aren't its others: its code is being compiled, its connections are being made. */
async function warmUp(session: Session, { tally }: Route): Promise<void> {
  if (options.warmUp === 0) return;
  await reset(session.db);
  const { events, seconds } = await runJob({
    target: { kind: "api", url: tally.url, token: tally.token },
    connections: MEMORY_CONNECTIONS,
    batches: 0,
    warmup: 0,
    seconds: options.warmUp,
  });
  say(`warmed up: ${Math.round(events / seconds)} events/s`);
}

async function loopback(session: Session, route: Route): Promise<void> {
  const most = Math.max(...options.connections);
  const contestants = (["floor", "items"] as const).filter((name) => options.parts.includes(name));
  const all: Measurement[] = [];
  const room = MOST_BATCHES - most * WARMUP_BATCHES;
  if (room < 2 * most) throw new Error(`there are known resources for ${MOST_BATCHES} batches: too few`);
  await warmUp(session, route);
  const forApi = Math.min(room, await batchesFor(session, route, "api"));
  const perItem = contestants.includes("items") ? await batchesFor(session, route, "items") : 0;
  for (const connections of options.connections) {
    const turns = (["api", ...contestants] as const).map((contestant) => ({
      contestant,
      batches: contestant === "items" ? Math.max(perItem, connections) : Math.max(forApi, 2 * connections),
      warmup: contestant === "items" ? 0 : connections * WARMUP_BATCHES,
    }));
    all.push(...(await takeTurns(session, route, turns, connections)));
  }
  print("On loopback", all, ["api", ...contestants]);
}

/** Sets the proxy so that a round trip takes `options.delay` longer than a direct one; gives what it takes. */
async function tuneDelay(session: Session, proxy: DelayingProxy, url: string): Promise<string> {
  const direct = await roundTrip(session.databaseUrl, 500);
  let through = 0;
  proxy.delayMs = options.delay;
  for (let step = 0; step < 6; step++) {
    through = await roundTrip(url, 1000);
    if (Math.abs(through - direct - options.delay) < 0.01) break;
    proxy.delayMs = Math.max(0, proxy.delayMs + options.delay - (through - direct));
  }
  through = await roundTrip(url, 1000);
  return `SELECT 1 takes ${direct.toFixed(3)} ms directly and ${through.toFixed(3)} ms through the proxy: ${(through - direct).toFixed(3)} ms added`;
}

async function delayed(session: Session, place: string): Promise<void> {
  const proxy = await startProxy(join(session.socketDirectory, ".s.PGSQL.5432"));
  const databaseUrl = `postgres://tally@127.0.0.1:${proxy.port}/tally?sslmode=disable`;
  let tally: RunningTally | null = null;
  try {
    tally = await startTally(options.executable, place, databaseUrl);
    const before = await tuneDelay(session, proxy, databaseUrl);
    say(before);
    const route = { tally, databaseUrl };
    const all: Measurement[] = [];
    await warmUp(session, route);
    const forApi = Math.min(
      MOST_BATCHES - Math.max(...options.connections) * WARMUP_BATCHES,
      await batchesFor(session, route, "api"),
    );
    for (const connections of options.connections) {
      const turns = [
        {
          contestant: "api",
          batches: Math.max(forApi, 2 * connections),
          warmup: connections * WARMUP_BATCHES,
        },
        // One batch each takes seconds.
        { contestant: "items", batches: connections, warmup: 0 },
      ] as const;
      all.push(...(await takeTurns(session, route, turns, connections)));
    }
    print(`With ${options.delay} ms added to each round trip to the database`, all, ["api", "items"]);
    console.log(`\n${before}.`);
  } finally {
    await tally?.stop();
    await proxy.stop();
  }
}

async function memory(session: Session, { tally }: Route): Promise<void> {
  await reset(session.db);
  const samples: number[] = [];
  const sampler = setInterval(() => samples.push(residentMegabytes(tally.pid).now), 250);
  try {
    const outcome = await runJob({
      target: { kind: "api", url: tally.url, token: tally.token },
      connections: MEMORY_CONNECTIONS,
      batches: 0,
      warmup: 0,
      seconds: options.minutes * 60,
    });
    console.log(`\n## Resident memory of tally serve\n`);
    console.log(
      `${options.minutes} minutes, ${MEMORY_CONNECTIONS} connections, ${outcome.events.toLocaleString("en")} events ` +
        `(${Math.round(outcome.events / outcome.seconds).toLocaleString("en")} a second, bodies made on the way): ` +
        `median (least–most) of ${samples.length} samples ${spread(samples, fixed(0))} MB; the most since its start, ` +
        `all measurements above included: ${residentMegabytes(tally.pid).most.toFixed(0)} MB.`,
    );
  } finally {
    clearInterval(sampler);
  }
}

async function main(): Promise<void> {
  if (!existsSync(options.executable))
    throw new Error(`${options.executable} is not there: bun run build makes it`);
  const place = mkdtempSync(join(options.dir, "tally-bench-"));
  chmodSync(place, 0o755);
  let tally: RunningTally | null = null;
  let session: Session | null = null;
  try {
    tally = await startTally(options.executable, place);
    session = new Session(tally);
    const route = { tally, databaseUrl: session.databaseUrl };
    console.log(`${machineLine()}; Bun ${Bun.version}, PostgreSQL ${await session.serverVersion()}`);
    console.log(`${await session.durability()}; ${options.repeats} repeats, batches of 1000`);
    await session.prepare(MOST_BATCHES);
    say(`${MOST_BATCHES * 500} known resources`);
    if (options.parts.includes("floor") || options.parts.includes("items")) await loopback(session, route);
    if (options.parts.includes("delay")) await delayed(session, place);
    if (options.parts.includes("memory")) await memory(session, route);
    say("done");
  } finally {
    await session?.close();
    await tally?.stop();
    rmSync(place, { recursive: true, force: true });
  }
}

await main();
process.exit(0);
