/**
 * What a reconciliation run costs: the built executable against a fake cloud in a process of its own.
 * `bun run bench reconcile -- --help`. docs/performance.md has figures.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Command } from "commander";
import { fixed, markdownTable, median, spread } from "./figures.ts";
import { cpuSeconds, cpuSecondsWithChildren, machineLine, residentMegabytes } from "./machine.ts";
import { Session } from "./session.ts";
import { type RunningTally, startTally } from "./tally.ts";

const CLOUD = "fake-1";
const INTERNAL_TOKEN = "internal-token-of-the-benchmark";
/** The first run books every resource: more than a run in production may take. */
const BUDGET_SECONDS = "900";

const CloudState = Type.Object({ now: Type.String(), living: Type.Integer(), busy_ms: Type.Number() });
const RunResult = Type.Object({
  stats: Type.Object({ created: Type.Integer(), updated: Type.Integer(), deleted: Type.Integer() }),
});

/** The fake cloud's process. */
interface Cloud {
  readonly directory: string;
  state(): Promise<{ now: string; living: number; busyMs: number }>;
  drift(count: number): Promise<void>;
  pass(seconds: number): Promise<void>;
  stop(): Promise<void>;
}

async function startCloud(place: string, resources: number, seed: number): Promise<Cloud> {
  const directory = join(place, "cloud");
  const script = join(import.meta.dir, "../fake-openstack.ts");
  const child = Bun.spawn(
    [
      process.execPath,
      script,
      ...["--resources", String(resources), "--seed", String(seed), "--changes", "0", "--speed", "0"],
      ...["--cloud", CLOUD, "--write", directory],
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  );
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let said = "";
  while (!said.includes("TALLY_REPORTING_CLOUDS_CONFIG")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the fake cloud does not come up: ${said}`);
    said += decoder.decode(value, { stream: true });
  }
  const control = /control: (\S+)/.exec(said)?.[1] ?? "";
  const ask = async (path: string, body?: object) => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    return Value.Parse(CloudState, await (await fetch(`${control}${path}`, init)).json());
  };
  return {
    directory,
    async state() {
      const { now, living, busy_ms } = await ask("");
      return { now, living, busyMs: busy_ms };
    },
    drift: async (count) => {
      await ask("drift", { count });
    },
    pass: async (seconds) => {
      await ask("advance", { seconds });
    },
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}

/** One run, measured. */
interface Measured {
  readonly wall: number;
  /** Seconds that the cloud spent computing answers. */
  readonly cloud: number;
  readonly tallyCpu: number;
  readonly postgresCpu: number;
  readonly corrections: string;
}

async function run(tally: RunningTally, session: Session, cloud: Cloud): Promise<Measured> {
  const before = await cloud.state();
  const tallyBefore = cpuSeconds(tally.pid);
  const postgresBefore = cpuSecondsWithChildren(session.postmaster);
  const begun = performance.now();
  const answer = await fetch(`${tally.url}/internal/sync/${CLOUD}`, {
    method: "POST",
    headers: { authorization: `Bearer ${INTERNAL_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ at: before.now }),
  });
  const text = await answer.text();
  const wall = (performance.now() - begun) / 1_000;
  if (answer.status !== 200) throw new Error(`the run answered ${answer.status}: ${text}`);
  const { created, updated, deleted } = Value.Parse(RunResult, JSON.parse(text)).stats;
  const after = await cloud.state();
  return {
    wall,
    cloud: (after.busyMs - before.busyMs) / 1_000,
    tallyCpu: cpuSeconds(tally.pid) - tallyBefore,
    postgresCpu: cpuSecondsWithChildren(session.postmaster) - postgresBefore,
    corrections: `${created} created, ${updated} updated, ${deleted} deleted`,
  };
}

function row(name: string, runs: readonly Measured[]): string[] {
  const show = (pick: (run: Measured) => number) => spread(runs.map(pick), fixed(2));
  const typical = fixed(2);
  return [
    name,
    show(({ wall, cloud }) => wall - cloud),
    show(({ wall }) => wall),
    typical(median(runs.map(({ cloud }) => cloud))),
    typical(median(runs.map(({ tallyCpu }) => tallyCpu))),
    typical(median(runs.map(({ postgresCpu }) => postgresCpu))),
    runs.at(-1)?.corrections ?? "",
  ];
}

/** Runs the benchmark as the command line says. */
export async function benchReconcile(executable: string, args: readonly string[]): Promise<void> {
  const options = new Command("bench reconcile")
    .description("measures reconciliation runs of the built executable (bun run build makes it)")
    .option("--executable <path>", "the executable to measure", executable)
    .option("--seed <n>", "what the cloud is made from", Number, 7)
    .option("--resources <n>", "how many resources there are", Number, 100_000)
    .option("--drift <percent>", "how many of them differ at each run", Number, 1)
    .option("--repeats <n>", "runs of each kind", Number, 3)
    .option("--dir <path>", "where the database goes", tmpdir())
    .parse(args, { from: "user" })
    .opts<{
      executable: string;
      seed: number;
      resources: number;
      drift: number;
      repeats: number;
      dir: string;
    }>();
  const place = mkdtempSync(join(options.dir, "tally-bench-"));
  chmodSync(place, 0o755);
  const stops: (() => Promise<void>)[] = [];
  try {
    const cloud = await startCloud(place, options.resources, options.seed);
    stops.push(cloud.stop);
    const env = {
      OS_CLIENT_CONFIG_FILE: join(cloud.directory, "clouds.yaml"),
      TALLY_REPORTING_CLOUDS_CONFIG: join(cloud.directory, "tally-clouds.yaml"),
      TALLY_REPORTING_INTERNAL_TOKEN: INTERNAL_TOKEN,
      TALLY_REPORTING_SYNC_ALLOW_AT: "true",
      TALLY_REPORTING_SYNC_INTERVAL_S: "0",
      TALLY_REPORTING_SYNC_BUDGET_S: BUDGET_SECONDS,
    };
    const first = await startTally(options.executable, place, null, env);
    stops.push(first.stop);
    const session = new Session(first);
    stops.push(() => session.close());
    console.log(`${machineLine()}; Bun ${Bun.version}, PostgreSQL ${await session.serverVersion()}`);
    console.log(`${options.resources} resources, ${options.drift} % drift, seed ${options.seed}`);

    const filled = [await run(first, session, cloud)];
    await session.db`VACUUM (ANALYZE) events, current_resources`;
    await session.db`CHECKPOINT`;

    // A process that has done nothing yet, on the same database: what it needs for its first run is above idle.
    const fresh = await startTally(options.executable, place, session.databaseUrl, env);
    stops.push(fresh.stop);
    const idle = residentMegabytes(fresh.pid).now;
    const drifted: Measured[] = [];
    const still: Measured[] = [];
    let afterOne = 0;
    for (let n = 0; n < options.repeats; n++) {
      await cloud.drift(Math.round((options.resources * options.drift) / 100));
      drifted.push(await run(fresh, session, cloud));
      if (n === 0) afterOne = residentMegabytes(fresh.pid).most;
      await cloud.pass(600);
      still.push(await run(fresh, session, cloud));
      await cloud.pass(600);
    }
    const { most } = residentMegabytes(fresh.pid);
    const head = ["run", "wall − cloud", "wall", "cloud", "CPU tally", "CPU postgres", "corrections"];
    const rows = [
      row("the first, which books everything", filled),
      row(`${options.drift} % differ`, drifted),
      row("nothing differs", still),
    ];
    console.log(`\nSeconds: median (least–most).\n\n${markdownTable(head, rows)}`);
    const above = (megabytes: number) =>
      `${megabytes.toFixed(0)} MB (${(megabytes - idle).toFixed(0)} above idle)`;
    console.log(
      `\nResident memory of a process that made none but the later runs: ${idle.toFixed(0)} MB idle, at most ` +
        `${above(afterOne)} up to the end of its first run, ${above(most)} up to the end of ${2 * options.repeats}.`,
    );
  } finally {
    for (const stop of stops.reverse()) await stop();
    rmSync(place, { recursive: true, force: true });
  }
}
