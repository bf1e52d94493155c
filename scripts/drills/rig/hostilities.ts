/** What hostile clients do. */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { must } from "../drill.ts";

/** Whom it hits. */
export interface Scene {
  readonly url: string;
  readonly port: number;
  readonly token: string;
  readonly long: boolean;
}

/** What is done. @returns what that was, in words. @throws {Error} where Tally gave in to it */
export type Hostility = (scene: Scene) => Promise<string>;

async function dial(port: number): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => {});
  const connected = Promise.withResolvers<void>();
  socket.once("connect", connected.resolve);
  socket.once("close", () => connected.resolve());
  await connected.promise;
  return socket;
}

async function dialMany(port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const some = Math.min(200, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: some }, () => dial(port)))));
  }
  return sockets;
}

function head(token: string, ...more: string[]): string {
  const lines = ["POST /api/v1/events HTTP/1.1", "Host: tally", `Authorization: Bearer ${token}`];
  return [...lines, "Content-Type: application/json", ...more, "", ""].join("\r\n");
}

/** Sends a byte at a time for a while. */
async function drip(sockets: readonly Socket[], text: string, milliseconds: number): Promise<void> {
  const until = performance.now() + milliseconds;
  for (let at = 0; performance.now() < until; at++) {
    for (const socket of sockets) if (!socket.destroyed) socket.write(text[at % text.length] ?? "x");
    await Bun.sleep(100);
  }
  for (const socket of sockets) socket.destroy();
}

/** How a body that is sent as a whole is answered. */
async function statuses(
  { url, token }: Scene,
  times: number,
  body: () => Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
): Promise<string> {
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
      } catch {
        // It was answered, and closed, before everything was sent.
        return "closed";
      }
    }),
  );
  const wrong = found.find((status) => status !== "413" && status !== "closed");
  must(wrong === undefined, `it was answered ${wrong}`);
  return `${times} refused`;
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

export const HOSTILITIES: Readonly<Record<string, Hostility>> = {
  "slow headers": async ({ port, long }) => {
    const sockets = await dialMany(port, 300);
    await drip(sockets, "GET /api/v1/events?x=", long ? 30_000 : 700);
    return `${sockets.length} connections`;
  },
  "slow bodies": async ({ port, token, long }) => {
    const sockets = await dialMany(port, 300);
    for (const socket of sockets) socket.write(head(token, "Content-Length: 1000000"));
    await drip(sockets, "[", long ? 30_000 : 700);
    return `${sockets.length} connections`;
  },
  "large bodies that stop": async ({ port, long }) => {
    // Nobody's token: what a stranger sends must not be kept.
    const sockets = await dialMany(port, long ? 100 : 20);
    const some = Buffer.alloc(2 ** 20, 32);
    for (const socket of sockets) {
      socket.write(head("tly_i_nobody", `Content-Length: ${31 * 2 ** 20}`));
      for (let n = 0; n < 16; n++) socket.write(some);
    }
    await Bun.sleep(long ? 20_000 : 1_000);
    for (const socket of sockets) socket.destroy();
    return `${sockets.length} connections of 16 MB`;
  },
  "idle connections": async ({ port, long }) => {
    const sockets = await dialMany(port, long ? 10_000 : 1_000);
    const standing = sockets.filter((socket) => !socket.destroyed).length;
    await Bun.sleep(long ? 10_000 : 500);
    for (const socket of sockets) socket.destroy();
    must(standing === sockets.length, `only ${standing} of ${sockets.length} could be opened`);
    return `${standing} connections`;
  },
  "gzip bombs": async (scene) => {
    const bomb = gzipSync(Buffer.alloc(unpacked(scene)));
    return await statuses(scene, scene.long ? 50 : 4, () => bomb, { "content-encoding": "gzip" });
  },
  "zstd bombs": async (scene) => {
    const bomb = zstdCompressSync(Buffer.alloc(unpacked(scene)));
    return await statuses(scene, scene.long ? 50 : 4, () => bomb, { "content-encoding": "zstd" });
  },
  "64 MB bodies": async (scene) => {
    const whole = new Uint8Array(64 * 2 ** 20).fill(32);
    return await statuses(scene, scene.long ? 30 : 2, () => whole);
  },
  "64 MB bodies of unknown length": async (scene) =>
    await statuses(scene, scene.long ? 30 : 2, () => chunksOf(64)),
  "pipelined garbage": async ({ port, token, long }) => {
    const sockets = await dialMany(port, long ? 1_000 : 100);
    for (const [at, socket] of sockets.entries()) {
      socket.resume();
      const empty = `${head(token, "Content-Length: 2")}[]`;
      socket.write(at % 2 === 0 ? empty + empty : "");
      socket.write(randomBytes(4_096));
      socket.write(empty.repeat(10));
    }
    await Bun.sleep(long ? 3_000 : 300);
    for (const socket of sockets) socket.destroy();
    return `${sockets.length} connections`;
  },
};
