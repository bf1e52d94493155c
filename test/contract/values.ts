/** Texts that parameters and members take, and that they don't, by what the document says of them. */
import type { Schema } from "./document.ts";

export interface Texts {
  readonly good: readonly string[];
  readonly bad: readonly string[];
}

/** The id of nothing. */
export const ID = "00000000-0000-4000-8000-000000000001";
const UUIDS: Texts = {
  good: [ID, "ABCDEF00-0000-4000-8000-00000000000A"],
  bad: ["1", ID.slice(1), `${ID}0`, `{${ID}}`, `${ID}\n`, "null"],
};
const INSTANTS: Texts = {
  good: ["2026-03-01T08:00:00.25+01:00", "2026-03-01T07:00:00Z", "2026-02-28T23:59:59.9999999-00:30"],
  bad: [
    "now",
    "1772323200",
    "2026-03-01",
    "2026-03-01T00:00:00",
    "2026-03-01 00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-03-01T24:00:00Z",
    "2026-03-01T00:00:60Z",
    "2026-03-01T00:00:00+0100",
    "0000-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+00:01",
  ],
};

/** One of a few names: each, and what only looks like one. */
function names([first = "", ...others]: readonly string[]): Texts {
  return {
    good: [first, ...others],
    bad: [first.toUpperCase(), `${first} `, `${first},${first}`, "x"],
  };
}

/** Plain text is bounded in bytes: the longest, and one byte more, of one byte a character and of two. */
function plain(maxBytes: number): Texts {
  const half = "ü".repeat(maxBytes / 2);
  return {
    good: ["a", "a/b ü%", "a".repeat(maxBytes), half],
    bad: ["a".repeat(maxBytes + 1), `${half}a`, `${half}ü`],
  };
}

/** The texts of a schema of type string. @throws where it has neither names nor a format nor a bound. */
export function textsOf(schema: Schema): Texts {
  if (schema.enum !== undefined) return names(schema.enum.map(String));
  if (schema.format === "date-time") return INSTANTS;
  if (schema.format === "uuid") return UUIDS;
  if (schema.maxLength !== undefined) return plain(schema.maxLength);
  throw new Error(`no values for ${JSON.stringify(schema)}`);
}
