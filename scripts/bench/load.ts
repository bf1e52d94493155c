/**
 * The load generator: makes a job's batches, says `ready`, and sends them at the word `go`, every connection taking
 * the next batch as soon as its last one is answered. Texts are made beforehand, so that it costs the machine little.
 */
import { openPool } from "../../src/database/pool.ts";
import { Job, linesOf, type Outcome, parseLine } from "./contract.ts";
import { floorBatch, writeFloorBatch, writeItemByItem } from "./statements.ts";
import { BATCH_ITEMS, batchItems, type Item, KNOWN_PER_BATCH, knownItems, requestBody } from "./workload.ts";

/** Sends one batch and returns when it is durable. */
type Send = () => Promise<void>;

async function post(url: string, token: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const response = await fetch(`${url}/api/v1/events`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body,
  });
  const text = await response.text();
  if (response.status !== 200 || !text.includes(`"accepted":${BATCH_ITEMS},`)) {
    throw new Error(`a batch was not accepted whole: ${response.status} ${text.slice(0, 300)}`);
  }
}

function encoded(items: readonly Item[]): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(requestBody(items));
}

/** One `Send` a batch, everything made beforehand. */
function prepare({ target, connections }: Job, batches: Item[][]): Send[] {
  if (target.kind === "api") {
    return batches.map((items) => {
      const body = encoded(items);
      return () => post(target.url, target.token, body);
    });
  }
  const db = openPool({ url: target.databaseUrl }, { maxConnections: connections, applicationName: "bench" });
  if (target.kind === "items") return batches.map((items) => () => writeItemByItem(db, items));
  return batches.map((items) => {
    const batch = floorBatch(items);
    return () => writeFloorBatch(db, batch);
  });
}

/** Runs all of `sends` over so many connections; gives each one's milliseconds. */
async function run(sends: readonly Send[], connections: number): Promise<number[]> {
  const latencies: number[] = [];
  let taken = 0;
  const connection = async () => {
    for (let send = sends[taken++]; send !== undefined; send = sends[taken++]) {
      const from = performance.now();
      await send();
      latencies.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  return latencies;
}

/** Goes on for so long; each connection's batches touch the resources that its last one made. */
async function runFor(job: Job, seconds: number): Promise<number[]> {
  const { target, connections, warmup } = job;
  if (target.kind !== "api") throw new Error("only the API is run by the clock");
  const latencies: number[] = [];
  const until = performance.now() + seconds * 1000;
  let number = warmup;
  const connection = async (first: Item[]) => {
    let created = first;
    while (performance.now() < until) {
      const items = batchItems(
        number++,
        created.map(({ resource }) => resource),
      );
      created = items.filter((_, i) => i % 2 === 0);
      const body = encoded(items);
      const from = performance.now();
      await post(target.url, target.token, body);
      latencies.push(performance.now() - from);
    }
  };
  const known = knownItems((warmup + connections) * KNOWN_PER_BATCH).slice(warmup * KNOWN_PER_BATCH);
  await Promise.all(
    Array.from({ length: connections }, (_, n) =>
      connection(known.slice(n * KNOWN_PER_BATCH, (n + 1) * KNOWN_PER_BATCH)),
    ),
  );
  return latencies;
}

const lines = linesOf(Bun.stdin.stream());
const job = parseLine(Job, (await lines.next()).value ?? "");
const known = knownItems((job.warmup + job.batches) * KNOWN_PER_BATCH).map(({ resource }) => resource);
const sends = prepare(
  job,
  Array.from({ length: job.warmup + job.batches }, (_, n) =>
    batchItems(n, known.slice(n * KNOWN_PER_BATCH, (n + 1) * KNOWN_PER_BATCH)),
  ),
);
await run(sends.slice(0, job.warmup), job.connections);
Bun.gc(true);
console.log("ready");
if ((await lines.next()).value !== "go") throw new Error("expected the word go");
const cpu = process.cpuUsage();
const from = performance.now();
const latencies =
  job.seconds === null ? await run(sends.slice(job.warmup), job.connections) : await runFor(job, job.seconds);
const { user, system } = process.cpuUsage(cpu);
const outcome: Outcome = {
  seconds: (performance.now() - from) / 1000,
  events: latencies.length * BATCH_ITEMS,
  latencies,
  cpuSeconds: (user + system) / 1e6,
};
console.log(JSON.stringify(outcome));
process.exit(0);
