/**
 * Reading JSON text by position. Numbers never pass through a JavaScript number on their way to the database:
 * what is stored is cut out of the request's own text, so every digit survives.
 *
 * All functions expect text that `JSON.parse` has accepted, and therefore check no syntax.
 */

import { decimalOf, growthOf } from "./decimal.ts";

/** A half-open range [start, end) of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const MINUS = 0x2d;

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function skipSpace(text: string, from: number): number {
  let i = from;
  while (isSpace(text.charCodeAt(i))) i++;
  return i;
}

/** How many backslashes stand directly before `at`. An odd count escapes the character at `at`. */
function backslashesBefore(text: string, at: number): number {
  let i = at;
  while (i > 0 && text.charCodeAt(i - 1) === BACKSLASH) i--;
  return at - i;
}

/** `at` is an opening quote; gives the position after the closing one. */
function stringEnd(text: string, at: number): number {
  let end = text.indexOf('"', at + 1);
  while (text.charCodeAt(end - 1) === BACKSLASH && backslashesBefore(text, end) % 2 === 1) {
    end = text.indexOf('"', end + 1);
  }
  return end + 1;
}

/** The end of the number, `true`, `false` or `null` that starts at `at`. */
function literalEnd(text: string, at: number): number {
  let i = at + 1;
  while (i < text.length) {
    const code = text.charCodeAt(i);
    if (code === COMMA || code === BRACE_CLOSE || code === BRACKET_CLOSE || isSpace(code)) break;
    i++;
  }
  return i;
}

/** Where the value that starts at `at` ends. */
export function valueEnd(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return stringEnd(text, at);
  if (first !== BRACE_OPEN && first !== BRACKET_OPEN) return literalEnd(text, at);
  let depth = 0;
  let i = at;
  for (;;) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      i = stringEnd(text, i);
      continue;
    }
    if (code === BRACE_OPEN || code === BRACKET_OPEN) depth++;
    else if (code === BRACE_CLOSE || code === BRACKET_CLOSE) {
      depth--;
      if (depth === 0) return i + 1;
    }
    i++;
  }
}

/** The key that stands at `at` (an opening quote), decoded, `end` being the position after it. */
function keyAt(text: string, at: number, end: number): string {
  const raw = text.slice(at + 1, end - 1);
  return raw.includes("\\") ? String(JSON.parse(`"${raw}"`)) : raw;
}

/**
 * The members of the object that starts at `at`. Where a key stands twice, the last one counts, as it does for
 * `JSON.parse` and for the database.
 */
export function membersOf(
  text: string,
  at: number,
): { readonly members: Map<string, Span>; readonly end: number } {
  const members = new Map<string, Span>();
  let i = skipSpace(text, at + 1);
  while (text.charCodeAt(i) !== BRACE_CLOSE) {
    const keyEnd = stringEnd(text, i);
    const key = keyAt(text, i, keyEnd);
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = valueEnd(text, start);
    members.set(key, { start, end });
    i = skipSpace(text, end);
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1);
  }
  return { members, end: i + 1 };
}

/** The elements of the array that starts at `at`. */
export function elementsOf(text: string, at: number): Span[] {
  const elements: Span[] = [];
  let i = skipSpace(text, at + 1);
  while (text.charCodeAt(i) !== BRACKET_CLOSE) {
    const end = valueEnd(text, i);
    elements.push({ start: i, end });
    i = skipSpace(text, end);
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1);
  }
  return elements;
}

/** The items of a request body: the elements of an array, or the one value that it is. */
export function itemsOf(text: string): Span[] {
  const start = skipSpace(text, 0);
  if (text.charCodeAt(start) === BRACKET_OPEN) return elementsOf(text, start);
  return [{ start, end: valueEnd(text, start) }];
}

/** What makes a text need escapes as JSON; a lone surrogate never gets here. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them unescaped
const NEEDS_ESCAPES = /["\\\u0000-\u001f]/;

/** `JSON.stringify` for texts that are Unicode, which nearly never hold anything to escape. */
export function quote(text: string): string {
  return NEEDS_ESCAPES.test(text) ? JSON.stringify(text) : `"${text}"`;
}

/** The value of one member of an object's text, or null where it is absent or JSON's null. */
export function memberText(text: string, name: string): string | null {
  const span = membersOf(text, skipSpace(text, 0)).members.get(name);
  if (span === undefined) return null;
  const value = text.slice(span.start, span.end);
  return value === "null" ? null : value;
}

/** Positions of the `\u0000` escapes; an escaped backslash before `u0000` is none. */
function nulEscapes(text: string): number[] {
  const found: number[] = [];
  let at = text.indexOf("\\u0000");
  while (at !== -1) {
    if (backslashesBefore(text, at) % 2 === 0) found.push(at);
    at = text.indexOf("\\u0000", at + 1);
  }
  return found;
}

/** Whether a string or key of the JSON text holds a NUL character. */
export function hasNul(text: string): boolean {
  return nulEscapes(text).length > 0;
}

/** The JSON text without its NUL characters. */
export function scrubNul(text: string): string {
  let out = "";
  let from = 0;
  for (const at of nulEscapes(text)) {
    out += text.slice(from, at);
    from = at + 6;
  }
  return from === 0 ? text : out + text.slice(from);
}

/** What the database would make of an item: how deep it nests, and how its numbers come out. */
export interface Measure {
  /** Levels of containers, the item's own being 1. */
  readonly depth: number;
  /** A number that `numeric` can't hold, cut to 40 characters; null where all fit. */
  readonly overflow: string | null;
  /** Characters that the numbers grow by when exponents are spelled out (`1e9` → `1000000000`). */
  readonly growth: number;
  /** The value of the item's member `payload`; null where there is none. */
  readonly payload: Span | null;
  /** The value of the payload's member `size`; null where there is none. */
  readonly size: Span | null;
}

/** Measures a value's text in one pass. Of members that stand twice the last one counts. */
export function measure(text: string): Measure {
  let depth = 0;
  let deepest = 0;
  let overflow: string | null = null;
  let growth = 0;
  let payload: Span | null = null;
  let size: Span | null = null;
  /** How deep inside the members are that are looked at: 1 in the item, 2 in its payload, 0 anywhere else. */
  let wanted = 0;
  /** Whether a string that stands here is a key. */
  let atKey = false;
  let payloadFrom = -1;
  let sizeFrom = -1;
  let i = 0;
  /** A member of the item or of its payload ends at `i`. */
  const memberEnds = () => {
    if (depth === 2 && sizeFrom >= 0) {
      size = { start: sizeFrom, end: spaceBefore(text, i) };
      sizeFrom = -1;
    } else if (depth === 1 && payloadFrom >= 0) {
      payload = { start: payloadFrom, end: spaceBefore(text, i) };
      payloadFrom = -1;
    }
  };
  while (i < text.length) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = stringEnd(text, i);
      if (atKey && depth === wanted) {
        const name = depth === 1 ? "payload" : "size";
        const isNamed = keyIs(text, i, end, name);
        i = skipSpace(text, skipSpace(text, end) + 1);
        if (isNamed && depth === 1) {
          payloadFrom = i;
          size = null;
        } else if (isNamed) sizeFrom = i;
        atKey = false;
      } else i = end;
      continue;
    }
    if (code === BRACE_OPEN || code === BRACKET_OPEN) {
      depth++;
      if (depth > deepest) deepest = depth;
      if (code === BRACE_OPEN && (depth === 1 || (depth === 2 && i === payloadFrom))) {
        wanted = depth;
        atKey = true;
      }
    } else if (code === BRACE_CLOSE || code === BRACKET_CLOSE) {
      if (depth === wanted) {
        memberEnds();
        wanted--;
        atKey = false;
      }
      depth--;
    } else if (code === COMMA) {
      if (depth === wanted) {
        memberEnds();
        atKey = true;
      }
    } else if (isDigit(code) || code === MINUS) {
      const numberEnd = literalEnd(text, i);
      // Only an exponent or sheer length can carry a number past the bounds.
      if (numberEnd - i > 1_000 || hasExponent(text, i, numberEnd)) {
        const number = text.slice(i, numberEnd);
        const grown = growthOf(number);
        if (grown === null) overflow ??= number.slice(0, 40);
        else growth += grown;
      }
      i = numberEnd;
      continue;
    }
    i++;
  }
  return { depth: deepest, overflow, growth, payload, size };
}

/** Where the white space before `at` begins. */
function spaceBefore(text: string, at: number): number {
  let i = at;
  while (isSpace(text.charCodeAt(i - 1))) i--;
  return i;
}

/** Whether the key between the quotes at `at` and before `end` reads `name`. */
function keyIs(text: string, at: number, end: number, name: string): boolean {
  const length = end - at - 2;
  if (length === name.length) return text.startsWith(name, at + 1);
  return length > name.length && keyAt(text, at, end) === name;
}

function hasExponent(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x65 || code === 0x45) return true;
  }
  return false;
}

function canonicalValue(text: string, at: number, end: number): string {
  const first = text.charCodeAt(at);
  if (first === BRACE_OPEN) {
    const members = [...membersOf(text, at).members].map(
      ([key, span]) => [JSON.stringify(key), canonicalValue(text, span.start, span.end)] as const,
    );
    members.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, value]) => `${key}:${value}`).join(",")}}`;
  }
  if (first === BRACKET_OPEN) {
    return `[${elementsOf(text, at)
      .map((span) => canonicalValue(text, span.start, span.end))
      .join(",")}]`;
  }
  const raw = text.slice(at, end);
  if (first === QUOTE) return raw.includes("\\") ? JSON.stringify(JSON.parse(raw)) : raw;
  if (isDigit(first) || first === MINUS) {
    const { negative, digits, point } = decimalOf(raw);
    return digits === "" ? "0" : `${negative ? "-" : ""}0.${digits}e${point}`;
  }
  return raw;
}

const canonicals = new Map<string, string>();
const CANONICALS_KEPT = 4_096;

/**
 * One text for all texts of equal value: members sorted, white space gone, numbers compared as the numbers they
 * are with every digit (`1` = `1.0` = `10e-1`, but 12345678901234567890 ≠ 12345678901234567891).
 */
export function canonicalJson(text: string): string {
  const known = canonicals.get(text);
  if (known !== undefined) return known;
  const start = skipSpace(text, 0);
  const canonical = canonicalValue(text, start, valueEnd(text, start));
  // Fleets know few sizes, so the same texts come again and again. A long one is not worth its room.
  if (text.length <= 512) {
    if (canonicals.size >= CANONICALS_KEPT) canonicals.clear();
    canonicals.set(text, canonical);
  }
  return canonical;
}
