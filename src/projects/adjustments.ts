/** Pricing adjustments, held to the JSON Schema beside this file. */
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import type { FieldError } from "../problem.ts";
import schema from "./adjustments.schema.json";

/** Where the array stands in a request. */
const PLACE = "body.metadata.pricing_adjustments";

// ownProperties: `constructor` is a member of no adjustment.
const validate = new Ajv2020({ allErrors: true, ownProperties: true, strict: true }).compile(schema);

/** What is wrong with the values of each member, in words. */
const EXPECTED: Readonly<Record<string, string>> = {
  type: `must be one of ${schema.items.properties.type.enum.join(", ")}`,
  rate: "must be a decimal as a string, from 0 to 1, with at most six fractional digits",
  scope: "must be all, a platform, or platform.resource_type, in lower-case letters, digits and underscores",
  description: `must be a string of at most ${schema.items.properties.description.maxLength} characters`,
};

/**
 * Every violation of an array of adjustments, one entry each, none where it fits. A missing member's place is where it
 * should stand, an unknown one's where it stands. Too many adjustments are one violation, whatever they hold.
 * @param value what stands in `metadata.pricing_adjustments`.
 */
export function adjustmentFaults(value: unknown): FieldError[] {
  if (Array.isArray(value) && value.length > schema.maxItems) {
    return [{ loc: PLACE, msg: `must hold at most ${schema.maxItems} adjustments, got ${value.length}` }];
  }
  if (validate(value)) return [];
  const found = (validate.errors ?? []).map(fault);
  // Errors hold on to the value.
  validate.errors = null;
  return found;
}

function fault({ instancePath, keyword, params }: ErrorObject): FieldError {
  // `/0/rate` → `0`, `rate`; the schema's own names need no unescaping, and others are in the params.
  const [index, member] = instancePath.split("/").slice(1);
  if (index === undefined) {
    return { loc: PLACE, msg: keyword === "minItems" ? "must not be empty" : "must be an array" };
  }
  const place = `${PLACE}.${index}`;
  switch (keyword) {
    case "required":
      return { loc: `${place}.${params.missingProperty}`, msg: "is required" };
    case "additionalProperties":
      return { loc: `${place}.${params.additionalProperty}`, msg: "is no member of an adjustment" };
    default:
      return member === undefined
        ? { loc: place, msg: "must be an object" }
        : { loc: `${place}.${member}`, msg: EXPECTED[member] ?? `breaks ${keyword}` };
  }
}
