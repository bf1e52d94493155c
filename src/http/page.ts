/**
 * Cursors. One holds a position in one list and nothing else: with other filters it means "these filters, from
 * there on". The text is base64url of `<checksum><list> NUL <part> NUL <part> …` — NUL separates, since no
 * stored string holds one. The checksum finds a cut or altered text; it is no signature, and need be none: a
 * position says nothing that the caller may not read.
 */
import { createHash } from "node:crypto";
import { EARLIEST, type Instant, instantFromMicros, LATEST } from "../event/instant.ts";
import type { Problem } from "../problem.ts";
import { refusal } from "./refusal.ts";

const CHECKSUM_BYTES = 6;
/** A position is at most three 512-byte parts and a name; anything longer was never one of ours. */
const MAX_LENGTH = 4_096;

/** Writes the cursor of a position. `position` holds no NUL, and is what the list's reader expects back. */
export function encodeCursor(list: string, position: readonly string[]): string {
  const content = Buffer.from([list, ...position].join("\0"));
  return Buffer.concat([checksum(content), content]).toString("base64url");
}

/**
 * Reads a cursor back.
 * @returns the position's parts, as texts: the list checks their number and meaning, and calls `cursorFault`.
 * @throws Problem validation at `query.cursor` for a text that is no cursor, was altered, or is another list's.
 */
export function decodeCursor(list: string, text: string): string[] {
  if (text.length > MAX_LENGTH || !/^[A-Za-z0-9_-]+$/.test(text)) throw cursorFault();
  const bytes = Buffer.from(text, "base64url");
  // More than one text decodes to the same bytes (spare bits at the end); only the one we wrote is ours.
  if (bytes.toString("base64url") !== text) throw cursorFault();
  const content = bytes.subarray(CHECKSUM_BYTES);
  if (!bytes.subarray(0, CHECKSUM_BYTES).equals(checksum(content))) throw cursorFault();
  const [name, ...position] = content.toString("utf8").split("\0");
  if (name !== list) throw cursorFault();
  return position;
}

/** What a cursor that isn't one is answered with. */
export function cursorFault(): Problem {
  return refusal([{ loc: "query.cursor", msg: "is not a cursor of this list" }]);
}

function checksum(content: Uint8Array): Buffer {
  return createHash("sha256").update(content).digest().subarray(0, CHECKSUM_BYTES);
}

/** Reads a cursor's parts; another number of them is no cursor of this list. */
export function positionOf(list: string, cursor: string, parts: number): string[] {
  const position = decodeCursor(list, cursor);
  if (position.length !== parts) throw cursorFault();
  return position;
}

/** Reads the part of a position that is an instant, in microseconds. */
export function instantOf(micros: string | undefined): Instant {
  if (micros === undefined || !/^(?:0|-?[1-9]\d{0,17})$/.test(micros)) throw cursorFault();
  const instant = instantFromMicros(micros);
  if (instant < EARLIEST || instant > LATEST) throw cursorFault();
  return instant;
}

/** Reads the part of a position that is a UUID, in lower case as the database writes it. */
export function uuidOf(text: string | undefined): string {
  if (text === undefined || !/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(text)) throw cursorFault();
  return text;
}

/** The position of a request's cursor; null for its first page. */
export function after<P>(cursor: string | undefined, position: (cursor: string) => P): P | null {
  return cursor === undefined ? null : position(cursor);
}
