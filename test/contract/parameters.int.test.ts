/** Every parameter of every operation: good, bad, empty, repeated, unknown, as the document has them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { encodeCursor } from "../../src/http/page.ts";
import { send } from "../inventory/calls.ts";
import { project } from "../projects/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { type Contract, type Operation, type Parameter, readContract, type Schema } from "./document.ts";
import { ID, type Texts, textsOf } from "./values.ts";

let server: TestServer;
let contract: Contract;
/** By the scheme that an operation names. */
let tokens: Readonly<Record<string, string>>;
/** By operationId: the cursor of its second page. */
const cursors = new Map<string, string>();
beforeAll(async () => {
  server = await testServer();
  contract = await readContract(server);
  const ingest = await server.credentials.ingest("openstack", "eu1");
  tokens = {
    apiToken: server.credentials.admin,
    internalToken: server.credentials.internal,
    ingestToken: ingest,
  };
  await twoOfEach(ingest);
  for (const operation of contract.operations.filter(({ parameters }) =>
    parameters.some(({ name }) => name === "cursor"),
  )) {
    const answer = await request(operation, `${operation.path}?limit=1`);
    const page: { next_cursor: string | null } = JSON.parse(await answer.text());
    if (page.next_cursor === null) throw new Error(`one page of ${operation.operationId} holds all`);
    cursors.set(operation.operationId, page.next_cursor);
  }
});
afterAll(() => server.stop());

/** Two things in every list, so that each has a second page. Audit entries come by themselves. */
async function twoOfEach(ingest: string): Promise<void> {
  await send(server, [
    { id: "e1", at: "2026-03-01T00:00:00Z", type: "thing.create", resource: "r1" },
    { id: "e2", at: "2026-03-02T00:00:00Z", type: "thing.create", resource: "r2" },
  ]);
  for (const name of ["p1", "p2"]) await project(server, name);
  await server.request("/api/v1/events", { method: "POST", token: ingest, body: "[1,2]" });
  await server.db.db`
    INSERT INTO sync_runs (started_at, finished_at, cloud, platform, status)
    SELECT now(), now(), cloud, 'openstack', 'completed' FROM unnest(ARRAY['eu1', 'eu2']) AS cloud`;
}

const inPlace = ({ parameters }: Operation, place: "path" | "query") =>
  parameters.filter((parameter) => parameter.in === place);
const listOf = (operation: Operation) => operation.path.split("/")[3] ?? "";

/** Values that a parameter takes, and that it doesn't. */
function valuesOf(operation: Operation, { name, schema: given }: Parameter): Texts {
  const schema = contract.resolve(given);
  if (name === "cursor") {
    const list = listOf(operation);
    const bad = ["x", "AAAA", encodeCursor("no-such-list", ["1", "2"]), encodeCursor(list, [])];
    const good = cursors.get(operation.operationId) ?? "";
    return { good: [good], bad: [...bad, `${good}=`, `${encodeCursor(list, ["1"])}=`] };
  }
  if (schema.type === "array") return listsOf(schema);
  if (schema.type === "integer") {
    const { minimum = 0, maximum = 0 } = schema;
    const bad = [minimum - 1, maximum + 1, minimum + 0.5, "1e1", "+1", " 1", "0x1", "one", "9".repeat(30)];
    return { good: [String(minimum), String(maximum)], bad: bad.map(String) };
  }
  return textsOf(schema);
}

function listsOf(schema: Schema): Texts {
  const names = (schema.items?.enum ?? []).map(String);
  return {
    good: [names.join(","), names.toReversed().join(",")],
    bad: [names[1] ?? "", `${names.join(",")},${names[0]}`, `${names.join(",")},`, names.join(", "), "x"],
  };
}

const goodOf = (operation: Operation, parameter: Parameter) => valuesOf(operation, parameter).good[0] ?? "";
const pair = (name: string, value: string) => `${name}=${encodeURIComponent(value)}`;

/** Values that no parameter takes, as they stand in a URL. */
const NEVER = ["", "%00", "a%00b", "%ff", "%", "%e0%80"];

/** Calls an operation as who may, with the documented body where it takes one. */
async function request(operation: Operation, path: string): Promise<Response> {
  const token = tokens[Object.keys(operation.security[0] ?? {})[0] ?? ""];
  const example = operation.requestBody?.content["application/json"]?.example;
  return await server.request(path, {
    method: operation.method,
    ...(token === undefined ? {} : { token }),
    ...(example === undefined ? {} : { body: JSON.stringify(example) }),
  });
}

async function answerOf(operation: Operation, path: string): Promise<{ status: number; locs: string[] }> {
  const answer = await request(operation, path);
  const text = await answer.text();
  const isProblem = answer.headers.get("content-type")?.startsWith("application/problem+json") === true;
  const problem: { errors?: { loc: string }[] } = isProblem ? JSON.parse(text) : {};
  return { status: answer.status, locs: (problem.errors ?? []).map(({ loc }) => loc) };
}

/** The operation's path with a value for each of its parameters, an id unless told. */
const placed = (operation: Operation, value = (_: Parameter) => ID) =>
  inPlace(operation, "path").reduce(
    (path, parameter) => path.replace(`{${parameter.name}}`, () => value(parameter)),
    operation.path,
  );

/** The required parameters of its query, but for one, each with a good value. */
const neededBy = (operation: Operation, but: string | null = null) =>
  inPlace(operation, "query")
    .filter(({ required, name }) => required && name !== but)
    .map((parameter) => pair(parameter.name, goodOf(operation, parameter)));

const withQuery = (path: string, query: readonly string[]) =>
  query.length === 0 ? path : `${path}?${query.join("&")}`;

/** The parameters of the document in one place, as they are counted. */
const documented = (place: "path" | "query") =>
  contract.operations.flatMap((operation) =>
    inPlace(operation, place).map(({ name }) => `${operation.operationId} ${name}`),
  );

test("a query's parameters are each refused where they are bad, and taken where they are good", async () => {
  const refusals = new Map<string, number>();
  for (const operation of contract.operations) {
    const { operationId } = operation;
    const ask = (query: readonly string[]) => answerOf(operation, withQuery(placed(operation), query));
    for (const parameter of inPlace(operation, "query")) {
      const { name, required } = parameter;
      const others = neededBy(operation, name);
      const counted = `${operationId} ${name}`;
      const refused = async (query: readonly string[]) => {
        expect([counted, query, await ask([...others, ...query])]).toEqual([
          counted,
          query,
          { status: 400, locs: [`query.${name}`] },
        ]);
        refusals.set(counted, (refusals.get(counted) ?? 0) + 1);
      };
      const { good, bad } = valuesOf(operation, parameter);
      for (const value of bad) await refused([pair(name, value)]);
      for (const never of NEVER) await refused([`${name}=${never}`]);
      await refused([name]);
      if (required) await refused([]);
      for (const value of good) {
        await refused([pair(name, value), pair(name, value)]);
        // Nothing has that id: a good query is answered so.
        const status = operation.path.includes("{") ? 404 : 200;
        expect([counted, value, await ask([...others, pair(name, value)])]).toEqual([
          counted,
          value,
          { status, locs: [] },
        ]);
      }
    }
  }
  expect([...refusals.keys()]).toEqual(documented("query"));
  // Those that no parameter takes, one without a value, one twice, and three bad ones at least.
  expect([...refusals].filter(([, times]) => times < NEVER.length + 5)).toEqual([]);
});

test("a path's parameters are each refused where they are bad, and taken where they are good", async () => {
  const refusals = new Map<string, number>();
  for (const operation of contract.operations) {
    for (const parameter of inPlace(operation, "path")) {
      const counted = `${operation.operationId} ${parameter.name}`;
      const ask = (text: string) =>
        answerOf(
          operation,
          withQuery(
            placed(operation, ({ name }) => (name === parameter.name ? text : ID)),
            neededBy(operation),
          ),
        );
      const { good, bad } = valuesOf(operation, parameter);
      for (const text of [...bad.map(encodeURIComponent), ...NEVER.filter((never) => never !== "")]) {
        const refused = { status: 400, locs: [`path.${parameter.name}`] };
        expect([counted, text, await ask(text)]).toEqual([counted, text, refused]);
        refusals.set(counted, (refusals.get(counted) ?? 0) + 1);
      }
      for (const value of good) {
        const { status, locs } = await ask(encodeURIComponent(value));
        // Nothing has that id or name, but for the types that are registered here.
        expect([counted, value, [200, 404].includes(status), locs]).toEqual([counted, value, true, []]);
      }
    }
  }
  expect([...refusals.keys()]).toEqual(documented("path"));
  expect([...refusals].filter(([, times]) => times < NEVER.length + 2)).toEqual([]);
});

test("a parameter that the operation doesn't have is refused beside those that it has", async () => {
  expect(contract.operations.length).toBeGreaterThan(25);
  for (const operation of contract.operations) {
    const { operationId } = operation;
    const known = inPlace(operation, "query");
    const query = known.map((parameter) => pair(parameter.name, goodOf(operation, parameter)));
    const shouted = known.map(({ name }) => name.toUpperCase());
    for (const name of ["colour", "__proto__", "constructor", "", ...shouted]) {
      for (const odd of [`${name}=red`, `${name}=`]) {
        const answer = await answerOf(operation, withQuery(placed(operation), [...query, odd]));
        expect([operationId, odd, answer]).toEqual([
          operationId,
          odd,
          { status: 400, locs: [`query.${name}`] },
        ]);
      }
    }
  }
});
