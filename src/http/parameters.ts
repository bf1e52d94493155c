/**
 * The kinds of values that requests carry in their path, query and bodies. Each is a schema for the document
 * and the reader that the request is held to, in one: what is documented is what is checked.
 */
import { type TUnsafe, Type } from "@sinclair/typebox";
import { type Instant, parseInstant } from "../event/instant.ts";

/** What a reader says of a value that it refuses: the `msg` of a `{loc, msg}`. It never quotes the value. */
export class Refused {
  readonly msg: string;
  constructor(msg: string) {
    this.msg = msg;
  }
}

/** Where a value stands: in a path or query it is a text, in a body any JSON value. */
export type Place = "path" | "query" | "body";

const READ = Symbol("tally.read");
type Reader<T> = (value: unknown, place: Place) => T | Refused;

/** A JSON Schema for the document, plus how a value is read. */
function kind<T>(schema: Record<string, unknown>, read: Reader<T>): TUnsafe<T> {
  // A symbol: it isn't written into the document, and TypeBox carries it along when it makes the member optional.
  return Type.Unsafe<T>({ ...schema, [READ]: read });
}

/** The reader of a schema that this file made, or undefined. */
export function readerOf(schema: object): Reader<unknown> | undefined {
  return (schema as { [READ]?: Reader<unknown> })[READ];
}

/** Text of 1 to `maxBytes` UTF-8 bytes, without NUL. Bytes, because they protect what indexes hold. */
export function textParam(description: string, maxBytes = 512): TUnsafe<string> {
  return kind({ type: "string", minLength: 1, maxLength: maxBytes, description }, (value) => {
    if (typeof value !== "string") return new Refused("must be a string");
    const bytes = Buffer.byteLength(value);
    if (bytes < 1 || bytes > maxBytes) return new Refused(`must be 1 to ${maxBytes} bytes, got ${bytes}`);
    return value;
  });
}

/**
 * An instant: RFC 3339 with an offset, read into microseconds. In a query an unescaped `+` means a space
 * (`…T08:00:00+02:00` arrives as `…T08:00:00 02:00`), so there a space before the offset is read as `+`.
 */
export function instantParam(description: string): TUnsafe<Instant> {
  return kind({ type: "string", format: "date-time", description }, (value, place) => {
    if (typeof value !== "string") return new Refused("must be a string");
    const text = place === "query" ? value.replace(/ (?=\d{2}:\d{2}$)/, "+") : value;
    const instant = parseInstant(text);
    return typeof instant === "string" ? new Refused(instant) : instant;
  });
}

/** One of a few names. With `preset`, a request that leaves the parameter out means that one. */
export function choiceParam<const N extends string>(
  description: string,
  names: readonly N[],
  preset?: NoInfer<N>,
): TUnsafe<N> {
  const schema = { type: "string", enum: [...names], description };
  return kind(preset === undefined ? schema : { ...schema, default: preset }, (value) => {
    const name = names.find((candidate) => candidate === value);
    return name ?? new Refused(`must be one of ${names.join(", ")}`);
  });
}

/** A whole number from `minimum` to `maximum`. With `preset`, a request that leaves it out means that one. */
export function integerParam(
  description: string,
  bounds: { readonly minimum: number; readonly maximum: number; readonly preset?: number },
): TUnsafe<number> {
  const { minimum, maximum, preset } = bounds;
  const schema = { type: "integer", minimum, maximum, description };
  return kind(preset === undefined ? schema : { ...schema, default: preset }, (value, place) => {
    const number =
      place === "body"
        ? value
        : typeof value === "string" && /^-?\d{1,15}$/.test(value)
          ? Number(value)
          : null;
    if (typeof number === "number" && Number.isInteger(number) && number >= minimum && number <= maximum) {
      return number;
    }
    return new Refused(`must be an integer from ${minimum} to ${maximum}`);
  });
}

/** A comma-separated list of different names, in the order that was asked for, with the `needed` ones among them. */
export function namesParam<const N extends string>(
  description: string,
  names: readonly N[],
  needed: readonly NoInfer<N>[] = [],
): TUnsafe<N[]> {
  const schema = {
    type: "array",
    items: { type: "string", enum: [...names] },
    uniqueItems: true,
    minItems: 1,
  };
  return kind({ ...schema, description }, (value) => {
    if (typeof value !== "string") return new Refused("must be a comma-separated list");
    const asked: N[] = [];
    for (const part of value.split(",")) {
      const name = names.find((candidate) => candidate === part);
      if (name === undefined) return new Refused(`must be a comma-separated list of ${names.join(", ")}`);
      if (asked.includes(name)) return new Refused(`names ${name} twice`);
      asked.push(name);
    }
    const missing = needed.filter((name) => !asked.includes(name));
    if (missing.length > 0) return new Refused(`must name ${missing.join(" and ")}`);
    return asked;
  });
}

const UUID = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;

function readUuid(value: unknown): string | Refused {
  return typeof value === "string" && UUID.test(value) ? value.toLowerCase() : new Refused("must be a UUID");
}

/** A UUID, read in lower case, which is how the database writes them. */
export function uuidParam(description: string): TUnsafe<string> {
  return kind({ type: "string", format: "uuid", pattern: UUID.source, description }, readUuid);
}

/** An id in a path: as `uuidParam`, but documented by reference to the component `Uuid`. */
export function idParam(description: string): TUnsafe<string> {
  return kind({ $ref: "Uuid", description }, readUuid);
}

/** `limit` of every paged list. */
export const limitParam = integerParam("How many items the page holds at most.", {
  minimum: 1,
  maximum: 1_000,
  preset: 100,
});

/** `cursor` of every paged list; `decodeCursor` of page.ts reads it for its list. Use with `Type.Optional`. */
export const cursorParam = kind<string>(
  {
    type: "string",
    description:
      "Where the page starts: the `next_cursor` of the page before. It holds a position only; the filters are those of this request.",
  },
  (value) => (typeof value === "string" ? value : new Refused("must be a string")),
);
