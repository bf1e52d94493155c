/**
 * The bytes of a request's body into text: Content-Type, Content-Encoding, the bound, UTF-8. The bound holds
 * while a body arrives and while it unpacks, so that a small compressed body can't fill the memory.
 */
import { promisify } from "node:util";
import { gunzip, zstdDecompress } from "node:zlib";
import pLimit from "p-limit";
import { Problem } from "../problem.ts";
import { Refused } from "./parameters.ts";
import { bodyArrived } from "./request-input.ts";

/** The most bytes that a body may have, after decompression. */
export const MAX_BODY_BYTES = 32 * 1024 * 1024;

type Unpack = (
  packed: Uint8Array,
  options: { maxOutputLength: number; chunkSize: number },
) => Promise<Uint8Array>;

/** By their Content-Encoding. */
const UNPACKERS: Readonly<Record<string, Unpack>> = {
  gzip: promisify(gunzip),
  zstd: promisify(zstdDecompress),
};
/** Half of it is wasted at most, and a bomb takes a quarter of the time that it takes in zlib's 16 KiB. */
const UNPACKED_CHUNK_BYTES = 128 * 1024;
/**
 * Packed bodies that are whole are unpacked two at a time: a hundred bombs at once fill no memory, and who sends slowly
 * keeps nobody waiting.
 */
const unpacking = pLimit(2);

// ignoreBOM keeps a byte order mark in the text, where JSON.parse refuses it: a BOM is no JSON.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads a whole body as text.
 * @param required false: an empty body is "", whatever its Content-Type.
 * @returns the text, or what is wrong with the body.
 * @throws Problem payload_too_large past `maxBytes` (after decompression).
 */
export async function readText(
  request: Request,
  required: boolean,
  maxBytes: number,
): Promise<string | Refused> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const encoding = (request.headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  const bytes = await unpacked(request, encoding, maxBytes);
  bodyArrived(request);
  if (bytes instanceof Refused) return bytes;
  if (bytes.byteLength === 0) return required ? new Refused("is required") : "";
  const wrongType = contentTypeFault(request.headers.get("content-type"));
  if (wrongType !== null) return new Refused(wrongType);
  try {
    return utf8.decode(bytes);
  } catch {
    return new Refused("is not UTF-8");
  }
}

/** The `detail` of a 413 whose reason is the bound of every body. */
export function tooLargeDetail(maxBytes: number): string {
  return `the body is larger than ${maxBytes} bytes`;
}

function tooLarge(maxBytes: number): Problem {
  // The rest of the body is never read, so the connection can't carry another request.
  return new Problem("payload_too_large", tooLargeDetail(maxBytes), {
    headers: { connection: "close" },
  });
}

function contentTypeFault(header: string | null): string | null {
  const [type = "", ...parameters] = (header ?? "").split(";").map((part) => part.trim().toLowerCase());
  if (type !== "application/json") return "Content-Type must be application/json";
  for (const parameter of parameters) {
    if (!/^(|charset="?utf-8"?)$/.test(parameter))
      return "Content-Type may carry charset=utf-8 and nothing else";
  }
  return null;
}

async function unpacked(request: Request, encoding: string, maxBytes: number): Promise<Uint8Array | Refused> {
  if (encoding === "identity" || encoding === "") return await arrived(request, maxBytes);
  const unpack = Object.hasOwn(UNPACKERS, encoding) ? UNPACKERS[encoding] : undefined;
  if (unpack === undefined) return new Refused("Content-Encoding must be gzip, zstd or absent");
  const packed = await arrived(request, maxBytes);
  if (packed instanceof Refused || packed.byteLength === 0) return packed;
  const options = { maxOutputLength: maxBytes, chunkSize: Math.min(maxBytes, UNPACKED_CHUNK_BYTES) };
  try {
    return await unpacking(() => unpack(packed, options));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE")
      throw tooLarge(maxBytes);
    return new Refused(`is not valid ${encoding}`);
  }
}

/** The bytes as they were sent; past the bound they are refused while they arrive. */
async function arrived(request: Request, maxBytes: number): Promise<Uint8Array | Refused> {
  try {
    // With a length that was announced and checked, one call; else as it comes, counting.
    if (request.headers.has("content-length")) return await request.bytes();
    return request.body === null ? new Uint8Array() : await collect(chunks(request.body), maxBytes);
  } catch (error) {
    if (error instanceof Problem) throw error;
    return new Refused("broke off");
  }
}

async function* chunks(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // Not awaited: after a refusal nobody waits for the rest to be dropped.
    reader.cancel().catch(() => {});
  }
}

async function collect(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of source) {
    total += chunk.byteLength;
    if (total > maxBytes) throw tooLarge(maxBytes);
    parts.push(chunk);
  }
  return Buffer.concat(parts, total);
}
