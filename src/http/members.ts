/** Values of a request held to their schemas, strictly: a member that the schema doesn't name is a fault. */
import { Kind, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { FieldError } from "../problem.ts";
import { type Place, Refused, readerOf } from "./parameters.ts";

/** A schema that lists its members, as far as this file looks into it. */
interface MembersSchema {
  readonly properties: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: unknown;
}

/**
 * Reads one value by its schema.
 * @param loc the value's dotted place.
 * @param faults takes what is wrong; the result is then of no use.
 * @returns the value as its kinds read it: an instant in microseconds, say.
 */
export function readValue(
  schema: TSchema,
  value: unknown,
  loc: string,
  place: Place,
  faults: FieldError[],
): unknown {
  const read = readerOf(schema);
  if (read !== undefined) {
    const result = read(value, place);
    if (result instanceof Refused) faults.push({ loc, msg: result.msg });
    return result;
  }
  if (hasMembers(schema)) {
    if (!isObject(value)) {
      faults.push({ loc, msg: "must be an object" });
      return undefined;
    }
    const members = new Map(Object.entries(value));
    return readMembers(schema, members, loc, place, faults);
  }
  if (schema.type === "array" && isSchema(schema.items)) {
    const items = schema.items;
    if (!Array.isArray(value)) {
      faults.push({ loc, msg: "must be an array" });
      return undefined;
    }
    return value.map((item, index) => readValue(items, item, `${loc}.${index}`, place, faults));
  }
  if (!fits(schema, value)) faults.push({ loc, msg: expectation(schema) });
  return value;
}

/** Reads the members that `schema` names, and refuses the others: into `faults`, at `<loc>.<name>`. */
export function readMembers(
  schema: MembersSchema,
  members: ReadonlyMap<string, unknown>,
  loc: string,
  place: Place,
  faults: FieldError[],
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(schema.properties)) {
    const at = `${loc}.${name}`;
    if (members.has(name)) result[name] = readValue(member, members.get(name), at, place, faults);
    else if ("default" in member) result[name] = member.default;
    // A member whose text was refused already (repeated, empty, badly encoded) isn't missing as well.
    else if (schema.required?.includes(name) && !faults.some((fault) => fault.loc === at)) {
      faults.push({ loc: at, msg: "is required" });
    }
  }
  if (schema.additionalProperties !== true) {
    const what = place === "body" ? "member" : "parameter";
    for (const name of members.keys()) {
      if (!Object.hasOwn(schema.properties, name)) {
        faults.push({ loc: `${loc}.${shortened(name)}`, msg: `is no ${what} of this operation` });
      }
    }
  }
  return result;
}

/**
 * Refuses text that can't be stored as it is, wherever in a body's members it stands, in keys too: into `faults`, at
 * the member. One that is refused already is left at that.
 * @param loc the body's dotted place.
 */
export function refuseUnstorable(value: unknown, loc: string, faults: FieldError[]): void {
  const refused = new Set(faults.map((fault) => fault.loc));
  const parts: [at: string, part: unknown][] = isObject(value)
    ? Object.entries(value).map(([name, member]) => [`${loc}.${shortened(name)}`, member])
    : [[loc, value]];
  for (const [at, part] of parts) {
    const msg = refused.has(at) ? null : unstorable(part);
    if (msg !== null) faults.push({ loc: at, msg });
  }
}

/** Why a value can't be stored; null where it can. */
function unstorable(value: unknown): string | null {
  if (holdsText(value, (text) => text.includes("\0"))) return "holds a NUL character, which cannot be stored";
  // The driver would store another character in its place.
  if (holdsText(value, (text) => !text.isWellFormed())) {
    return "holds half a surrogate pair, which is no text";
  }
  return null;
}

/** Whether any text of a JSON value, in keys too, is such a one. Not recursive: bodies nest deep. */
function holdsText(value: unknown, such: (text: string) => boolean): boolean {
  const rest: unknown[] = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    if (typeof next === "string") {
      if (such(next)) return true;
    } else if (typeof next === "object" && next !== null) {
      for (const [key, member] of Object.entries(next)) {
        // An array's positions are no texts, but never such ones either.
        if (such(key)) return true;
        rest.push(member);
      }
    }
  }
  return false;
}

function hasMembers(schema: TSchema): schema is TSchema & MembersSchema {
  return schema.type === "object" && typeof schema.properties === "object" && schema.properties !== null;
}

function isSchema(value: unknown): value is TSchema {
  return typeof value === "object" && value !== null;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** TypeBox's check; a schema that was only described to it (`Type.Unsafe`) is held to its `type`. */
function fits(schema: TSchema, value: unknown): boolean {
  if (schema[Kind] !== "Unsafe") return Value.Check(schema, value);
  switch (schema.type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case undefined:
      return true;
    default:
      return typeof value === schema.type;
  }
}

/** What a value must be, in words. */
function expectation(schema: TSchema): string {
  if (Array.isArray(schema.anyOf)) {
    return schema.anyOf.map((part: TSchema) => expectation(part)).join(", or ");
  }
  if (schema.const !== undefined) return `must be ${JSON.stringify(schema.const)}`;
  const bounds = ["minLength", "maxLength", "minimum", "maximum", "pattern"]
    .filter((name) => schema[name] !== undefined)
    .map((name) => `${name} ${schema[name]}`);
  const article = /^[aeiou]/.test(String(schema.type)) ? "an" : "a";
  const type =
    schema.type === "null" ? "null" : schema.type === undefined ? "valid" : `${article} ${schema.type}`;
  return `must be ${type}${bounds.length > 0 ? ` (${bounds.join(", ")})` : ""}`;
}

/** A member's name is the caller's own text: told back, but not at any length. */
function shortened(name: string): string {
  return name.length > 100 ? `${name.slice(0, 100)}…` : name;
}
