/** Members of what a service answered, which may be anything. */
import { type Instant, parseInstant } from "../../event/instant.ts";

/** A JSON object of which nothing is known. */
export type JsonObject = { readonly [name: string]: unknown };

/** Whether a JSON value is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member that is a text with something in it, else null. */
export function textOf(object: JsonObject, name: string): string | null {
  const value = object[name];
  return typeof value === "string" && value !== "" ? value : null;
}

const TIMESTAMP = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2}(?:\.\d+)?)(Z|[+-]\d{2}:?\d{2})?$/;

/**
 * Reads a time in any form that OpenStack's services write: with `T` or a blank, with a fraction or none, with a zone
 * or, then in UTC, without.
 * @returns null for a text that is no time
 */
export function readTimestamp(text: string): Instant | null {
  const match = TIMESTAMP.exec(text);
  if (match === null) return null;
  const [, day = "", time = "", zone = "Z"] = match;
  const offset = zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  const instant = parseInstant(`${day}T${time}${offset}`);
  return typeof instant === "string" ? null : instant;
}

/**
 * One item of a listing, read member by member. What is wrong with it adds up in `faults`, each in a few words that
 * are the same for every item with that fault.
 */
export class Item {
  readonly json: JsonObject;
  readonly faults: string[] = [];

  constructor(json: JsonObject) {
    this.json = json;
  }

  /** The first of the members that is a text with something in it; null where none is. */
  text(...names: readonly string[]): string | null {
    for (const name of names) {
      const text = textOf(this.json, name);
      if (text !== null) return text;
    }
    return null;
  }

  /** Like `text`; that it is missing is a fault. */
  required(...names: readonly string[]): string | null {
    const text = this.text(...names);
    if (text === null) this.faults.push(`has no ${names[0]}`);
    return text;
  }

  /** A member that is only told on: a text of any kind, cut where it is long, else null. */
  label(name: string): string | null {
    const text = this.text(name);
    return text === null ? null : text.slice(0, 255).replaceAll("\0", "").toWellFormed();
  }

  /** A time; null where there is none. One that can't be read is a fault. */
  instant(name: string): Instant | null {
    const value = this.json[name];
    if (value === null || value === undefined || value === "") return null;
    const instant = typeof value === "string" ? readTimestamp(value) : null;
    if (instant === null) this.faults.push(`has an unreadable ${name}`);
    return instant;
  }
}

/** A whole number of zero or more that a JSON number holds exactly, else null. */
export function countIn(object: JsonObject, name: string): number | null {
  const value = object[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** What a service said of an error, cut short: its own words out of JSON, the text of a page out of HTML. */
export function saidIn(body: string): string {
  const words = jsonMessage(body) ?? body.slice(0, 5_000).replace(/<[^>]*>/g, " ");
  const line = oneLine(words.replace(/<[^>]*>/g, " "));
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

function jsonMessage(body: string): string | null {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return null;
  }
  if (!isJsonObject(json)) return null;
  // Octavia's and glance's own forms, then {"badRequest": {"message": …}} and its like of the others.
  const inner = Object.values(json).find((value) => isJsonObject(value) && textOf(value, "message") !== null);
  return (
    textOf(json, "faultstring") ??
    textOf(json, "message") ??
    (isJsonObject(inner) ? textOf(inner, "message") : null) ??
    ""
  );
}

/** Without control characters, which must not get into a log or onto a terminal. */
function oneLine(words: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return words.replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, " ").trim();
}
