/**
 * What reads cost: each route of the built executable against the very statements that it runs, sent by psql to the
 * same server in the same run. `bun run bench reads -- --help`. docs/reads.md has figures.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { issueApiToken } from "../../src/access/credentials.ts";
import type { Database } from "../../src/database/connection.ts";
import { snapshot } from "../../src/database/snapshot.ts";
import { fixed, markdownTable, median, quantile } from "./figures.ts";
import { loadFleet } from "./fleet.ts";
import { machineLine } from "./machine.ts";
import { clientVersions, PlainClient, timeByCurl } from "./plain-client.ts";
import { listedReads, pagesAtHundred, type Read, unpagedReads } from "./read-list.ts";
import { recording } from "./recorded.ts";
import { Session } from "./session.ts";
import { startTally } from "./tally.ts";

/** Runs before the clock counts, so that connections stand and caches are as warm for one side as for the other. */
const WARMUP = 40;
/** Samples of one side before it is the other's turn: the machine's speed may change within a second. */
const TURN = 5;
/** Before a part is measured, all of it is read for so long: a service is used for months, psql is compiled code. */
const WARMUP_MS = 20_000;

/** What there is to measure. */
const PARTS: Readonly<Record<string, { title: string; reads(db: Database): Promise<Read[]> }>> = {
  pages: { title: "Pages of 1000, histories", reads: listedReads },
  counts: { title: "Counts", reads: unpagedReads },
  filters: { title: "Pages of 100, by every filter", reads: pagesAtHundred },
};

function parts(text: string): string[] {
  const named = text.split(",");
  const unknown = named.find((part) => !(part in PARTS));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`${unknown} is none of ${Object.keys(PARTS).join(", ")}`);
  return named;
}

/** Milliseconds of each sample, by client. */
interface Timed {
  readonly read: Read;
  readonly api: readonly number[];
  readonly psql: readonly number[];
}

/** Reads one after the other, again and again. */
async function warmUp(url: string, token: string, reads: readonly Read[]): Promise<void> {
  for (const until = performance.now() + WARMUP_MS; performance.now() < until; )
    for (const { path } of reads) await timeByCurl(`${url}${path}`, token, TURN);
}

async function measure(
  session: Session,
  plain: PlainClient,
  server: { readonly url: string; readonly token: string },
  read: Read,
  most: number,
): Promise<Timed> {
  const statements: string[] = [];
  await snapshot(session.db, (tx) => read.run(recording(tx, statements)));
  const url = `${server.url}${read.path}`;
  const [first = 0] = await timeByCurl(url, server.token, 1);
  // Slow reads get fewer samples: about four seconds a side.
  const times = Math.max(5, Math.min(most, Math.floor(4_000 / first)));
  const warm = Math.min(WARMUP, times);
  await timeByCurl(url, server.token, warm);
  await plain.time(statements, warm);
  const api: number[] = [];
  const psql: number[] = [];
  while (api.length < times) {
    const turn = Math.min(TURN, times - api.length);
    api.push(...(await timeByCurl(url, server.token, turn)));
    psql.push(...(await plain.time(statements, turn)));
  }
  return { read, api, psql };
}

function rows(all: readonly Timed[]): string[][] {
  const ms = fixed(2);
  return all.map(({ read, api, psql }) => [
    read.name,
    ms(median(api)),
    ms(quantile(api, 0.99)),
    ms(median(psql)),
    ms(quantile(psql, 0.99)),
    (median(api) / median(psql)).toFixed(2),
    ms(Math.min(...api)),
    ms(Math.min(...psql)),
    (Math.min(...api) / Math.min(...psql)).toFixed(2),
    String(api.length),
  ]);
}

/** Runs the benchmark as the command line says. */
export async function benchReads(executable: string, args: readonly string[]): Promise<void> {
  const options = new Command("bench reads")
    .description("measures reads on the built executable (bun run build makes it); needs curl and psql")
    .option("--executable <path>", "the executable to measure", executable)
    .option("--seed <n>", "what the fleet is drawn from", Number, 7)
    .option("--samples <n>", "the most samples of one read", Number, 200)
    .option(
      "--parts <names>",
      `what to measure, of ${Object.keys(PARTS).join(",")}`,
      parts,
      Object.keys(PARTS),
    )
    .option("--dir <path>", "where the database goes", tmpdir())
    .parse(args, { from: "user" })
    .opts<{ executable: string; seed: number; samples: number; parts: string[]; dir: string }>();
  const versions = await clientVersions();
  const place = mkdtempSync(join(options.dir, "tally-bench-"));
  chmodSync(place, 0o755);
  const tally = await startTally(options.executable, place);
  const session = new Session(tally);
  const plain = new PlainClient(session);
  try {
    console.log(
      `${machineLine()}; Bun ${Bun.version}, PostgreSQL ${await session.serverVersion()}, ${versions}`,
    );
    const seconds = await loadFleet(session.db, options.seed);
    console.log(
      `1,001,000 events and 100,001 resources, seed ${options.seed}, loaded in ${seconds.toFixed(0)} s`,
    );
    const { token } = await issueApiToken(
      session.db,
      { role: "admin", projectIds: [], description: null },
      "bench",
    );
    const server = { url: tally.url, token };
    const head = [
      "read",
      "median",
      "p99",
      "psql median",
      "p99",
      "ratio",
      "least",
      "psql least",
      "ratio",
      "samples",
    ];
    for (const [name, { title, reads }] of Object.entries(PARTS)) {
      if (!options.parts.includes(name)) continue;
      const all: Timed[] = [];
      const listed = await reads(session.db);
      await warmUp(server.url, server.token, listed);
      for (const read of listed) all.push(await measure(session, plain, server, read, options.samples));
      console.log(`\n## ${title}\n\nMilliseconds.\n\n${markdownTable(head, rows(all))}`);
    }
  } finally {
    await plain.close();
    await session.close();
    await tally.stop();
    rmSync(place, { recursive: true, force: true });
  }
}
