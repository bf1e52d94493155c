/** Answers that don't fit into the server's buffer: they come as a stream, and must be what the smaller ones are. */
import { afterAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { largeText, smallApp } from "./small-app.ts";

const app = smallApp();
afterAll(() => app.stop());

/** Sends a request as it is. @returns what came, piece by piece, until the server closed or `enough` says so */
function raw(
  text: string,
  enough: (received: Buffer) => boolean,
  pauseMs = 0,
  port = app.port,
): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    const pieces: Buffer[] = [];
    const end = () => {
      socket.destroy();
      resolve(pieces);
    };
    socket.on("data", (piece: Buffer) => {
      pieces.push(piece);
      if (enough(Buffer.concat(pieces))) return end();
      if (pieces.length > 1) return;
      socket.pause();
      setTimeout(() => socket.resume(), pauseMs);
    });
    socket.on("end", end);
    socket.on("error", reject);
  });
}

function parted(received: Buffer): { head: string; body: Buffer } {
  const at = received.indexOf("\r\n\r\n");
  return { head: received.subarray(0, at).toString(), body: received.subarray(at + 4) };
}

// Around the bound of ours, around that of the server, and far beyond what a socket's buffers hold.
const sizes = [100, 4_095, 4_096, 4_097, 12_000, 16_384, 17_000, 70_000, 1_000_000, 8_000_000];

describe.each(sizes)("an answer of %d characters", (characters) => {
  const path = `/large?characters=${characters}`;
  const text = largeText(characters);
  const never = () => false;

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
    const { head, body } = parted(Buffer.concat(await raw(`GET ${path} HTTP/1.0\r\n\r\n`, never)));
    expect(head).toStartWith("HTTP/1.1 200 OK");
    expect(head.toLowerCase()).not.toContain("transfer-encoding");
    expect(body.toString() === text).toBe(true);
  });

  // A head may be cut where a socket's buffer ends, which is behind it unless that is nearly full.
  test.if(characters < 100_000)("comes with its whole head in the first piece", async () => {
    expect(await brokenHeads(path)).toBe("0");
  });

  test("reaches a reader that pauses", async () => {
    const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
    const received = Buffer.concat(await raw(request, never, 300));
    const { head, body } = parted(received);
    const whole = /transfer-encoding: chunked/i.test(head) ? unchunked(body) : body;
    expect(whole.toString() === text).toBe(true);
  });

  test("leaves the connection to the next request", async () => {
    const socket = connect(app.port, "127.0.0.1");
    let received = Buffer.alloc(0);
    let arrived = () => {};
    socket.on("data", (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
      arrived();
    });
    for (let n = 0; n < 3; n++) {
      received = Buffer.alloc(0);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      for (let whole = false; !whole; ) {
        await new Promise<void>((resolve) => {
          arrived = resolve;
        });
        const { head, body } = parted(received);
        const chunked = /transfer-encoding: chunked/i.test(head);
        whole = chunked
          ? body.toString().endsWith("\r\n0\r\n\r\n")
          : body.byteLength === Buffer.byteLength(text);
        if (whole) expect((chunked ? unchunked(body) : body).toString() === text).toBe(true);
      }
    }
    socket.destroy();
  });

  test("is let out by an orderly stop", async () => {
    const other = smallApp();
    const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
    const received = raw(request, never, 150, other.port);
    await Bun.sleep(100);
    await other.stop();
    const { head, body } = parted(Buffer.concat(await received));
    const whole = /transfer-encoding: chunked/i.test(head) ? unchunked(body) : body;
    expect(whole.toString() === text).toBe(true);
  });
});

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
