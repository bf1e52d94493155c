/**
 * What grows with the record and what doesn't: ingest, late events, paged reads and disk, on the built executable, at
 * one size after the other. `bun run bench scale -- --help`. docs/performance.md has figures.
 *
 * The record is made by `history.ts`; batches are those of the other benchmarks, half new resources, half known ones.
 * Of a batch with late events one in a hundred is of a loaded resource, dated anywhere within its life, up to a year ago.
 *
 * A second Tally keeps a small record, which grows by what is measured alone, and takes turns with the growing one: a
 * shared machine is faster at one time than at another, by more than what size costs.
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
const BATCHES = 30;
/** Batches before anything is measured: a process that has just started is slower, and that is no matter of size. */
const WARM_UP_BATCHES = 60;
/** So many batches have known resources of their own; then they come again, so that the smallest record stays small. */
const KNOWN_FOR_BATCHES = 200;
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
  /** The same into the record beside that stays small, each run next to the one above. */
  readonly beside: readonly number[];
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

/** One executable with its record, and the batches for it. */
class Instance {
  readonly session: Session;
  readonly #known: readonly Item[];
  readonly #shape: RecordShape;
  /** Numbers the batches over all sizes: none is sent twice. */
  #next = 0;
  #slices = 0;

  constructor(
    readonly tally: RunningTally,
    shape: RecordShape,
  ) {
    this.session = new Session(tally);
    this.#shape = shape;
    this.#known = knownItems(KNOWN_FOR_BATCHES * KNOWN_PER_BATCH);
  }

  get resources(): number {
    return this.#slices * RESOURCES_A_SLICE;
  }

  /** Fills the tables with what batches say they know, and the process with compiled code. */
  async prepare(): Promise<void> {
    await prepareKnown(this.session.db, this.#known.length);
    await this.onTime(WARM_UP_BATCHES);
  }

  /** Lets the record grow to so many events. */
  async grow(size: number): Promise<void> {
    const upTo = Math.ceil(size / (RESOURCES_A_SLICE * this.#shape.eventsEach));
    const begun = performance.now();
    await addSlices(this.session.db, this.#shape, this.#slices, upTo, (done) => {
      if (done % 10 === 0) console.error(`${done} of ${upTo} slices`);
    });
    this.#slices = upTo;
    await settle(this.session.databaseUrl);
    console.error(`${size} events are there: ${((performance.now() - begun) / 1000).toFixed(0)} s`);
  }

  /** @returns events a second */
  async onTime(count: number): Promise<number> {
    return await send(this.tally, this.#bodies(count, unchanged));
  }

  /** The same where some events are late. */
  async late(count: number): Promise<number> {
    return await send(
      this.tally,
      this.#bodies(count, (items, batch) => withLate(items, this.#shape, this.resources, batch)),
    );
  }

  #bodies(count: number, change: (items: Item[], batch: number) => Item[]): Uint8Array<ArrayBuffer>[] {
    return Array.from({ length: count }, () => {
      const n = this.#next++;
      const first = (n % KNOWN_FOR_BATCHES) * KNOWN_PER_BATCH;
      const resources = this.#known.slice(first, first + KNOWN_PER_BATCH).map(({ resource }) => resource);
      return new TextEncoder().encode(requestBody(change(batchItems(n, resources), n)));
    });
  }

  async end(): Promise<void> {
    await this.session.close();
    await this.tally.stop();
  }
}

async function main(options: Options, place: string): Promise<void> {
  const { executable, sizes, repeats, seed } = options;
  const shape = { seed, eventsEach: EVENTS_EACH };
  const instances: Instance[] = [];
  const start = async () => {
    const instance = new Instance(await startTally(executable, place), shape);
    instances.push(instance);
    await instance.prepare();
    return instance;
  };
  try {
    const [growing, smallest] = [await start(), await start()];
    await smallest.grow(sizes[0] ?? 0);
    const { session } = growing;
    const admin = { role: "admin", projectIds: [], description: null } as const;
    const { token } = await issueApiToken(session.db, admin, "bench");
    const all: AtSize[] = [];
    for (const size of sizes) {
      await growing.grow(size);
      if (options.ask === true) prompt("Enter measures");
      all.push(await measure(growing, smallest, { token, shape, options }));
      console.log(`measured ${size}`);
    }
    console.log(`${machineLine()}; Bun ${Bun.version}, PostgreSQL ${await session.serverVersion()}`);
    console.log(`${await session.durability()}; seed ${seed}, ${CONNECTIONS} connections, ${repeats} runs`);
    print(all);
  } finally {
    for (const instance of instances) await instance.end();
  }
}

async function measure(
  growing: Instance,
  smallest: Instance,
  about: { readonly token: string; readonly shape: RecordShape; readonly options: Options },
): Promise<AtSize> {
  const { session, tally } = growing;
  const { token, shape, options } = about;
  const [sizes]: { events: number; bytes: string }[] = await session.db`
    SELECT (SELECT count(*)::int FROM events) AS events,
           (pg_total_relation_size('events') + pg_total_relation_size('current_resources'))::text AS bytes`;
  if (sizes === undefined) throw new Error("no sizes");
  const reads = new Map<string, number[]>();
  for (const { name, paths } of scaleReads(shape, growing.resources)) {
    // Each place once: what nobody has asked for since the server was started is a matter of the disk.
    await timeReads(tally, token, paths, paths.length);
    reads.set(name, await timeReads(tally, token, paths, options.samples));
  }
  // Both have just written everything back, so that both begin with whole pages in their logs.
  await settle(smallest.session.databaseUrl);
  await growing.onTime(WARM_UP_BATCHES);
  await smallest.onTime(WARM_UP_BATCHES);
  const rates = { onTime: [] as number[], beside: [] as number[], late: [] as number[] };
  for (let repeat = 0; repeat < options.repeats; repeat++) {
    const turns = [
      async () => rates.onTime.push(await growing.onTime(BATCHES)),
      async () => rates.beside.push(await smallest.onTime(BATCHES)),
    ];
    // Neither is always the one that finds the machine rested.
    if (repeat % 2 === 1) turns.reverse();
    for (const turn of turns) await turn();
    rates.late.push(await growing.late(BATCHES));
  }
  return { events: sizes.events, bytesPerEvent: Number(sizes.bytes) / sizes.events, ...rates, reads };
}

function print(all: readonly AtSize[]): void {
  const first = all[0];
  if (first === undefined) return;
  const million = ({ events }: AtSize) => (events / 1e6).toFixed(2);
  console.log("\n## Ingest, events a second: median (least–most)\n");
  const head = [
    "million events",
    "on time",
    "into the smallest beside",
    "on time ÷ smallest",
    "1 % late",
    "on time ÷ late",
    "bytes an event",
  ];
  console.log(
    markdownTable(
      head,
      all.map((at) => {
        const [rate, late] = [median(at.onTime), median(at.late)];
        return [
          million(at),
          spread(at.onTime),
          spread(at.beside),
          spread(
            at.onTime.map((of, run) => of / (at.beside[run] ?? 0)),
            fixed(2),
          ),
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
