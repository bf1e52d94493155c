/**
 * Rows in two spellings: lines of PostgreSQL's COPY text format, and lines of JSON, each an array of the row's
 * values. A `jsonb` value is the JSON that the database wrote, digit for digit; any other value is a string that
 * holds the database's own text for it; NULL is null. (A `jsonb` column that holds JSON's null would come back as
 * NULL: Tally stores none.)
 *
 * Years of events pass through here, byte by byte and never as JavaScript values.
 */
import type { Column } from "./tables.ts";

const TAB = 9;
const NEWLINE = 10;
const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const OPEN = 91;
const CLOSE = 93;
const CAPITAL_N = 78;
/** What COPY writes behind a backslash for a control character, and the character. */
const COPY_ESCAPES: Readonly<Record<number, number>> = { 98: 8, 102: 12, 110: 10, 114: 13, 116: 9, 118: 11 };
const HEX = "0123456789abcdef";
/** A byte becomes six at most: `\u001f`. */
const LONGEST_ESCAPE = 6;

/** 1 for the bytes that can't be taken over as they are. */
function marked(...bytes: readonly number[]): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of bytes) table[byte] = 1;
  return table;
}

const CONTROLS = Array.from({ length: 32 }, (_, byte) => byte);
const SPECIAL_IN_TEXT = marked(...CONTROLS, QUOTE, BACKSLASH);
const SPECIAL_IN_JSON = marked(TAB, NEWLINE, BACKSLASH);

/** Whether a column's values stand in a line as JSON of their own. */
function isJson({ type }: Column): boolean {
  return type === "jsonb";
}

/** Rows that were written since the last `take`. */
export interface Lines {
  /** Lines of JSON, each with its newline. */
  readonly bytes: Uint8Array;
  readonly rows: number;
  /** The sum, modulo 2^64, of the rows' xxHash64 (without the newline): the same for the same rows in any order. */
  readonly sum: bigint;
}

/**
 * Turns what `COPY … TO STDOUT` sends into lines of JSON, cut into blocks. Where a block ends depends on the rows
 * alone, not on the chunks that they came in.
 */
export class LinesFromCopy {
  readonly #json: readonly boolean[];
  readonly #rowsABlock: number;
  readonly #bytesABlock: number;
  #out = new Uint8Array(1 << 16);
  #end = 0;
  #rowStart = 0;
  #valueStart = 0;
  #column = -1;
  #escaped = false;
  #null = false;
  #rows = 0;
  #sum = 0n;

  constructor(columns: readonly Column[], rowsABlock: number, bytesABlock: number) {
    this.#json = columns.map(isJson);
    this.#rowsABlock = rowsABlock;
    this.#bytesABlock = bytesABlock;
  }

  /** Takes the next chunk; gives the blocks that it filled. */
  push(chunk: Uint8Array): Lines[] {
    const full: Lines[] = [];
    this.#reserve(chunk.length * LONGEST_ESCAPE + 16);
    let at = 0;
    while (at < chunk.length) {
      if (this.#column < 0) this.#startRow();
      const json = this.#json[this.#column] === true;
      if (!this.#escaped) at = this.#copyRun(chunk, at, json ? SPECIAL_IN_JSON : SPECIAL_IN_TEXT);
      const byte = chunk[at++];
      if (byte === undefined) break;
      if (this.#escaped) this.#unescape(byte, json);
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === TAB) this.#nextValue(json);
      else if (byte === NEWLINE) {
        this.#endRow(json);
        if (this.#rows >= this.#rowsABlock || this.#end >= this.#bytesABlock) {
          full.push(this.#take());
          this.#reserve((chunk.length - at) * LONGEST_ESCAPE + 16);
        }
      } else this.#character(byte);
    }
    return full;
  }

  /** The rest, once the server has sent all; null where there is none. */
  end(): Lines | null {
    if (this.#column >= 0) throw new Error("the server's COPY ended within a row");
    return this.#rows === 0 ? null : this.#take();
  }

  /** Empty values and brackets may need more room than their bytes: each is paid for by its own separator. */
  #reserve(bytes: number): void {
    if (this.#out.length - this.#end >= bytes) return;
    const grown = new Uint8Array(Math.max(this.#out.length * 2, this.#end + bytes));
    grown.set(this.#out.subarray(0, this.#end));
    this.#out = grown;
  }

  #copyRun(chunk: Uint8Array, from: number, special: Uint8Array): number {
    const out = this.#out;
    let end = this.#end;
    let at = from;
    for (; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0;
      if (special[byte] === 1) break;
      out[end++] = byte;
    }
    this.#end = end;
    return at;
  }

  #put(byte: number): void {
    this.#out[this.#end++] = byte;
  }

  #startRow(): void {
    this.#rowStart = this.#end;
    this.#put(OPEN);
    this.#column = 0;
    this.#startValue();
  }

  #startValue(): void {
    this.#valueStart = this.#end;
    this.#null = false;
    if (this.#json[this.#column] !== true) this.#put(QUOTE);
  }

  #endValue(json: boolean): void {
    if (this.#null) {
      this.#end = this.#valueStart;
      for (const byte of [110, 117, 108, 108]) this.#put(byte);
    } else if (!json) this.#put(QUOTE);
  }

  #nextValue(json: boolean): void {
    this.#endValue(json);
    this.#put(COMMA);
    this.#column++;
    this.#startValue();
  }

  #endRow(json: boolean): void {
    this.#endValue(json);
    this.#put(CLOSE);
    this.#sum += Bun.hash.xxHash64(this.#out.subarray(this.#rowStart, this.#end));
    this.#put(NEWLINE);
    this.#rows++;
    this.#column = -1;
  }

  /** A byte of a text that JSON wants escaped. */
  #character(byte: number): void {
    this.#put(BACKSLASH);
    const short = byte === QUOTE || byte === BACKSLASH;
    const written = short ? String.fromCharCode(byte) : `u00${HEX[byte >> 4]}${HEX[byte & 15]}`;
    for (const letter of written) this.#put(letter.charCodeAt(0));
  }

  #unescape(byte: number, json: boolean): void {
    this.#escaped = false;
    if (byte === CAPITAL_N) {
      this.#null = true;
      return;
    }
    const meant = COPY_ESCAPES[byte] ?? byte;
    if (!json && SPECIAL_IN_TEXT[meant] === 1) this.#character(meant);
    else this.#put(meant);
  }

  #take(): Lines {
    const lines = {
      bytes: this.#out.slice(0, this.#end),
      rows: this.#rows,
      sum: BigInt.asUintN(64, this.#sum),
    };
    this.#end = 0;
    this.#rows = 0;
    this.#sum = 0n;
    return lines;
  }
}

/** A line that is no row of the table. */
export class LineFault extends Error {
  override readonly name = "LineFault";

  /** @param line which one, from 1 */
  constructor(readonly line: number) {
    super(`line ${line} is no row of its table`);
  }
}

const DECODER = new TextDecoder("utf-8", { fatal: true });
const ENCODER = new TextEncoder();

/**
 * Turns lines of JSON into what `COPY … FROM STDIN` takes.
 * @throws {LineFault} for a line that is no array of the columns' values
 */
export function copyFromLines(lines: Uint8Array, columns: readonly Column[]): Uint8Array {
  const json = columns.map(isJson);
  const text = new CopyText(lines);
  let line = 1;
  while (!text.done) {
    for (const [at, raw] of json.entries()) {
      const separator = at === 0 ? OPEN : COMMA;
      if (!text.skip(separator)) throw new LineFault(line);
      if (at > 0) text.put(TAB);
      if (!(text.nothing() || (raw ? text.json() : text.string()))) throw new LineFault(line);
    }
    if (!text.skip(CLOSE) || !text.skip(NEWLINE)) throw new LineFault(line);
    text.put(NEWLINE);
    line++;
  }
  return text.bytes();
}

/** A cursor over lines of JSON, and the COPY text that comes of them. */
class CopyText {
  readonly #in: Uint8Array;
  /** Every backslash may become two. */
  #out: Uint8Array;
  #at = 0;
  #end = 0;

  constructor(lines: Uint8Array) {
    this.#in = lines;
    this.#out = new Uint8Array(lines.length * 2 + 16);
  }

  get done(): boolean {
    return this.#at >= this.#in.length;
  }

  bytes(): Uint8Array {
    return this.#out.subarray(0, this.#end);
  }

  put(byte: number): void {
    this.#out[this.#end++] = byte;
  }

  skip(byte: number): boolean {
    if (this.#in[this.#at] !== byte) return false;
    this.#at++;
    return true;
  }

  /** `null`. */
  nothing(): boolean {
    const at = this.#at;
    const bytes = this.#in;
    if (bytes[at] !== 110 || bytes[at + 1] !== 117 || bytes[at + 2] !== 108 || bytes[at + 3] !== 108)
      return false;
    this.#at += 4;
    this.put(BACKSLASH);
    this.put(CAPITAL_N);
    return true;
  }

  /** A string: its text. */
  string(): boolean {
    const bytes = this.#in;
    const start = this.#at;
    if (bytes[start] !== QUOTE) return false;
    let at = start + 1;
    const out = this.#out;
    let end = this.#end;
    for (;;) {
      const byte = bytes[at];
      if (byte === undefined || byte < 32) return false;
      if (byte === QUOTE) break;
      if (byte === BACKSLASH) return this.#escapedString(start);
      out[end++] = byte;
      at++;
    }
    this.#at = at + 1;
    this.#end = end;
    return true;
  }

  /** A string that JSON had to escape somewhere. */
  #escapedString(start: number): boolean {
    let at = start + 1;
    for (;;) {
      const byte = this.#in[at];
      if (byte === undefined || byte < 32) return false;
      if (byte === QUOTE) break;
      at += byte === BACKSLASH ? 2 : 1;
    }
    this.#at = at + 1;
    let value: unknown;
    try {
      value = JSON.parse(DECODER.decode(this.#in.subarray(start, at + 1)));
    } catch {
      return false;
    }
    if (typeof value !== "string") return false;
    const copied = value
      .replaceAll("\\", "\\\\")
      .replaceAll("\t", "\\t")
      .replaceAll("\n", "\\n")
      .replaceAll("\r", "\\r");
    this.#end += ENCODER.encodeInto(copied, this.#out.subarray(this.#end)).written;
    return true;
  }

  /** Any JSON, as it is: up to the comma or bracket that ends it. */
  json(): boolean {
    const bytes = this.#in;
    const out = this.#out;
    let end = this.#end;
    let at = this.#at;
    let depth = 0;
    let inString = false;
    for (; ; at++) {
      const byte = bytes[at];
      if (byte === undefined || byte < 32) return false;
      if (inString) {
        if (byte === BACKSLASH) {
          // The escaped byte can't end the string; both backslashes are doubled where there are two.
          out[end++] = BACKSLASH;
          out[end++] = BACKSLASH;
          const next = bytes[++at];
          if (next === undefined || next < 32) return false;
          if (next === BACKSLASH) out[end++] = BACKSLASH;
          out[end++] = next;
          continue;
        }
        if (byte === QUOTE) inString = false;
      } else if (byte === QUOTE) inString = true;
      else if (byte === OPEN || byte === 123) depth++;
      else if (byte === CLOSE || byte === 125) {
        if (depth === 0) break;
        depth--;
      } else if (byte === COMMA && depth === 0) break;
      out[end++] = byte;
    }
    if (at === this.#at) return false;
    this.#at = at;
    this.#end = end;
    return true;
  }
}
