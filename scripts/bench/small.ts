/**
 * What small requests cost: one event a request over many connections, as a naive collector sends them, against
 * pgbench that writes the same rows, an event, its row and a line of the audit log in one transaction, to the same
 * server in the same run. `bun run bench small -- --help`. docs/performance.md has figures.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { openEmbedded } from "../../src/database/embedded/embedded.ts";
import { migrateUp } from "../../src/database/migrations.ts";
import { packPostgres } from "../pack-postgres.ts";
import { linesOf, parseLine } from "./contract.ts";
import { fixed, markdownTable, median, quantile, spread } from "./figures.ts";
import { cpuSeconds, cpuSecondsWithChildren, machineLine } from "./machine.ts";
import { addKnown, pgbenchVersion, runPgbench, writeScripts } from "./pgbench.ts";
import { Session } from "./session.ts";
import { reset } from "./statements.ts";
import { type RunningTally, startTally } from "./tally.ts";

const Outcome = Type.Object({
  seconds: Type.Number(),
  latencies: Type.Array(Type.Number()),
  cpuSeconds: Type.Number(),
});

/** One run of the API. CPU times are microseconds a request. */
interface Run {
  readonly rate: number;
  readonly median: number;
  readonly p99: number;
  readonly cpu: { readonly tally: number; readonly postgres: number; readonly client: number };
}

/** Batches of the workload that are made into requests: a run ends when they are sent, if not before. */
const BATCHES = 24;

async function measureApi(
  tally: RunningTally,
  session: Session,
  connections: number,
  seconds: number,
): Promise<Run> {
  const url = new URL(tally.url);
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "small-load.ts")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const job = { host: url.hostname, port: Number(url.port), token: tally.token, connections, from: 0 };
  child.stdin.write(`${JSON.stringify({ ...job, batches: BATCHES, seconds })}\n`);
  await child.stdin.flush();
  const lines = linesOf(child.stdout);
  if ((await lines.next()).value !== "ready") throw new Error("the load generator failed");
  const cpuNow = () => [cpuSeconds(tally.pid), cpuSecondsWithChildren(session.postmaster)] as const;
  const before = cpuNow();
  child.stdin.write("go\n");
  await child.stdin.flush();
  const line = (await lines.next()).value;
  const after = cpuNow();
  if (line === undefined) throw new Error("the load generator failed");
  const outcome = parseLine(Outcome, line);
  const requests = outcome.latencies.length;
  const each = (taken: number) => (taken * 1e6) / requests;
  return {
    rate: requests / outcome.seconds,
    median: median(outcome.latencies),
    p99: quantile(outcome.latencies, 0.99),
    cpu: {
      tally: each(after[0] - before[0]),
      postgres: each(after[1] - before[1]),
      client: each(outcome.cpuSeconds),
    },
  };
}

/** Runs the benchmark as the command line says. */
export async function benchSmall(executable: string, args: readonly string[]): Promise<void> {
  const list = (text: string) => text.split(",").map(Number);
  const options = new Command("bench small")
    .description(
      "measures requests of one event on the built executable against pgbench (postgresql-contrib)",
    )
    .option("--executable <path>", "the executable to measure", executable)
    .option("--connections <list>", "numbers of connections", list, [1, 8, 32])
    .option("--repeats <n>", "runs of each contestant; they take turns", Number, 3)
    .option("--seconds <s>", "how long a run is", Number, 4)
    .option("--dir <path>", "where the database goes; its disk is what is measured", tmpdir())
    .parse(args, { from: "user" })
    .opts<{ executable: string; connections: number[]; repeats: number; seconds: number; dir: string }>();
  const version = await pgbenchVersion();
  if (version === null) throw new Error("pgbench isn't there: the package postgresql-contrib has it");
  const place = mkdtempSync(join(options.dir, "tally-bench-"));
  chmodSync(place, 0o755);
  const tally = await startTally(options.executable, place);
  const session = new Session(tally);
  // Tally's own server has no room for so many clients beside it: pgbench has one of the same making.
  await packPostgres();
  const dataDir = join(place, "plain");
  const maxConnections = 20 + Math.max(...options.connections);
  const plainServer = await openEmbedded({ dataDir, maxConnections, role: "command" });
  const plainSession = new Session({ dataDir });
  await migrateUp(plainSession.db);
  try {
    console.log(
      `${machineLine()}; Bun ${Bun.version}, PostgreSQL ${await session.serverVersion()}, ${version}`,
    );
    console.log(
      `${await session.durability()}; one event a request, ${options.repeats} runs of ${options.seconds} s`,
    );
    const scripts = writeScripts(place);
    for (const each of [session, plainSession]) await each.prepare(BATCHES);
    await reset(session.db);
    await measureApi(tally, session, 8, 2);
    const rows: string[][] = [];
    for (const connections of options.connections) {
      const api: Run[] = [];
      const plain: { rate: number; latency: number }[] = [];
      for (let repeat = 0; repeat < options.repeats; repeat++) {
        await reset(session.db);
        api.push(await measureApi(tally, session, connections, options.seconds));
        await reset(plainSession.db);
        await addKnown(plainSession.db);
        plain.push(await runPgbench(plainSession, scripts, connections, options.seconds));
      }
      const rates = api.map(({ rate }) => rate);
      const rate = median(plain.map((run) => run.rate));
      const of = (pick: (run: Run) => number, decimals: number) => fixed(decimals)(median(api.map(pick)));
      rows.push([
        String(connections),
        spread(rates),
        spread(plain.map((run) => run.rate)),
        (median(rates) / rate).toFixed(2),
        of((run) => run.median, 2),
        of((run) => run.p99, 2),
        median(plain.map((run) => run.latency)).toFixed(2),
        of((run) => run.cpu.tally, 0),
        of((run) => run.cpu.postgres, 0),
        of((run) => run.cpu.client, 0),
      ]);
      console.error(`${connections} connections: ${rows.at(-1)?.slice(1, 4).join(" | ")}`);
    }
    const head = ["connections", "requests/s", "pgbench", "ratio", "median ms", "p99 ms", "pgbench mean ms"];
    const cpu = ["CPU µs tally", "postgres", "client"];
    console.log(`\n## Requests of one event\n\n${markdownTable([...head, ...cpu], rows)}`);
  } finally {
    for (const each of [session, plainSession]) await each.close();
    await plainServer.stop();
    await tally.stop();
    rmSync(place, { recursive: true, force: true });
  }
}
