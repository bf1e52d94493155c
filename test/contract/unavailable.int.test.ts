/** While the database can't be reached, every operation that needs it says so, and when to come back. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Database } from "../../src/database/connection.ts";
import { openPool } from "../../src/database/pool.ts";
import { scriptedCloud } from "../reconcile/scripted-adapter.ts";
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
    settings: { auth: { mode: "disabled", internalToken: null }, unhealthyThresholdSeconds: 0 },
    clouds: [scriptedCloud("x").cloud],
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

/** The operations that document a 503, those of a problem and those of a text. */
function unavailable(told: "application/problem+json" | "text/plain"): Operation[] {
  return contract.operations.filter(({ responses }) => responses[503]?.content?.[told] !== undefined);
}

test("503 with Retry-After, and no word of where the database is", async () => {
  const needing = unavailable("application/problem+json");
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

test("503 in words where the process is asked how it is", async () => {
  const told: Record<string, string> = {};
  // Health goes by what readiness found, so that readiness is asked first.
  for (const operation of unavailable("text/plain").toReversed()) {
    const answer = await ask(operation);
    expect([operation.operationId, answer.status]).toEqual([operation.operationId, 503]);
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    told[operation.operationId] = await answer.text();
  }
  expect(told).toEqual({
    getReadiness: "the database can't be reached\n",
    getHealth: expect.stringMatching(/^not ready for \d+ seconds: the database can't be reached\n$/),
  });
});

test("all that document a 503 were asked, and the others need no database", async () => {
  const asked = [...unavailable("application/problem+json"), ...unavailable("text/plain")];
  const others = contract.operations.filter((operation) => !asked.includes(operation));
  expect(others.filter(({ responses }) => "503" in responses)).toEqual([]);
  expect(others.length).toBe(3);
  for (const operation of others) {
    expect([operation.operationId, (await ask(operation)).status]).toEqual([operation.operationId, 200]);
  }
});
