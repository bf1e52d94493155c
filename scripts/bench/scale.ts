/**
 * What grows with the record and what doesn't: ingest, late events, paged reads and disk, on the built executable, at
 * one size after the other. `bun run bench scale -- --help`. docs/performance.md has figures.
 *
 * The record is made by `history.ts`; batches are those of the other benchmarks, half new resources, half known ones.
 * Of a batch with late events one in a hundred is of a loaded resource, dated anywhere within its life, up to a year ago.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { issueApiToken } from "../../src/access/credentials.ts";
import { fixed, markdownTable, median, quantile, spread } from "./figures.ts";
import { addSlices, loadedResource, RESOURCES_A_SLICE, type RecordShape, settle } from "./history.ts";
import { machineLine } from "./machine.ts";
import { scaleReads } from "./scale-reads.ts";
import { Session } from "./session.ts";
import { prepareKnown } from "./statements.ts";
import { type RunningTally, startTally } from "./tally.ts";
import { batchItems, type Item, KNOWN_PER_BATCH, knownItems, requestBody } from "./workload.ts";

const EVENTS_EACH = 10;
const CONNECTIONS = 4;
/** Batches of one run; a run with late events has as many. */
const BATCHES = 24;
/** Batches before anything is measured: a process that has just started is slower, and that is no matter of size. */
const WARM_UP_BATCHES = 60;
/** One in so many of a batch's events is late. */
const LATE_EVERY = 100;

interface Options {
  readonly executable: string;
  readonly sizes: readonly number[];
  readonly repeats: number;
  readonly samples: number;
  readonly seed: number;
  readonly ask?: true;
  readonly dir: string;
}

/** What was measured at one size. */
interface AtSize {
  readonly events: number;
  readonly bytesPerEvent: number;
  readonly onTime: readonly number[];
  readonly late: readonly number[];
  readonly reads: ReadonlyMap<string, readonly number[]>;
}

function unchanged(items: Item[]): Item[] {
  return items;
}

/** Puts late events in the place of one in a hundred; each has a place of its own in its resource's life. */
function withLate(items: readonly Item[], shape: RecordShape, resources: number, batch: number): Item[] {
  return items.map((item, i) => {
    if (i % LATE_EVERY !== 0) return item;
    const drawn = batch * 31 + i;
    const resource = loadedResource(shape, (drawn * 7_919) % resources);
    const micros = resource.bornMicros + (1 + (drawn % 5)) * resource.stepMicros + batch * 1_000 + i + 1;
    const fraction = String(micros % 1_000_000).padStart(6, "0");
    const timestamp = `${new Date(Math.floor(micros / 1000)).toISOString().slice(0, 19)}.${fraction}Z`;
    const size = '{"vcpus": 4, "ram_gb": 8, "disk_gb": 40, "flavor": "m1.4"}';
    return {
      ...item,
      timestamp,
      eventType: `compute.${resource.resourceType}.resize.end`,
      // The seeded schemas hold instances to more than volumes; a state alone passes them all.
      payload:
        resource.resourceType === "instance" ? `{"state": "active", "size": ${size}}` : '{"state": "active"}',
      resource: { ...item.resource, ...resource },
    };
  });
}

/** Sends the bodies over so many connections. @returns events a second */
async function send(tally: RunningTally, bodies: readonly Uint8Array<ArrayBuffer>[]): Promise<number> {
  const waiting = bodies.values();
  const headers = { authorization: `Bearer ${tally.token}`, "content-type": "application/json" };
  const connection = async () => {
    for (const body of waiting) {
      const answer = await fetch(`${tally.url}/api/v1/events`, { method: "POST", headers, body });
      const text = await answer.text();
      if (answer.status !== 200 || !text.includes('"accepted":1000,'))
        throw new Error(`a batch was not accepted whole: ${answer.status} ${text.slice(0, 300)}`);
    }
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  return (bodies.length * 1_000_000) / (performance.now() - begun);
}

async function timeReads(
  tally: RunningTally,
  token: string,
  paths: readonly string[],
  samples: number,
): Promise<number[]> {
  const took: number[] = [];
  const headers = { authorization: `Bearer ${token}` };
  for (let n = 0; n < samples; n++) {
    const path = paths[n % paths.length];
    const begun = performance.now();
    const answer = await fetch(`${tally.url}${path}`, { headers });
    const body = await answer.text();
    took.push(performance.now() - begun);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${body.slice(0, 300)}`);
  }
  return took;
}

/** Numbers the batches over all sizes: none is sent twice. */
class Batches {
  #next = 0;

  bodies(
    count: number,
    known: readonly Item[],
    change: (items: Item[], batch: number) => Item[],
  ): Uint8Array<ArrayBuffer>[] {
    return Array.from({ length: count }, () => {
      const n = this.#next++;
      const resources = known
        .slice(n * KNOWN_PER_BATCH, (n + 1) * KNOWN_PER_BATCH)
        .map(({ resource }) => resource);
      return new TextEncoder().encode(requestBody(change(batchItems(n, resources), n)));
    });
  }
}

async function main(options: Options, place: string): Promise<void> {
  const tally = await startTally(options.executable, place);
  const session = new Session(tally);
  try {
    const admin = { role: "admin", projectIds: [], description: null } as const;
    const { token } = await issueApiToken(session.db, admin, "bench");
    const runs = options.sizes.length * (2 * options.repeats + 1);
    const known = knownItems((WARM_UP_BATCHES + runs * BATCHES) * KNOWN_PER_BATCH);
    await prepareKnown(session.db, known.length);
    const shape = { seed: options.seed, eventsEach: EVENTS_EACH };
    const batches = new Batches();
    await send(tally, batches.bodies(WARM_UP_BATCHES, known, unchanged));
    const all: AtSize[] = [];
    let slices = 0;
    for (const size of options.sizes) {
      const upTo = Math.ceil(size / (RESOURCES_A_SLICE * EVENTS_EACH));
      const begun = performance.now();
      await addSlices(session.db, shape, slices, upTo, (done) => {
        if (done % 10 === 0) console.error(`${done} of ${upTo} slices`);
      });
      slices = upTo;
      await settle(session.databaseUrl);
      const seconds = ((performance.now() - begun) / 1000).toFixed(0);
      console.error(`${size} events are there: ${seconds} s`);
      if (options.ask === true) prompt("Enter measures");
      all.push(await measure(session, tally, { token, shape, slices, known, batches, options }));
      console.log(`measured ${size}`);
    }
    console.log(`${machineLine()}; Bun ${Bun.version}, PostgreSQL ${await session.serverVersion()}`);
    console.log(
      `${await session.durability()}; seed ${options.seed}, ${CONNECTIONS} connections, ${options.repeats} runs`,
    );
    print(all);
  } finally {
    await session.close();
    await tally.stop();
  }
}

async function measure(
  session: Session,
  tally: RunningTally,
  about: {
    readonly token: string;
    readonly shape: RecordShape;
    readonly slices: number;
    readonly known: readonly Item[];
    readonly batches: Batches;
    readonly options: Options;
  },
): Promise<AtSize> {
  const { token, shape, slices, known, batches, options } = about;
  const [sizes]: { events: number; bytes: string }[] = await session.db`
    SELECT (SELECT count(*)::int FROM events) AS events,
           (pg_total_relation_size('events') + pg_total_relation_size('current_resources'))::text AS bytes`;
  if (sizes === undefined) throw new Error("no sizes");
  const resources = slices * RESOURCES_A_SLICE;
  const reads = new Map<string, number[]>();
  for (const { name, paths } of scaleReads(shape, resources)) {
    // Each place once: what nobody has asked for since the server was started is a matter of the disk.
    await timeReads(tally, token, paths, paths.length);
    reads.set(name, await timeReads(tally, token, paths, options.samples));
  }
  const onTime = () => batches.bodies(BATCHES, known, unchanged);
  const withSome = () =>
    batches.bodies(BATCHES, known, (items, batch) => withLate(items, shape, resources, batch));
  await send(tally, onTime());
  const rates: { onTime: number[]; late: number[] } = { onTime: [], late: [] };
  for (let repeat = 0; repeat < options.repeats; repeat++) {
    rates.onTime.push(await send(tally, onTime()));
    rates.late.push(await send(tally, withSome()));
  }
  return { events: sizes.events, bytesPerEvent: Number(sizes.bytes) / sizes.events, ...rates, reads };
}

function print(all: readonly AtSize[]): void {
  const first = all[0];
  if (first === undefined) return;
  const million = ({ events }: AtSize) => (events / 1e6).toFixed(2);
  console.log("\n## Ingest, events a second: median (least–most)\n");
  const head = ["million events", "on time", "÷ smallest", "1 % late", "on time ÷ late", "bytes an event"];
  console.log(
    markdownTable(
      head,
      all.map((at) => {
        const [rate, late] = [median(at.onTime), median(at.late)];
        return [
          million(at),
          spread(at.onTime),
          (rate / median(first.onTime)).toFixed(2),
          spread(at.late),
          (rate / late).toFixed(2),
          at.bytesPerEvent.toFixed(0),
        ];
      }),
    ),
  );
  console.log("\n## Pages of 100 and histories, milliseconds: median / p99\n");
  console.log(
    markdownTable(
      ["million events", ...first.reads.keys()],
      all.map((at) => [
        million(at),
        ...[...at.reads.values()].map(
          (took) => `${fixed(2)(median(took))} / ${fixed(2)(quantile(took, 0.99))}`,
        ),
      ]),
    ),
  );
}

/** Runs the benchmark as the command line says. */
export async function benchScale(executable: string, args: readonly string[]): Promise<void> {
  const list = (text: string) => text.split(",").map(Number);
  const options = new Command("bench scale")
    .description("measures the built executable over records of growing size; needs psql")
    .option("--executable <path>", "the executable to measure", executable)
    .option("--sizes <list>", "numbers of stored events, growing", list, [100_000, 1_000_000, 10_000_000])
    .option("--repeats <n>", "runs of ingest at each size", Number, 3)
    .option("--samples <n>", "samples of each read", Number, 200)
    .option("--seed <n>", "what the record is drawn from", Number, 7)
    .option("--ask", "wait for Enter before each size is measured, so that the machine can be made quiet")
    .option("--dir <path>", "where the database goes; its disk is what is measured", tmpdir())
    .parse(args, { from: "user" })
    .opts<Options>();
  const place = mkdtempSync(join(options.dir, "tally-bench-"));
  chmodSync(place, 0o755);
  try {
    await main(options, place);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
