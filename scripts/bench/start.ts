/**
 * What an operator meets first: the executable's size, how long its first start takes until it is ready, and how long
 * a later one, and what it uses while nobody asks anything. `bun run bench start -- --help`.
 */
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { fixed, markdownTable, spread } from "./figures.ts";
import { familyMegabytes, machineLine, residentMegabytes } from "./machine.ts";

/** Memory is looked at when the start is this long over. */
const IDLE_MS = 10_000;
const START_MS = 120_000;

/** One start, to its first answer that it is ready. */
async function start(
  executable: string,
  dataDir: string,
  log: string,
): Promise<{ seconds: number; child: Bun.Subprocess }> {
  const out = openSync(log, "w");
  const env = {
    PATH: process.env.PATH ?? "",
    TALLY_DATA_DIR: dataDir,
    TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
    TALLY_REPORTING_HTTP_PORT: "0",
  };
  const begun = performance.now();
  const child = Bun.spawn([executable, "serve"], { env, stdin: "ignore", stdout: out, stderr: out });
  while (performance.now() - begun < START_MS && child.exitCode === null) {
    const url = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(readFileSync(log, "utf8"))?.[0];
    const answer = url === undefined ? null : await fetch(`${url}/readyz`).catch(() => null);
    if (answer?.status === 200) return { seconds: (performance.now() - begun) / 1000, child };
    await Bun.sleep(5);
  }
  child.kill("SIGKILL");
  throw new Error(`tally serve does not come up:\n${readFileSync(log, "utf8").slice(-2000)}`);
}

/** Runs the benchmark as the command line says. */
export async function benchStart(executable: string, args: readonly string[]): Promise<void> {
  const options = new Command("bench start")
    .description("measures starts of the built executable (bun run build makes it)")
    .option("--executable <path>", "the executable to measure", executable)
    .option("--repeats <n>", "first starts, and later ones", Number, 3)
    .option("--dir <path>", "where the databases go", tmpdir())
    .parse(args, { from: "user" })
    .opts<{ executable: string; repeats: number; dir: string }>();
  const first: number[] = [];
  const later: number[] = [];
  const idle: number[] = [];
  const family: number[] = [];
  for (let repeat = 0; repeat < options.repeats; repeat++) {
    const place = mkdtempSync(join(options.dir, "tally-bench-"));
    // As root, Tally's database runs as another user, who must get in.
    chmodSync(place, 0o755);
    try {
      for (const times of [first, later]) {
        const { seconds, child } = await start(options.executable, join(place, "data"), join(place, "log"));
        times.push(seconds);
        if (times === later) {
          await Bun.sleep(IDLE_MS);
          idle.push(residentMegabytes(child.pid).now);
          family.push(familyMegabytes(child.pid));
        }
        child.kill("SIGTERM");
        await child.exited;
      }
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  }
  console.log(`${machineLine()}; ${options.repeats} of each: median (least–most)\n`);
  console.log(
    markdownTable(
      ["what", "measured", "goal"],
      [
        ["executable, MB", (statSync(options.executable).size / 1e6).toFixed(1), "under 150"],
        ["first start until ready, s", spread(first, fixed(2)), "under 5"],
        ["later start until ready, s", spread(later, fixed(2)), "under 1"],
        [`resident memory, idle for ${IDLE_MS / 1000} s, MB`, spread(idle, fixed(0)), "under 150"],
        ["the same with its PostgreSQL, what they share counted once, MB", spread(family, fixed(0)), ""],
      ],
    ),
  );
}
