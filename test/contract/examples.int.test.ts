/** Every body in the document has an example, and each example is what its schema says. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { type Content, type Contract, readContract } from "./document.ts";

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
