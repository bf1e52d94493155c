/** Answers that don't fit into the server's buffer: they come as a stream, and must be what the smaller ones are. */
import { afterAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { largeText, smallApp } from "./small-app.ts";

const app = smallApp();
afterAll(() => app.stop());

interface Received {
  readonly head: string;
  /** The body's content, whether it came in chunks or not. */
  readonly content: Buffer;
}

/** What came over a connection that the server has ended, or null while an answer isn't whole. */
function answerIn(received: Buffer): Received | null {
  const at = received.indexOf("\r\n\r\n");
  const head = received.subarray(0, at).toString();
  const body = received.subarray(at + 4);
  if (/transfer-encoding: chunked/i.test(head)) {
    if (received.subarray(-7).toString() !== "\r\n0\r\n\r\n") return null;
    return { head, content: unchunked(body) };
  }
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? body.byteLength);
  return at === -1 || body.byteLength < length ? null : { head, content: body };
}

/** Sends a request as it is, and reads until the server closes, with a pause after the first piece. */
async function raw(port: number, request: string, pauseMs: number): Promise<Received> {
  const socket = connect(port, "127.0.0.1", () => socket.write(request));
  const pieces: Buffer[] = [];
  for await (const piece of socket) {
    pieces.push(piece);
    if (pieces.length === 1) await Bun.sleep(pauseMs);
  }
  const answer = answerIn(Buffer.concat(pieces));
  if (answer === null) throw new Error("the answer isn't whole");
  return answer;
}

// Around the bound of ours, around that of the server, and far beyond what a socket's buffers hold.
const sizes = [100, 4_095, 4_096, 4_097, 12_000, 16_384, 17_000, 70_000, 1_000_000, 8_000_000];
const shapes = ["characters", "characters in pieces"] as const;
const answers = sizes.flatMap((characters) => shapes.map((shape) => [characters, shape] as const));

function pathOf(characters: number, shape: (typeof shapes)[number]): string {
  return `/large?characters=${characters}${shape === "characters" ? "" : "&pieces"}`;
}

describe.each(answers)("an answer of %d %s", (characters, shape) => {
  const path = pathOf(characters, shape);
  const text = largeText(characters);
  const last = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

  test("is whole, and JSON", async () => {
    expect(text).toHaveLength(characters);
    const answer = await app.request(path);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(answer.headers.get("x-request-id")).toBeString();
    expect((await answer.text()) === text).toBe(true);
  });

  test("is as long as HEAD says", async () => {
    const head = await app.request(path, { method: "HEAD" });
    expect(head.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
  });

  test("is no chunks to HTTP/1.0, which knows none", async () => {
    const { head, content } = await raw(app.port, `GET ${path} HTTP/1.0\r\n\r\n`, 0);
    expect(head).toStartWith("HTTP/1.1 200 OK");
    expect(head.toLowerCase()).not.toContain("transfer-encoding");
    expect(content.toString() === text).toBe(true);
  });

  test("reaches a reader that pauses", async () => {
    const { content } = await raw(app.port, last, 300);
    expect(content.toString() === text).toBe(true);
  });

  test("leaves the connection to the next request", async () => {
    const socket = connect(app.port, "127.0.0.1");
    for (let n = 0; n < 3; n++) {
      const answered = Promise.withResolvers<Received>();
      const pieces: Buffer[] = [];
      const read = (piece: Buffer) => {
        pieces.push(piece);
        const answer = answerIn(Buffer.concat(pieces));
        if (answer !== null) answered.resolve(answer);
      };
      socket.on("data", read);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect((await answered.promise).content.toString() === text).toBe(true);
      socket.off("data", read);
    }
    socket.destroy();
  });

  test("is let out by an orderly stop", async () => {
    const other = smallApp();
    const received = raw(other.port, last, 150);
    await Bun.sleep(100);
    await other.stop();
    expect((await received).content.toString() === text).toBe(true);
  });
});

describe("an answer that is far larger than what a socket's buffers hold, when the server is stopped", () => {
  const path = pathOf(8_000_000, "characters in pieces");

  test("is let out to a reader that takes its time", async () => {
    const other = smallApp();
    const received = raw(other.port, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 1_500);
    await Bun.sleep(100);
    await other.stop();
    expect((await received).content.toString()).toHaveLength(8_000_000);
  });

  test("is cut off where a reader takes longer than the grace", async () => {
    const other = smallApp();
    const socket = connect(other.port, "127.0.0.1", () => {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    });
    socket.on("error", () => {});
    socket.pause();
    await Bun.sleep(100);
    const start = performance.now();
    await other.stop(0.5);
    const took = performance.now() - start;
    expect(took).toBeGreaterThan(400);
    expect(took).toBeLessThan(2_000);
    socket.destroy();
  });
});

// A head may be cut where a socket's buffer ends, which is behind it unless that is nearly full.
test.each(answers.filter(([characters]) => characters < 100_000))(
  "an answer of %d %s comes with its whole head in the first piece",
  async (characters, shape) => {
    expect(await brokenHeads(pathOf(characters, shape))).toBe("0");
  },
);

/**
 * Asks forty times, from another process, which reads while the server writes.
 * @returns of how many answers the first piece held less than the head
 */
async function brokenHeads(path: string): Promise<string> {
  const client = `
    const { connect } = require("node:net");
    let broken = 0;
    for (let n = 0; n < 40; n++) {
      const first = await new Promise((resolve, reject) => {
        const socket = connect(${app.port}, "127.0.0.1", () => socket.write("GET ${path} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"));
        socket.on("data", (piece) => { socket.destroy(); resolve(piece); });
        socket.on("error", reject);
      });
      if (!first.includes("\\r\\n\\r\\n")) broken++;
    }
    console.log(broken);`;
  const child = Bun.spawn([process.execPath, "-e", client], { stdout: "pipe", stderr: "pipe" });
  const [out, said] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(said);
  return out.trim();
}

/** The content of a chunked body (RFC 9112, 7.1); it must be ended. */
function unchunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = body.indexOf("\r\n", at);
    const length = Number.parseInt(body.subarray(at, line).toString(), 16);
    if (length === 0) return Buffer.concat(parts);
    if (!(length > 0)) throw new Error(`no chunk at ${at}`);
    parts.push(body.subarray(line + 2, line + 2 + length));
    at = line + 2 + length + 2;
  }
}
