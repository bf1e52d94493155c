/**
 * Where Ajv's own keywords aren't good enough for what bills are computed from: `multipleOf` in exact decimals,
 * `uniqueItems` in linear time, and a bound on the work of one check.
 */
import type { Ajv2020 } from "ajv/dist/2020.js";

/** Put into every schema that a `$ref` reaches: counts how often one check gets there. */
export const STEP_KEYWORD = "tallyStep";

/** A check that would take too long, like a `$ref` that leads back to itself without going deeper. */
export class TooMuchWork extends Error {
  override readonly name = "TooMuchWork";
}

/**
 * Far beyond any size's need (the largest item holds some 130,000 values), and a fraction of a second. Without
 * it, thirty definitions that each refer twice to the next one take a billion steps.
 */
const MAX_STEPS = 500_000;
let steps = 0;

/** Begins the count of one check. Checks are synchronous: no two of them interleave. */
export function beginCheck(): void {
  steps = 0;
}

/** Replaces and adds keywords on an Ajv of its own. */
export function installKeywords(ajv: Ajv2020): void {
  ajv.removeKeyword("multipleOf");
  ajv.addKeyword({
    keyword: "multipleOf",
    type: "number",
    schemaType: "number",
    compile: (divisor: number) => (value: number) => isMultiple(value, divisor),
  });
  ajv.removeKeyword("uniqueItems");
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    compile: (unique: boolean) => (items: readonly unknown[]) =>
      !unique || new Set(items.map(canonical)).size === items.length,
  });
  ajv.addKeyword({
    keyword: STEP_KEYWORD,
    schemaType: "boolean",
    compile: () => () => {
      if (++steps > MAX_STEPS) throw new TooMuchWork("the schema takes too many steps");
      return true;
    },
  });
}

/** A number as `digits × 10^exponent`, taken from its shortest decimal text: 0.3 is three tenths, no more. */
function decimal(value: number): { digits: bigint; exponent: number } {
  const [mantissa = "0", power = "0"] = String(value).split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}

/** Whether `value` is a whole multiple of `divisor`, in exact decimals: 0.3 is one of 0.1. Infinity is none. */
export function isMultiple(value: number, divisor: number): boolean {
  if (!Number.isFinite(value)) return false;
  const a = decimal(value);
  const b = decimal(divisor);
  const exponent = Math.min(a.exponent, b.exponent);
  const scale = (part: { digits: bigint; exponent: number }) =>
    part.digits * 10n ** BigInt(part.exponent - exponent);
  return scale(a) % scale(b) === 0n;
}

/** One text for all JSON values that JSON Schema calls equal. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(
      ([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`,
    );
    return `{${members.sort().join(",")}}`;
  }
  return JSON.stringify(value === 0 ? 0 : value);
}
