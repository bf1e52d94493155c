/** While the database can't be reached, every operation that needs it says so, and when to come back. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Database } from "../../src/database/connection.ts";
import { openPool } from "../../src/database/pool.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { type Contract, type Operation, readContract } from "./document.ts";

/** Good values of what a request can't do without. */
const VALUES: Readonly<Record<string, string>> = {
  group_by: "cloud,resource_type",
  from: "2026-03-01T00:00:00Z",
  to: "2026-04-01T00:00:00Z",
  interval: "1d",
  id: "00000000-0000-4000-8000-000000000001",
  relation_id: "00000000-0000-4000-8000-000000000002",
};

let server: TestServer;
let nowhere: Database;
let alone: TestServer;
let contract: Contract;
beforeAll(async () => {
  server = await testServer();
  contract = await readContract(server);
  // Nothing listens there, and no caller is looked up there before the operation's own statements.
  nowhere = openPool({ url: "postgres://tally:hush@127.0.0.1:1/tally" }, { maxConnections: 2 });
  alone = await testServer({
    db: { ...server.db, db: nowhere },
    settings: { auth: { mode: "disabled", internalToken: null } },
    credentials: false,
  });
});
afterAll(async () => {
  await alone.stop();
  await nowhere.close();
  await server.stop();
});

function ask({ path, method, parameters, requestBody }: Operation): Promise<Response> {
  const value = (name: string) =>
    name === "group_by" && path.endsWith("/events") ? "cloud,event_type" : (VALUES[name] ?? "x");
  const query = parameters
    .filter((parameter) => parameter.in === "query" && parameter.required)
    .map(({ name }) => `${name}=${encodeURIComponent(value(name))}`);
  const body = requestBody?.content["application/json"]?.example;
  return alone.request(`${path.replace(/\{(\w+)\}/g, (_, name) => value(name))}?${query.join("&")}`, {
    method,
    ...(requestBody === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

test("503 with Retry-After, and no word of where the database is", async () => {
  // A cloud that isn't configured is told without asking the database.
  const needing = contract.operations.filter(
    ({ security, path }) => security.length > 0 && path !== "/internal/sync/{cloud}",
  );
  expect(needing.length).toBeGreaterThan(20);
  for (const operation of needing) {
    const what = `${operation.method} ${operation.path}`;
    const answer = await ask(operation);
    const text = await answer.text();
    expect({ what, status: answer.status, text }).toMatchObject({ what, status: 503 });
    expect(answer.headers.get("retry-after"), what).toBe("5");
    expect(JSON.parse(text), what).toEqual({
      type: "urn:tally:error:unavailable",
      title: "The database can't be reached",
      status: 503,
    });
  }
});
