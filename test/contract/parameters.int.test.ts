/** Every parameter of every operation: good, bad, empty, repeated, as the document has them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { encodeCursor } from "../../src/http/page.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { type Contract, type Operation, type Parameter, readContract, type Schema } from "./document.ts";

let server: TestServer;
let contract: Contract;
beforeAll(async () => {
  server = await testServer();
  contract = await readContract(server);
});
afterAll(() => server.stop());

const ID = "00000000-0000-4000-8000-000000000001";
const TEXT = { good: "a/b ü%", bad: ["a".repeat(513), "ü".repeat(257)] };
const INSTANT = {
  good: "2026-03-01T08:00:00.25+01:00",
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
const UUID = { good: ID, bad: ["1", ID.slice(1), `${ID}0`, `{${ID}}`, `${ID}\n`, "null"] };

/** Values that a parameter takes, and that it doesn't. */
function valuesOf({ name }: Parameter, schema: Schema, list: string): { good: string; bad: string[] } {
  if (name === "cursor") {
    const bad = ["x", "AAAA", encodeCursor("no-such-list", ["1", "2"]), encodeCursor(list, [])];
    return { good: "", bad: [...bad, `${encodeCursor(list, ["1"])}=`] };
  }
  if (schema.type === "array") {
    const names = (schema.items?.enum ?? []).map(String);
    return {
      good: names.join(","),
      bad: [names[1] ?? "", `${names.join(",")},${names[0]}`, `${names.join(",")},`, names.join(", "), "x"],
    };
  }
  if (schema.enum !== undefined) {
    const [first = ""] = schema.enum.map(String);
    return { good: first, bad: [first.toUpperCase(), `${first} `, `${first},${first}`, "x"] };
  }
  if (schema.format === "date-time") return INSTANT;
  if (schema.format === "uuid" || schema.pattern?.includes("a-fA-F") === true) return UUID;
  if (schema.type === "integer") {
    const { minimum = 0, maximum = 0 } = schema;
    const bad = [minimum - 1, maximum + 1, minimum + 0.5, "1e1", "+1", " 1", "0x1", "one", "9".repeat(30)];
    return { good: String(minimum), bad: bad.map(String) };
  }
  return TEXT;
}

/** Values that no parameter takes, as they stand in a URL. */
const NEVER = ["", "%00", "a%00b", "%ff", "%", "%e0%80"];

async function locsOf(operation: Operation, path: string): Promise<{ status: number; locs: string[] }> {
  const answer = await server.request(path, { method: operation.method, token: server.credentials.admin });
  const text = await answer.text();
  const problem: { errors?: { loc: string }[] } = text === "" ? {} : JSON.parse(text);
  return { status: answer.status, locs: (problem.errors ?? []).map(({ loc }) => loc) };
}

const listOf = (operation: Operation) => operation.path.split("/")[3] ?? "";
const placed = (operation: Operation, value = (_: Parameter) => ID) =>
  operation.parameters
    .filter((parameter) => parameter.in === "path")
    .reduce((path, parameter) => path.replace(`{${parameter.name}}`, value(parameter)), operation.path);

/** The operations that are read by an API token and take no body: any good request to them is answered. */
const reads = () =>
  contract.operations.filter(({ method, security }) => method === "GET" && "apiToken" in (security[0] ?? {}));

test("a query's parameters are each refused where they are bad, and taken where they are good", async () => {
  let refusals = 0;
  for (const operation of reads()) {
    const parameters = operation.parameters.filter((parameter) => parameter.in === "query");
    const values = new Map(
      parameters.map((parameter) => [
        parameter.name,
        valuesOf(parameter, contract.resolve(parameter.schema), listOf(operation)),
      ]),
    );
    const good = (name: string) => `${name}=${encodeURIComponent(values.get(name)?.good ?? "")}`;
    const required = parameters.filter((parameter) => parameter.required).map(({ name }) => name);
    const ask = (query: readonly string[]) => locsOf(operation, `${placed(operation)}?${query.join("&")}`);
    for (const { name } of parameters) {
      const others = required.filter((other) => other !== name).map(good);
      const refused = async (query: readonly string[]) => {
        refusals += 1;
        expect([query, await ask([...others, ...query])]).toEqual([
          query,
          { status: 400, locs: [`query.${name}`] },
        ]);
      };
      for (const bad of values.get(name)?.bad ?? []) await refused([`${name}=${encodeURIComponent(bad)}`]);
      for (const never of NEVER) await refused([`${name}=${never}`]);
      await refused([name]);
      if (required.includes(name)) await refused([]);
      if (name === "cursor") continue;
      await refused([good(name), good(name)]);
      const { status, locs } = await ask([...others, good(name)]);
      expect([name, operation.path.includes("{") ? 404 : 200, locs]).toEqual([name, status, []]);
    }
  }
  expect(refusals).toBeGreaterThan(500);
});

test("a path's parameters are each refused where they are bad", async () => {
  let refusals = 0;
  for (const operation of contract.operations.filter(({ security }) => "apiToken" in (security[0] ?? {}))) {
    for (const parameter of operation.parameters.filter((each) => each.in === "path")) {
      const { bad } = valuesOf(parameter, contract.resolve(parameter.schema), "");
      const wrong = [...bad.map(encodeURIComponent), ...NEVER.filter((text) => text !== "")];
      for (const text of wrong) {
        const path = placed(operation, ({ name }) => (name === parameter.name ? text : ID));
        const required = operation.parameters.filter((each) => each.in === "query" && each.required);
        const query = required.map(
          (each) =>
            `${each.name}=${encodeURIComponent(valuesOf(each, contract.resolve(each.schema), "").good)}`,
        );
        const { status, locs } = await locsOf(
          operation,
          query.length === 0 ? path : `${path}?${query.join("&")}`,
        );
        // A body that isn't there is told as well.
        expect([path, status, locs.filter((loc) => loc !== "body")]).toEqual([
          path,
          400,
          [`path.${parameter.name}`],
        ]);
        refusals += 1;
      }
    }
  }
  expect(refusals).toBeGreaterThan(100);
});
