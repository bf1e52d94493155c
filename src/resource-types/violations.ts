/** What a size breaks of its schema, in words for the operator of a collector. */
import type { ErrorObject } from "ajv/dist/2020.js";

/** More violations than this are only counted: the reasons must not outgrow the item. */
const MAX_TOLD = 20;
/** The longest piece of a schema or an item that is quoted, in characters. */
const MAX_QUOTED = 100;

/** One message a violation, in Ajv's order, each once; after the first 20 how many more there are. */
export function violations(errors: readonly ErrorObject[]): string[] {
  const told = new Set<string>();
  let more = 0;
  for (const error of errors) {
    if (told.size < MAX_TOLD) told.add(message(error));
    else more++;
  }
  return more === 0 ? [...told] : [...told, `and ${more} more`];
}

function message(error: ErrorObject): string {
  const place = placeOf(error.instancePath);
  const what = describe(error);
  const name = error.propertyName === undefined ? "" : `the property name ${quoted(error.propertyName)} `;
  return `${place === "" ? "" : `${place}: `}${name}${what}`;
}

/** A JSON pointer as a dotted place: `/disks/0/size_gb` → `disks.0.size_gb`. */
function placeOf(pointer: string): string {
  const parts = pointer.split("/").slice(1);
  return shortened(parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")).join("."));
}

function describe(error: ErrorObject): string {
  const { keyword, params } = error;
  switch (keyword) {
    case "required":
      return `${quoted(params.missingProperty)} is a required property`;
    case "dependentRequired":
      return `${quoted(params.missingProperty)} is a required property where ${quoted(params.property)} is there`;
    case "additionalProperties":
      return `${quoted(params.additionalProperty)} is not an allowed property`;
    case "unevaluatedProperties":
      return `${quoted(params.unevaluatedProperty)} is not an allowed property`;
    case "enum":
      return `must be one of ${shortened(listed(error.schema))}`;
    case "const":
      return `must be ${shortened(JSON.stringify(error.schema))}`;
    case "type":
      return `must be ${Array.isArray(error.schema) ? error.schema.join(" or ") : String(error.schema)}`;
    case "multipleOf":
      return `must be a multiple of ${String(error.schema)}`;
    case "uniqueItems":
      return "must not hold the same item twice";
    case "pattern":
      return `must match the pattern ${shortened(String(error.schema))}`;
    case "false schema":
      return "is not allowed";
    case "propertyNames":
      return `${quoted(params.propertyName)} is not an allowed property name`;
    default:
      return shortened(error.message ?? `breaks ${keyword}`);
  }
}

function listed(values: unknown): string {
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)).join(", ") : "";
}

function quoted(name: unknown): string {
  return `'${shortened(String(name))}'`;
}

function shortened(text: string): string {
  if (text.length <= MAX_QUOTED) return text;
  // Never half a surrogate pair: the reason is stored as UTF-8.
  return `${text.slice(0, MAX_QUOTED).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
