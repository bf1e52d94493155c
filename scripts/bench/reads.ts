/**
 * What reads cost: each route of the built executable against the very statements that it runs, sent by psql to the
 * same server in the same run. `bun run bench reads -- --help`. docs/reads.md has figures.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import type { ProjectPair } from "../../src/access/callers.ts";
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
/** Of fewer samples the 99th in a hundred is nearly the slowest one. */
const ENOUGH_FOR_P99 = 100;
/** Of a read that takes no longer, enough for that are taken. */
const SOON_DONE_MS = 250;
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

/** The executable's API, and the tokens that read it. */
class Api {
  readonly url: string;
  readonly #db: Database;
  readonly #tokens = new Map<string, string>();

  constructor(url: string, db: Database) {
    this.url = url;
    this.#db = db;
  }

  async tokenOf({ scope }: Read): Promise<string> {
    const projectIds = await Promise.all((scope ?? []).map((own) => this.#registered(own)));
    const key = projectIds.join();
    const known = this.#tokens.get(key);
    if (known !== undefined) return known;
    const role = scope === null ? "admin" : "project";
    const { token } = await issueApiToken(this.#db, { role, projectIds, description: null }, "bench");
    this.#tokens.set(key, token);
    return token;
  }

  async #registered({ cloud, projectId }: ProjectPair): Promise<string> {
    const [row]: { id: string }[] = await this.#db`
      SELECT id::text AS id FROM projects WHERE cloud = ${cloud} AND external_id = ${projectId}`;
    if (row === undefined) throw new Error(`${cloud} has no ${projectId}`);
    return row.id;
  }
}

/** Reads one after the other, again and again. */
async function warmUp(api: Api, reads: readonly Read[]): Promise<void> {
  for (const until = performance.now() + WARMUP_MS; performance.now() < until; )
    for (const read of reads) await timeByCurl(`${api.url}${read.path}`, await api.tokenOf(read), TURN);
}

async function measure(
  session: Session,
  plain: PlainClient,
  server: Api,
  read: Read,
  most: number,
): Promise<Timed> {
  const statements: string[] = [];
  await snapshot(session.db, (tx) => read.run(recording(tx, statements)));
  const url = `${server.url}${read.path}`;
  const token = await server.tokenOf(read);
  const [first = 0] = await timeByCurl(url, token, 1);
  // Slow reads get fewer samples: about four seconds a side, enough for a p99 all the same where that is soon done.
  const enough = first < SOON_DONE_MS ? ENOUGH_FOR_P99 : 5;
  const times = Math.min(most, Math.max(enough, Math.floor(4_000 / first)));
  const warm = Math.min(WARMUP, times);
  await timeByCurl(url, token, warm);
  await plain.time(statements, warm);
  const api: number[] = [];
  const psql: number[] = [];
  while (api.length < times) {
    const turn = Math.min(TURN, times - api.length);
    api.push(...(await timeByCurl(url, token, turn)));
    psql.push(...(await plain.time(statements, turn)));
  }
  return { read, api, psql };
}

function rows(all: readonly Timed[]): string[][] {
  const ms = fixed(2);
  return all.map(({ read, api, psql }) => {
    const both = (figure: (samples: readonly number[]) => number) => {
      const [ours, theirs] = [figure(api), figure(psql)];
      return [ms(ours), ms(theirs), ms(ours / theirs)];
    };
    return [
      read.name,
      ...both(median),
      ...both((samples) => quantile(samples, 0.99)),
      ...both((samples) => Math.min(...samples)),
      String(api.length),
    ];
  });
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
      `1,021,000 events and 102,001 resources, seed ${options.seed}, loaded in ${seconds.toFixed(0)} s`,
    );
    const server = new Api(tally.url, session.db);
    const three = (figure: string) => [figure, "psql", "ratio"];
    const head = ["read", ...["median", "p99", "least"].flatMap(three), "samples"];
    for (const [name, { title, reads }] of Object.entries(PARTS)) {
      if (!options.parts.includes(name)) continue;
      const all: Timed[] = [];
      const listed = await reads(session.db);
      await warmUp(server, listed);
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
