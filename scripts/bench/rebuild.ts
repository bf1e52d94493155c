/**
 * What a rebuild costs: `tally rebuild` of the built executable beside its running server, over a record of many
 * resources, once where every row is sound and once where every row is missing. `bun run bench rebuild -- --help`.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import type { Database } from "../../src/database/connection.ts";
import { fixed, markdownTable, spread } from "./figures.ts";
import { addSlices, RESOURCES_A_SLICE, settle } from "./history.ts";
import { machineLine, residentMegabytes } from "./machine.ts";
import { Session } from "./session.ts";
import { startTally } from "./tally.ts";

/** Runs `tally rebuild`; gives its seconds and samples of its resident memory. */
async function rebuildOnce(
  executable: string,
  dataDir: string,
): Promise<{ seconds: number; memory: number[] }> {
  const begun = performance.now();
  const env = { PATH: process.env.PATH ?? "", TALLY_DATA_DIR: dataDir };
  const child = Bun.spawn([executable, "rebuild"], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const memory: number[] = [];
  const sampler = setInterval(() => {
    const { now } = residentMegabytes(child.pid);
    if (now > 0) memory.push(now);
  }, 250);
  const code = await child.exited.finally(() => clearInterval(sampler));
  if (code !== 0) throw new Error(`tally rebuild failed: ${await child.stderr.text()}`);
  return { seconds: (performance.now() - begun) / 1000, memory };
}

/** What all rows say: equal before and after a rebuild of a sound projection. */
async function digest(db: Database): Promise<string> {
  return await db.begin(async (tx) => {
    await tx`SET LOCAL statement_timeout = 0`;
    const [row]: { text: string }[] = await tx`
      SELECT count(*) || ' rows ' || sum(hashtextextended(to_jsonb(c)::text, 0)) AS text FROM current_resources c`;
    if (row === undefined) throw new Error("the digest gave no row");
    return row.text;
  });
}

/** Runs the benchmark as the command line says. */
export async function benchRebuild(executable: string, args: readonly string[]): Promise<void> {
  const options = new Command("bench rebuild")
    .description("measures tally rebuild on the built executable; needs psql")
    .option("--executable <path>", "the executable to measure", executable)
    .option("--resources <n>", "how many resources the record has", Number, 1_000_000)
    .option("--events <n>", "how many events each of them has", Number, 5)
    .option("--seed <n>", "what the record is drawn from", Number, 7)
    .option("--ask", "wait for Enter before it measures, so that the machine can be made quiet")
    .option("--dir <path>", "where the database goes", tmpdir())
    .parse(args, { from: "user" })
    .opts<{ executable: string; resources: number; events: number; seed: number; ask?: true; dir: string }>();
  const place = mkdtempSync(join(options.dir, "tally-bench-"));
  chmodSync(place, 0o755);
  const tally = await startTally(options.executable, place);
  const session = new Session(tally);
  try {
    const slices = Math.ceil(options.resources / RESOURCES_A_SLICE);
    const shape = { seed: options.seed, eventsEach: options.events };
    await addSlices(session.db, shape, 0, slices, (done) => {
      if (done % 10 === 0) console.error(`${done} of ${slices} slices`);
    });
    await settle(session.databaseUrl);
    const events = slices * RESOURCES_A_SLICE * options.events;
    const before = await digest(session.db);
    const rows: string[][] = [];
    for (const missing of [false, true]) {
      if (missing) {
        await session.db`TRUNCATE current_resources`;
        await settle(session.databaseUrl);
      }
      if (options.ask === true) prompt("Enter measures");
      const { seconds, memory } = await rebuildOnce(options.executable, tally.dataDir);
      console.log(`measured ${missing ? "missing" : "sound"} rows`);
      if ((await digest(session.db)) !== before) throw new Error("the rebuild made other rows");
      const half = memory.slice(memory.length >> 1);
      rows.push([
        missing ? "every row is missing" : "every row is sound",
        seconds.toFixed(1),
        Math.round(events / seconds).toLocaleString("en"),
        spread(memory.slice(0, memory.length >> 1), fixed(0)),
        spread(half, fixed(0)),
      ]);
    }
    console.log(`${machineLine()}; Bun ${Bun.version}, PostgreSQL ${await session.serverVersion()}`);
    console.log(
      `${slices * RESOURCES_A_SLICE} resources, ${options.events} events each, seed ${options.seed}\n`,
    );
    const head = ["where", "seconds", "events folded/s", "resident MB, first half", "second half"];
    console.log(markdownTable(head, rows));
  } finally {
    await session.close();
    await tally.stop();
    rmSync(place, { recursive: true, force: true });
  }
}
