/** Reading a stream: nothing is handed on that wasn't found whole. */
import {
  type BlockHead,
  FORMAT,
  firstLink,
  nextLink,
  readBlockLine,
  readEnd,
  readHeader,
  type StreamEnd,
  type StreamHeader,
  sha256,
} from "./format.ts";

/** A stream that can't be used; the message says why and where, in one line. */
export class StreamRefused extends Error {
  override readonly name = "StreamRefused";
}

/** Longer is no line of ours. */
const LONGEST_LINE = 1 << 20;
const NEWLINE = 10;

/** Rows of one table that were found whole. */
export interface Block extends BlockHead {
  /** Lines of JSON. */
  readonly lines: Uint8Array;
}

/** Takes lines and counted bytes off a stream of chunks. */
class Source {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #held: Uint8Array = new Uint8Array();

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#chunks = bytes[Symbol.asyncIterator]();
  }

  async #more(): Promise<Uint8Array | null> {
    const next = await this.#chunks.next();
    return next.done === true ? null : next.value;
  }

  /** The next line without its newline; null at the end, and where what is left has none. */
  async line(): Promise<string | null> {
    let searched = 0;
    for (;;) {
      const at = this.#held.indexOf(NEWLINE, searched);
      if (at >= 0) {
        const line = Buffer.from(this.#held.subarray(0, at)).toString("utf8");
        this.#held = this.#held.subarray(at + 1);
        return line;
      }
      searched = this.#held.length;
      const chunk = searched > LONGEST_LINE ? null : await this.#more();
      if (chunk === null) return null;
      this.#held = Buffer.concat([this.#held, chunk]);
    }
  }

  /** So many bytes; null where there are fewer. */
  async take(count: number): Promise<Uint8Array | null> {
    const parts = [this.#held];
    let have = this.#held.length;
    while (have < count) {
      const chunk = await this.#more();
      if (chunk === null) return null;
      parts.push(chunk);
      have += chunk.length;
    }
    const all = parts.length === 1 ? this.#held : Buffer.concat(parts, have);
    this.#held = all.subarray(count);
    return all.subarray(0, count);
  }

  async atEnd(): Promise<boolean> {
    if (this.#held.length > 0) return false;
    const chunk = await this.#more();
    if (chunk === null) return true;
    this.#held = chunk;
    return false;
  }
}

function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

/** A stream that has been opened: its header was read. */
export class StreamReader {
  readonly #source: Source;
  readonly #headerSha256: string;
  readonly #read = new Map<string, number>();
  readonly header: StreamHeader;
  /** How far it has been read, in words. */
  #place = "behind its header";
  #link: string;
  #blocks = 0;
  #end: StreamEnd | null = null;

  private constructor(source: Source, header: StreamHeader, headerSha256: string) {
    this.#source = source;
    this.header = header;
    this.#headerSha256 = headerSha256;
    this.#link = firstLink(header);
  }

  /**
   * Reads the header.
   * @param bytes of NDJSON, decompressed
   * @param newestSchema the newest migration that this Tally knows
   * @throws {StreamRefused} when it is no export, or a newer Tally's
   */
  static async open(bytes: AsyncIterable<Uint8Array>, newestSchema: number): Promise<StreamReader> {
    const source = new Source(bytes);
    const line = await source.line().catch((error: unknown) => damaged("at its very beginning", error));
    const header = line === null ? null : readHeader(line);
    if (line === null || header === null)
      throw new StreamRefused("this is no export of Tally, or damaged at its very beginning");
    if (header.format > FORMAT || header.schema > newestSchema) {
      throw new StreamRefused(
        `the stream was made by a newer Tally (${header.madeBy}, format ${header.format}, schema ${header.schema}): ` +
          `this one reads up to format ${FORMAT}, schema ${newestSchema}`,
      );
    }
    return new StreamReader(source, header, sha256(line));
  }

  /** What the stream says of its tables; there is an end once `blocks` is through. */
  get end(): StreamEnd {
    if (this.#end === null) throw new Error("the stream hasn't been read to its end");
    return this.#end;
  }

  /**
   * Every block, each found whole before it is handed on.
   * @throws {StreamRefused} naming the place where the stream is damaged or ends too early
   */
  async *blocks(): AsyncGenerator<Block> {
    for (;;) {
      const line = await this.#line();
      const head = readBlockLine(line);
      if (head === null) return await this.#finish(line);
      yield await this.#block(head);
    }
  }

  async #line(): Promise<string> {
    const line = await this.#source.line().catch((error: unknown) => damaged(this.#place, error));
    if (line === null)
      throw new StreamRefused(`the stream ends or is damaged ${this.#place}: it is not whole`);
    return line;
  }

  async #block(head: BlockHead): Promise<Block> {
    const { block, table, rows, bytes } = head;
    const sofar = this.#read.get(table) ?? 0;
    const place = `in block ${block} (table ${table}, behind row ${sofar})`;
    if (block !== this.#blocks + 1 || !this.header.tables.some(({ name }) => name === table))
      return damaged(this.#place);
    const lines = await this.#source.take(bytes).catch((error: unknown) => damaged(place, error));
    if (lines === null) throw new StreamRefused(`the stream ends or is damaged ${place}: it is not whole`);
    const link = nextLink(this.#link, table, lines);
    if (link !== head.sha256 || lines.at(-1) !== NEWLINE || countLines(lines) !== rows) return damaged(place);
    this.#link = link;
    this.#blocks = block;
    this.#read.set(table, sofar + rows);
    this.#place = `behind block ${block} (table ${table}, row ${sofar + rows})`;
    return { ...head, lines };
  }

  async #finish(line: string): Promise<void> {
    const end = readEnd(line);
    if (end === null) return damaged(this.#place);
    const unsigned: Record<string, unknown> = JSON.parse(line);
    delete unsigned.sha256;
    const whole =
      end.sha256 === sha256(this.#link, JSON.stringify(unsigned)) &&
      end.blocks === this.#blocks &&
      end.headerSha256 === this.#headerSha256 &&
      end.tables.size === this.header.tables.length &&
      this.header.tables.every(
        ({ name, rows }) => end.tables.get(name)?.rows === rows && (this.#read.get(name) ?? 0) === rows,
      );
    if (!whole) return damaged("in its header or its last line");
    if (!(await this.#source.atEnd().catch(() => false))) return damaged("behind its last line");
    this.#end = end;
  }
}

function damaged(place: string, cause?: unknown): never {
  const why = cause instanceof Error ? ` (${cause.message})` : "";
  throw new StreamRefused(`the stream is damaged ${place}${why}`, { cause });
}
