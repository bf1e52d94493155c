/**
 * A naive collector, many times over: one event a request, over connections that are kept alive. It writes bytes made
 * beforehand to bare sockets, so that it costs the machine little of what is measured.
 *
 * Takes a job as one line of JSON, says `ready`, and at the word `go` lets every connection send its next request as
 * soon as its last one is answered, until the time is over or nothing is left to send.
 */
import { Type } from "@sinclair/typebox";
import { linesOf, parseLine } from "./contract.ts";
import { batchItems, KNOWN_PER_BATCH, knownItems, requestBody } from "./workload.ts";

const Job = Type.Object({
  host: Type.String(),
  port: Type.Integer(),
  token: Type.String(),
  connections: Type.Integer(),
  /** The first batch of the workload whose items are sent, and how many. */
  from: Type.Integer(),
  batches: Type.Integer(),
  seconds: Type.Number(),
});

function requests({ host, port, token, from, batches }: typeof Job.static): Buffer[] {
  const known = knownItems((from + batches) * KNOWN_PER_BATCH).map(({ resource }) => resource);
  const made: Buffer[] = [];
  for (let n = from; n < from + batches; n++) {
    for (const item of batchItems(n, known.slice(n * KNOWN_PER_BATCH, (n + 1) * KNOWN_PER_BATCH))) {
      const body = requestBody([item]);
      const head =
        `POST /api/v1/events HTTP/1.1\r\nHost: ${host}:${port}\r\nAuthorization: Bearer ${token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
      made.push(Buffer.from(head + body));
    }
  }
  return made;
}

const lines = linesOf(Bun.stdin.stream());
const job = parseLine(Job, (await lines.next()).value ?? "");
const waiting = requests(job).values();
const latencies: number[] = [];
let until = Number.POSITIVE_INFINITY;
let begun = 0;
let ended = 0;

/** One connection: `begin` sends its first request; `done` settles when it has had its last answer. */
async function connection(): Promise<{ begin(): void; done: Promise<void> }> {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  let from = 0;
  let answer = "";
  const socket = await Bun.connect({
    hostname: job.host,
    port: job.port,
    socket: {
      data(_, chunk) {
        answer += chunk.toString("latin1");
        const head = answer.indexOf("\r\n\r\n");
        if (head === -1) return;
        const length = Number(/content-length: (\d+)/i.exec(answer.slice(0, head))?.[1]);
        if (answer.length < head + 4 + length) return;
        ended = performance.now();
        latencies.push(ended - from);
        if (!answer.startsWith("HTTP/1.1 200") || !answer.includes('"accepted":1,'))
          return reject(new Error(`an event was not accepted: ${answer}`));
        answer = "";
        next();
      },
      close: () => reject(new Error("the server closed the connection")),
    },
  });
  const next = () => {
    const request = performance.now() < until ? waiting.next().value : undefined;
    if (request === undefined) return resolve();
    from = performance.now();
    socket.write(request);
  };
  return { begin: next, done };
}

const connections = await Promise.all(Array.from({ length: job.connections }, connection));
Bun.gc(true);
console.log("ready");
if ((await lines.next()).value !== "go") throw new Error("expected the word go");
begun = performance.now();
until = begun + job.seconds * 1000;
const cpu = process.cpuUsage();
for (const { begin } of connections) begin();
await Promise.all(connections.map(({ done }) => done));
const { user, system } = process.cpuUsage(cpu);
console.log(
  JSON.stringify({ seconds: (ended - begun) / 1000, latencies, cpuSeconds: (user + system) / 1e6 }),
);
process.exit(0);
