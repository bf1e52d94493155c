/** Requests to an operation, good and bad, made from what the document says of it. */
import fc from "fast-check";
import type { Contract, Operation, Parameter, Schema } from "./document.ts";

/** A request, without its credential. */
export interface MadeRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** Values that mean something to the server, by the names of the parameters and members that take them. */
export type Known = Readonly<Record<string, readonly unknown[]>>;

const NASTY = [
  "",
  " ",
  "\0",
  "a\0b",
  "../..",
  "'; DROP TABLE events; --",
  "%",
  "%00",
  "+",
  "ü😀",
  "\u202e",
  "null",
  "-1",
  "1e400",
  "99999999999999999999",
  "NaN",
  "x".repeat(513),
  "ü".repeat(300),
  "0001-01-01T00:00:00Z",
  "9999-12-31T23:59:59.999999Z",
  "0000-01-01T00:00:00Z",
  "2026-02-30T00:00:00Z",
  "2026-03-01T00:00:60Z",
  "2026-03-01",
  "AAAA",
];

/** Text that keeps its meaning wherever in a URL it stands. */
const encoded = encodeURIComponent;

/** A segment of a path. Empty ones, `.` and `..` never get to the server: a URL is parsed without them. */
function segment(text: string): string {
  return /^\.{0,2}$/.test(text) ? "%20" : encoded(text.toWellFormed());
}

/** Seldom true. */
const seldom = fc.integer({ min: 0, max: 19 }).map((n) => n === 0);

function goodText(schema: Schema): fc.Arbitrary<string> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum.map(String));
  if (schema.format === "uuid" || schema.pattern?.includes("a-fA-F") === true) return fc.uuid();
  if (schema.format === "date-time") {
    return fc
      .date({
        min: new Date("2026-01-01T00:00:00Z"),
        max: new Date("2026-12-31T00:00:00Z"),
        noInvalidDate: true,
      })
      .map((at) => at.toISOString());
  }
  if (schema.type === "integer") {
    return fc
      .integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 1000, 1000) })
      .map((n) => String(n));
  }
  return fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" });
}

function parameterText(contract: Contract, parameter: Parameter, known: Known): fc.Arbitrary<string> {
  const schema = contract.resolve(parameter.schema);
  const options: { weight: number; arbitrary: fc.Arbitrary<string> }[] = [
    { weight: 1, arbitrary: fc.constantFrom(...NASTY) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 20 }) },
  ];
  if (schema.type === "array") {
    const names = (schema.items?.enum ?? []).map(String);
    options.push({
      weight: 8,
      arbitrary: fc.shuffledSubarray(names, { minLength: 1 }).map((list) => list.join(",")),
    });
    if (parameter.name === "group_by") {
      options.push({ weight: 8, arbitrary: fc.constant(names.slice(0, names.length).join(",")) });
    }
  } else options.push({ weight: 8, arbitrary: goodText(schema) });
  const values = known[parameter.name]?.map(String) ?? [];
  if (values.length > 0) options.push({ weight: 14, arbitrary: fc.constantFrom(...values) });
  return fc.oneof(...options);
}

function pathOf(contract: Contract, operation: Operation, known: Known): fc.Arbitrary<string> {
  const inPath = operation.parameters.filter((parameter) => parameter.in === "path");
  return fc
    .tuple(...inPath.map((parameter) => parameterText(contract, parameter, known)))
    .map((values) =>
      inPath.reduce(
        (path, { name }, at) => path.replace(`{${name}}`, () => segment(values[at] ?? "")),
        operation.path,
      ),
    );
}

function queryOf(contract: Contract, operation: Operation, known: Known): fc.Arbitrary<string> {
  const inQuery = operation.parameters.filter((parameter) => parameter.in === "query");
  const parts = inQuery.map((parameter) =>
    fc
      .tuple(
        fc.integer({ min: 0, max: 9 }),
        parameterText(contract, parameter, known),
        parameterText(contract, parameter, known),
        seldom,
      )
      .map(([n, value, other, twice]) => {
        if (n >= (parameter.required ? 9 : 3)) return [];
        const one = `${parameter.name}=${encoded(value.toWellFormed())}`;
        return twice ? [one, `${parameter.name}=${encoded(other.toWellFormed())}`] : [one];
      }),
  );
  const odd = fc.tuple(
    seldom,
    fc.constantFrom("colour=red", "=", "limit", "%ff=1", "a=%", "%00=1", "&&", "Limit=1"),
  );
  return fc.tuple(fc.tuple(...parts), odd).map(([made, [isOdd, text]]) => {
    const all = [...made.flat(), ...(isOdd ? [text] : [])];
    return all.length === 0 ? "" : `?${all.join("&")}`;
  });
}

/** Any JSON value, odd numbers and characters included. */
const anyJson = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(...NASTY, [], {}, null, true, 0, -1, 1.5, "\ud800", { "\0": 1 }, { $ref: "x" }),
);

function memberValue(contract: Contract, given: Schema, name: string, known: Known): fc.Arbitrary<unknown> {
  const schema = contract.resolve(given);
  const good = goodValue(contract, schema, known);
  const options = [
    { weight: 12, arbitrary: good },
    { weight: 1, arbitrary: anyJson },
  ];
  const values = known[name];
  if (values !== undefined) options.push({ weight: 12, arbitrary: fc.constantFrom(...values) });
  return fc.oneof(...options);
}

function goodValue(contract: Contract, schema: Schema, known: Known): fc.Arbitrary<unknown> {
  const [first] = schema.anyOf ?? [];
  if (first !== undefined && schema.anyOf !== undefined) {
    return fc.oneof(...schema.anyOf.map((part) => goodValue(contract, contract.resolve(part), known)));
  }
  if (schema.const !== undefined) return fc.constant(schema.const);
  const [type] = [schema.type].flat();
  if (type === "object") {
    const members = Object.entries(schema.properties ?? {});
    if (members.length === 0) return fc.dictionary(fc.string({ maxLength: 8 }), anyJson, { maxKeys: 3 });
    const required = schema.required ?? [];
    const made = members.map(([name, member]) =>
      fc
        .tuple(fc.integer({ min: 0, max: 19 }), memberValue(contract, member, name, known))
        .map(([n, value]) =>
          n === 0 || (n < 8 && !required.includes(name)) ? [] : [[name, value] as const],
        ),
    );
    return fc.tuple(fc.tuple(...made), seldom).map(([entries, odd]) => ({
      ...Object.fromEntries(entries.flat()),
      ...(odd ? { colour: "red" } : {}),
    }));
  }
  if (type === "array") {
    return fc.array(goodValue(contract, contract.resolve(schema.items ?? {}), known), { maxLength: 4 });
  }
  if (type === "integer") return goodText(schema).map(Number);
  if (type === "string") return goodText(schema);
  return anyJson;
}

/** Bodies that are none, or no JSON, or not what they say they are. */
const BROKEN = [
  "",
  "{",
  "nul",
  "[1,]",
  "\ufeff{}",
  '{"a":1}{"b":2}',
  `${"[".repeat(5_000)}${"]".repeat(5_000)}`,
  '{"a":"\\u0000"}',
  '{"a":"\\ud800"}',
  '{"__proto__":{"a":1}}',
];

function bodyOf(
  contract: Contract,
  operation: Operation,
  known: Known,
): fc.Arbitrary<Pick<MadeRequest, "body" | "headers">> {
  const spec = operation.requestBody?.content["application/json"];
  if (spec === undefined) {
    // A body that nobody asked for.
    const odd = { body: "{}", headers: { "content-type": "application/json" } };
    return seldom.map((isOdd) => (isOdd && operation.method !== "GET" ? odd : { body: null, headers: {} }));
  }
  const json = { "content-type": "application/json" };
  const text = goodValue(contract, contract.resolve(spec.schema), known).map((value) =>
    JSON.stringify(value),
  );
  return fc.oneof(
    { weight: 16, arbitrary: text.map((body) => ({ body, headers: json })) },
    { weight: 2, arbitrary: fc.constantFrom(...BROKEN).map((body) => ({ body, headers: json })) },
    { weight: 2, arbitrary: anyJson.map((value) => ({ body: JSON.stringify(value), headers: json })) },
    { weight: 1, arbitrary: fc.constant({ body: JSON.stringify(spec.example ?? {}), headers: json }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom("text/plain", "application/json; charset=latin1", "x").map((type) => ({
        body: "{}",
        headers: { "content-type": type },
      })),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom("gzip", "zstd", "br", "identity, gzip").map((coding) => ({
        body: "{}",
        headers: { ...json, "content-encoding": coding },
      })),
    },
    {
      weight: 1,
      arbitrary: fc
        .uint8Array({ maxLength: 40 })
        .map((bytes) => ({ body: new Uint8Array(bytes), headers: json })),
    },
  );
}

/** Requests to one operation. Most of their parts are good; few requests are good throughout. */
export function requestsTo(
  contract: Contract,
  operation: Operation,
  known: Known,
): fc.Arbitrary<MadeRequest> {
  return fc
    .tuple(
      pathOf(contract, operation, known),
      queryOf(contract, operation, known),
      bodyOf(contract, operation, known),
      fc.oneof(fc.constant({}), fc.constantFrom({ "if-none-match": "*" }, { "x-request-id": "ü" }, {})),
    )
    .map(([path, query, { body, headers }, more]) => ({
      path: `${path}${query}`,
      body,
      headers: { ...headers, ...more },
    }));
}
