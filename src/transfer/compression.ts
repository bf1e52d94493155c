/** zstd, a block at a time, and its undoing. */
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream";
import { createZstdDecompress } from "node:zlib";

/** Blocks that are compressed at once, on other threads than this one. */
const AT_ONCE = 2;
const LEVEL = 3;
/** How a zstd frame begins. */
const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];

/** Compresses each part to a frame of its own, in their order. */
export async function* compressed(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const waiting: Promise<Uint8Array>[] = [];
  for await (const part of parts) {
    const frame = Bun.zstdCompress(part, { level: LEVEL });
    // Whoever waits for it hears of its failure; nobody else must.
    frame.catch(() => {});
    waiting.push(frame);
    if (waiting.length >= AT_ONCE) yield await first(waiting);
  }
  while (waiting.length > 0) yield await first(waiting);
}

async function first(waiting: Promise<Uint8Array>[]): Promise<Uint8Array> {
  const frame = waiting.shift();
  if (frame === undefined) throw new Error("nothing is being compressed");
  return await frame;
}

/** A stream's bytes, as they are needed: of a file, or of an open descriptor (0: standard input). */
export function bytesOf(source: string | number): AsyncIterable<Uint8Array> {
  const options = { highWaterMark: 1 << 18 };
  if (typeof source === "string") return createReadStream(source, options);
  return createReadStream("", { ...options, fd: source, autoClose: false });
}

/**
 * Decompresses bytes that begin as zstd does, and passes any others on as they are: a stream that was unpacked, or
 * is none at all.
 */
export async function* decompressed(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = bytes[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < MAGIC.length) {
    const next = await source.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  const whole = (async function* () {
    yield head;
    for (;;) {
      const next = await source.next();
      if (next.done === true) return;
      yield next.value;
    }
  })();
  if (!MAGIC.every((byte, at) => head[at] === byte)) {
    yield* whole;
    return;
  }
  const unpacking = createZstdDecompress();
  // A failure of either end reaches the reader below.
  pipeline(whole, unpacking, () => {});
  yield* unpacking;
}
