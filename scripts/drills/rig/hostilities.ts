/** What hostile clients do. */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { must, until } from "../drill.ts";

/** Whom it hits. */
export interface Scene {
  readonly url: string;
  readonly port: number;
  readonly token: string;
  readonly long: boolean;
}

/** What is done. @returns what that was, in words. @throws {Error} where Tally gave in to it */
export type Hostility = (scene: Scene) => Promise<string>;

/** A connection, and what came of it. */
interface Line {
  readonly socket: Socket;
  /** Everything that was answered. */
  said: string;
  /** Whether the server has ended it. */
  ended: boolean;
}

/** @throws {Error} when there is no connection to be had */
async function dial(port: number): Promise<Line> {
  const socket = connect({ host: "127.0.0.1", port });
  const line: Line = { socket, said: "", ended: false };
  const connected = Promise.withResolvers<void>();
  socket.once("connect", connected.resolve);
  // What breaks a connection that stands is told by its end.
  socket.on("error", connected.reject);
  socket.once("close", () => {
    line.ended = true;
    connected.reject(new Error("a connection was closed before it stood"));
  });
  socket.on("data", (chunk: Buffer) => {
    line.said += chunk.toString("latin1");
  });
  await connected.promise;
  return line;
}

async function dialMany(port: number, count: number): Promise<Line[]> {
  const lines: Line[] = [];
  while (lines.length < count) {
    const some = Math.min(200, count - lines.length);
    lines.push(...(await Promise.all(Array.from({ length: some }, () => dial(port)))));
  }
  return lines;
}

function hangUp(lines: readonly Line[]): void {
  for (const { socket } of lines) socket.destroy();
}

/** The statuses that were answered on a connection, in order. */
function statusesOf({ said }: Line): string[] {
  return [...said.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = ""]) => status);
}

/** @throws {Error} unless the server ends all of them in time */
async function mustEnd(lines: readonly Line[], milliseconds: number): Promise<void> {
  await until("every connection is ended", milliseconds, () => lines.every(({ ended }) => ended));
}

function head(token: string, ...more: string[]): string {
  const lines = ["POST /api/v1/events HTTP/1.1", "Host: tally", `Authorization: Bearer ${token}`];
  return [...lines, "Content-Type: application/json", ...more, "", ""].join("\r\n");
}

/** Sends a byte at a time for a while. */
async function drip(lines: readonly Line[], byte: string, milliseconds: number): Promise<void> {
  const enough = performance.now() + milliseconds;
  while (performance.now() < enough) {
    for (const { socket, ended } of lines) if (!ended) socket.write(byte);
    await Bun.sleep(100);
  }
}

/** Whether a connection that stood was closed: it was answered before everything was sent, and the answer lost. */
function isClosing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
}

/** What is sent as a whole and must be refused. */
interface TooLarge {
  readonly times: number;
  readonly body: () => Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether all of it is sent before the answer comes, so that every answer can be read. */
  readonly small: boolean;
}

/** Sends them all at once. @throws {Error} for any that is not refused as too large, or is not answered in a minute */
async function refused({ url, token }: Scene, { times, body, headers, small }: TooLarge): Promise<string> {
  const found = await Promise.all(
    Array.from({ length: times }, async () => {
      try {
        const response = await fetch(`${url}/api/v1/events`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
          body: body(),
          signal: AbortSignal.timeout(60_000),
        });
        await response.text();
        return String(response.status);
      } catch (error) {
        if (!small && isClosing(error)) return "closed";
        throw error;
      }
    }),
  );
  const wrong = found.find((status) => status !== "413" && status !== "closed");
  must(wrong === undefined, `it was answered ${wrong}`);
  const answered = found.filter((status) => status === "413").length;
  must(answered > 0, "none was told why it was closed");
  return `${times} refused${answered < times ? `, ${times - answered} of them without an answer` : ""}`;
}

function chunksOf(megabytes: number): ReadableStream<Uint8Array> {
  let left = megabytes;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(new Uint8Array(2 ** 20).fill(32));
      else controller.close();
    },
  });
}

/** How much a bomb unpacks to: far more than a body may; as it takes time to make, not by that much in a short drill. */
function unpacked({ long }: Scene): number {
  return (long ? 512 : 128) * 2 ** 20;
}

/** Those that keep their connections and do next to nothing with them. */
export const PATIENT: readonly string[] = [
  "slow headers",
  "slow bodies",
  "large bodies that stop",
  "idle connections",
];

/** Bun ends a connection without a whole request's head after ten seconds, however the bytes come. */
const HEAD_MS = 20_000;

export const HOSTILITIES: Readonly<Record<string, Hostility>> = {
  "slow headers": async ({ port, long }) => {
    const lines = await dialMany(port, 300);
    for (const { socket } of lines) socket.write("GET /api/v1/events HTTP/1.1\r\nHost: tally\r\nX-Slow: ");
    await drip(lines, "x", long ? HEAD_MS : 700);
    if (long) await mustEnd(lines, 0);
    hangUp(lines);
    must(
      lines.every(({ said }) => said === ""),
      "half a request was answered",
    );
    return `${lines.length} connections${long ? ", all ended by Tally" : ""}`;
  },
  "slow bodies": async ({ port, token, long }) => {
    const lines = await dialMany(port, 300);
    for (const { socket } of lines) socket.write(head(token, "Content-Length: 1000000"));
    await drip(lines, "[", long ? 30_000 : 700);
    hangUp(lines);
    must(
      lines.every(({ said }) => said === ""),
      "half a body was answered",
    );
    return `${lines.length} connections`;
  },
  "large bodies that stop": async ({ port, long }) => {
    // Nobody's token: what a stranger sends must not be kept.
    const lines = await dialMany(port, long ? 100 : 20);
    const some = Buffer.alloc(2 ** 20, 32);
    for (const { socket } of lines) {
      socket.write(head("tly_i_nobody", `Content-Length: ${31 * 2 ** 20}`));
      for (let n = 0; n < 16; n++) socket.write(some);
    }
    await Bun.sleep(long ? 20_000 : 1_000);
    hangUp(lines);
    const wrong = lines.find((line) => statusesOf(line).some((status) => status !== "401"));
    must(wrong === undefined, `a stranger was answered ${wrong?.said.slice(0, 100)}`);
    return `${lines.length} connections of 16 MB`;
  },
  "idle connections": async ({ port, long }) => {
    const lines = await dialMany(port, long ? 10_000 : 1_000);
    if (long) await mustEnd(lines, HEAD_MS);
    else await Bun.sleep(500);
    hangUp(lines);
    return `${lines.length} connections${long ? ", all ended by Tally" : ""}`;
  },
  "gzip bombs": async (scene) => {
    const bomb = gzipSync(Buffer.alloc(unpacked(scene)));
    const headers = { "content-encoding": "gzip" };
    return await refused(scene, { times: scene.long ? 50 : 4, body: () => bomb, headers, small: true });
  },
  "zstd bombs": async (scene) => {
    const bomb = zstdCompressSync(Buffer.alloc(unpacked(scene)));
    const headers = { "content-encoding": "zstd" };
    return await refused(scene, { times: scene.long ? 50 : 4, body: () => bomb, headers, small: true });
  },
  "64 MB bodies": async (scene) => {
    const whole = new Uint8Array(64 * 2 ** 20).fill(32);
    return await refused(scene, { times: scene.long ? 30 : 2, body: () => whole, small: false });
  },
  "64 MB bodies of unknown length": async (scene) =>
    await refused(scene, { times: scene.long ? 30 : 2, body: () => chunksOf(64), small: false }),
  "pipelined garbage": async ({ port, token, long }) => {
    const lines = await dialMany(port, long ? 1_000 : 100);
    const empty = `${head(token, "Content-Length: 2")}[]`;
    // Half of them have been served before.
    const served = lines.filter((_, at) => at % 2 === 0);
    for (const { socket } of served) socket.write(empty);
    await until("requests are answered", 10_000, () => served.every((line) => line.said.endsWith("}")));
    const before = new Map(lines.map((line) => [line, statusesOf(line)]));
    must(
      served.every((line) => before.get(line)?.join() === "200"),
      "a request before the garbage was not served",
    );
    for (const { socket } of lines) {
      socket.write(randomBytes(4_096));
      socket.write(empty.repeat(10));
    }
    await mustEnd(lines, 10_000);
    for (const line of lines) {
      const after = statusesOf(line).slice(before.get(line)?.length).join();
      // 505 is for a request line that names no version of HTTP. Whatever comes behind the garbage is none, either.
      must(["", "400", "505"].includes(after), `garbage was answered ${after}`);
    }
    return `${lines.length} connections, all ended by Tally`;
  },
  "pipelined requests": async ({ port, token, long }) => {
    const lines = await dialMany(port, long ? 1_000 : 100);
    for (const { socket } of lines) socket.write(`${head(token, "Content-Length: 2")}[]`.repeat(10));
    // Bun takes none while another is being worked on, and ends the connection: it must be ended, not left waiting.
    const isServed = (line: Line) => statusesOf(line).length === 10;
    await until("each is served or ended", 10_000, () => lines.every((line) => line.ended || isServed(line)));
    hangUp(lines);
    const wrong = lines.flatMap(statusesOf).find((status) => status !== "200");
    must(wrong === undefined, `a request was answered ${wrong}`);
    return `${lines.length} connections`;
  },
};
