/** Every body in the document has an example, and each example is what its schema says. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { type Content, type Contract, type Operation, readContract, type Schema } from "./document.ts";

let server: TestServer;
let contract: Contract;
beforeAll(async () => {
  server = await testServer();
  contract = await readContract(server);
});
afterAll(() => server.stop());

/** Every body of the document: the names that lead to it, and what is said of it. */
function bodies(): [place: string[], content: Content][] {
  return contract.operations.flatMap(({ path, method, requestBody, responses }) => {
    const at = ["paths", path, method.toLowerCase()];
    const taken = Object.entries(requestBody?.content ?? {}).map(([type, content]): [string[], Content] => [
      [...at, "requestBody", "content", type],
      content,
    ]);
    const answered = Object.entries(responses).flatMap(([status, { content }]) =>
      Object.entries(content ?? {}).map(([type, body]): [string[], Content] => [
        [...at, "responses", status, "content", type],
        body,
      ]),
    );
    return [...taken, ...answered];
  });
}

const examplesOf = ({ example, examples }: Content): unknown[] =>
  example === undefined ? Object.values(examples ?? {}).map(({ value }) => value) : [example];

test("every body has an example", () => {
  const all = bodies();
  expect(all.length).toBeGreaterThan(200);
  expect(all.filter(([, content]) => examplesOf(content).length === 0).map(([place]) => place)).toEqual([]);
});

test("every example fits its schema", () => {
  for (const [place, content] of bodies()) {
    for (const example of examplesOf(content)) {
      expect(contract.breach(place, example), place.join(" ")).toBeNull();
    }
  }
});

test("one that doesn't would be noticed", () => {
  const events = ["paths", "/api/v1/events", "get", "responses", "200", "content", "application/json"];
  expect(contract.breach(events, { items: [{}], next_cursor: null })).toContain(
    "must have required property",
  );
});

/** The statuses of each type of problem. */
const STATUSES: Readonly<Record<string, readonly number[]>> = {
  validation: [400, 422],
  unauthorized: [401],
  forbidden: [403],
  not_found: [404],
  method_not_allowed: [405],
  conflict: [409],
  payload_too_large: [413],
  history_too_long: [422],
  result_too_large: [422],
  relation_cycle: [422],
  not_implemented: [501],
  internal: [500],
  unavailable: [503],
};

interface Problem {
  readonly type: string;
  readonly status: number;
  readonly errors?: readonly { readonly loc: string }[];
}

/** Every problem that the document shows. */
function problems(): { operation: Operation; status: number; kind: string; problem: Problem }[] {
  return contract.operations.flatMap((operation) =>
    Object.entries(operation.responses).flatMap(([status, { content }]) =>
      Object.entries(content?.["application/problem+json"]?.examples ?? {}).map(([kind, { value }]) => ({
        operation,
        status: Number(status),
        kind,
        // Held to its schema above.
        problem: value as Problem,
      })),
    ),
  );
}

/** Whether a schema takes something at these names. Free objects take anything. */
function takes(given: Schema | undefined, names: readonly string[]): boolean {
  const [name, ...rest] = names;
  if (given === undefined) return false;
  if (name === undefined) return true;
  const { properties, items, anyOf, type, additionalProperties } = contract.resolve(given);
  if (anyOf !== undefined) return anyOf.some((part) => takes(part, names));
  if (type === "array") return /^\d+$/.test(name) && takes(items, rest);
  return additionalProperties === true || takes(properties?.[name], rest);
}

/** Whether a place exists in requests to an operation. */
function exists({ parameters, requestBody }: Operation, loc: string): boolean {
  const [place, ...names] = loc.split(".");
  if (place === "body") return takes(requestBody?.content["application/json"]?.schema, names);
  return parameters.some((parameter) => parameter.in === place && parameter.name === names.join("."));
}

test("a problem's status is the one that it stands at, and its type has that status", () => {
  expect(problems().length).toBeGreaterThan(150);
  for (const { operation, status, kind, problem } of problems()) {
    const what = `${operation.operationId} ${kind}`;
    expect([what, problem.type, problem.status]).toEqual([what, `urn:tally:error:${kind}`, status]);
    expect([what, STATUSES[kind]]).toEqual([what, expect.arrayContaining([status])]);
  }
});

test("a problem's faults lie where the operation has a place; a 400's also where none is", () => {
  let locs = 0;
  for (const { operation, status, kind, problem } of problems()) {
    const what = `${operation.operationId} ${status}`;
    expect([what, problem.errors !== undefined]).toEqual([what, kind === "validation"]);
    for (const { loc } of problem.errors ?? []) {
      const unknown = status === 400 && /^(query|body)\.colour$/.test(loc);
      expect([what, loc, unknown || exists(operation, loc)]).toEqual([what, loc, true]);
      locs += 1;
    }
  }
  expect(locs).toBeGreaterThan(30);
});

test("a place that an operation doesn't have would be noticed", () => {
  const [make] = contract.operations.filter(({ operationId }) => operationId === "createRelation");
  if (make === undefined) throw new Error("no such operation");
  for (const loc of ["body", "body.target_id", "body.metadata.pricing_adjustments.0.rate", "path.id"]) {
    expect([loc, exists(make, loc)]).toEqual([loc, true]);
  }
  for (const loc of ["query.colour", "query.id", "body.colour", "body.target_id.x", "path", "header.host"]) {
    expect([loc, exists(make, loc)]).toEqual([loc, false]);
  }
});
