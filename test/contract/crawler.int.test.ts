/**
 * Every operation of the served document, with generated good and bad input: never a fault of ours, only documented
 * statuses, every answer valid against its schema, with no member that the schema doesn't name. What fails is printed
 * with its seed: TEST_SEED=… runs it again.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { EVENT } from "../../src/inventory/examples.ts";
import { readSettings } from "../../src/settings.ts";
import { seedOfRun } from "../ingest/history-generator.ts";
import { send } from "../inventory/calls.ts";
import { project, relation } from "../projects/calls.ts";
import { instance, scriptedCloud } from "../reconcile/scripted-adapter.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { type Contract, type Operation, readContract, type Schema } from "./document.ts";
import { type Known, type MadeRequest, requestsTo } from "./requests.ts";

const RUNS = 60;
const PROBLEM = "application/problem+json";

let server: TestServer;
let contract: Contract;
let known: Known;
/** What `id` in a path may be. */
let ids: { projects: string[]; letters: string[] };
/** By scheme: the first is right, the others are wrong or too small. */
let tokens: Record<string, readonly (string | null)[]>;

beforeAll(async () => {
  const { sync } = readSettings({ HOME: "/nowhere", TALLY_REPORTING_SYNC_ALLOW_AT: "true" });
  const { cloud, script } = scriptedCloud("eu1");
  // Every run finds something to book.
  script.beforeListing = async () => {
    script.resources.push(instance(`found${script.resources.length}`));
  };
  server = await testServer({ clouds: [cloud], settings: { sync } });
  const projects = [await project(server, "p1"), await project(server, "p2")];
  const [from = "", to = ""] = projects;
  const related = await relation(server, from, to);
  await send(server, [
    { id: "e1", at: "2026-03-01T00:00:00Z", type: "thing.create" },
    { id: "e2", at: "2026-03-02T00:00:00.25Z", project: "p2" },
    { id: "e3", at: "2026-03-03T00:00:00Z", type: "thing.delete", payload: null, project: "p2" },
    { id: "e4", at: "2026-03-01T00:00:00Z", type: "thing.create", resource: "a/b ü" },
  ]);
  const ingest = await server.credentials.ingest("openstack", "eu1");
  await server.request("/api/v1/events", { method: "POST", token: ingest, body: '[1,{"cloud":"eu1"},"x"]' });
  await server.db.db`
    INSERT INTO sync_runs (started_at, finished_at, cloud, platform, status, stats)
    VALUES (now(), now(), 'eu1', 'openstack', 'completed', '{"created":1}'), (now(), NULL, 'eu2', 'x', 'running', '{}')`;
  const letters: { id: string }[] = await server.db.db`SELECT id::text AS id FROM rejected_events`;
  const type = { method: "PUT", token: server.credentials.admin, body: '{"size_schema":{}}' };
  await server.request("/api/v1/resource-types/openstack/thing", type);
  contract = await readContract(server);
  ids = { projects, letters: letters.map(({ id }) => id) };
  known = {
    relation_id: [related],
    target_id: projects,
    platform: ["openstack", "meta"],
    cloud: ["eu1", "eu2", "meta"],
    resource_type: ["thing", "volume"],
    resource_id: ["r1", "a/b ü"],
    project_id: ["p1", "p2"],
    external_id: ["p1"],
    relation_type: ["infrastructure_tenant", "member_of"],
    event_type: ["thing.create", "thing.delete", "thing.update"],
    event_id: ["e1", "e9", "é"],
    timestamp: ["2026-03-05T00:00:00Z", "2026-03-01T00:00:00.000001+02:00"],
    payload: [{ state: "on", size: { n: 1 } }, { state: "off" }, null],
    source: ["collector"],
    state: ["on"],
    from: ["2026-03-01T00:00:00Z"],
    to: ["2026-04-01T00:00:00Z"],
    at: ["2026-03-02T00:00:00Z"],
    limit: [1, 2, 1000],
    dry_run: [true, false],
    size_schema: [{}, { type: "object" }, { $ref: "https://elsewhere.example/x" }, { pattern: "(" }],
    metadata: [
      {},
      { pricing_adjustments: [{ type: "discount", rate: "0.1", scope: "all" }] },
      { pricing_adjustments: [{ type: "gift", rate: 2 }] },
    ],
  };
  tokens = {
    apiToken: [
      server.credentials.admin,
      server.credentials.readAll,
      await server.credentials.project([from]),
      ingest,
      null,
    ],
    ingestToken: [ingest, server.credentials.admin, "nonsense", null],
    internalToken: [server.credentials.internal, "x", null],
  };
});
afterAll(() => server.stop());

function credential(operation: Operation): fc.Arbitrary<string | null> {
  const scheme = Object.keys(operation.security[0] ?? {})[0];
  const [right = null, ...others] = tokens[scheme ?? ""] ?? [];
  if (others.length === 0) return fc.constant(right);
  return fc.oneof(
    { weight: 9, arbitrary: fc.constant(right) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  );
}

async function call(operation: Operation, made: MadeRequest, token: string | null): Promise<Response> {
  const headers: Record<string, string> = { ...made.headers };
  // A header carries bytes; what fetch itself refuses never gets to the server.
  if (headers["x-request-id"] !== undefined) headers["x-request-id"] = "not visible";
  return await server.request(made.path, {
    method: operation.method,
    headers,
    ...(token === null ? {} : { token }),
    ...(made.body === null ? {} : { body: made.body }),
  });
}

/** What an operation has yet to answer: well, and with something in each list that its good answer has. */
function wanted(operation: Operation): string[] {
  const good = Object.entries(operation.responses).flatMap(([status, { content }]) =>
    status < "300" ? [content?.["application/json"]?.schema ?? {}] : [],
  );
  const holdsObjects = ({ items }: Schema) =>
    items !== undefined && contract.resolve(items).properties !== undefined;
  const lists = good.flatMap((schema) =>
    Object.entries(contract.resolve(schema).properties ?? {}).flatMap(([name, member]) =>
      holdsObjects(member) ? [`something in ${name}`] : [],
    ),
  );
  return ["a good answer", ...lists];
}

/** What an answer is of what is wanted. */
function brought({ status, headers }: Pick<Response, "status" | "headers">, text: string): string[] {
  if (status >= 300) return [];
  if (text === "" || headers.get("content-type") !== "application/json") return ["a good answer"];
  const body: Record<string, unknown> = JSON.parse(text);
  const filled = Object.entries(body).filter(([, value]) => Array.isArray(value) && value.length > 0);
  return ["a good answer", ...filled.map(([name]) => `something in ${name}`)];
}

/** Calls one operation `RUNS` times. @returns what of the wanted it answered. */
async function crawl(operation: Operation, seed: number): Promise<Set<string>> {
  const seen = new Set<string>();
  const id = operation.path.includes("/projects") ? ids.projects : ids.letters;
  const requests = requestsTo(contract, operation, { ...known, id });
  await fc.assert(
    fc.asyncProperty(requests, credential(operation), async (made, token) => {
      const answer = await call(operation, made, token);
      for (const what of brought(answer, await answer.clone().text())) seen.add(what);
      const fault = await contract.fault(operation, answer);
      if (fault !== null) throw new Error(`TEST_SEED=${seed} ${operation.method} ${made.path}: ${fault}`);
    }),
    { seed, numRuns: RUNS, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: true },
  );
  return seen;
}

test("no generated request brings a fault of ours, an undocumented status or an answer that breaks its schema", async () => {
  const seed = seedOfRun();
  expect(contract.operations.length).toBeGreaterThan(20);
  for (const operation of contract.operations) {
    // The crawler gets in: it goes on until it has seen all that is wanted of each.
    let missing = wanted(operation);
    for (let round = 0; round < 20 && missing.length > 0; round++) {
      const seen = await crawl(operation, seed + round);
      missing = missing.filter((what) => !seen.has(what));
    }
    expect([operation.operationId, missing], `TEST_SEED=${seed}`).toEqual([operation.operationId, []]);
  }
}, 120_000);

test("the crawler would notice", async () => {
  const [operation] = contract.operations.filter(({ operationId }) => operationId === "listEvents");
  if (operation === undefined) throw new Error("no such operation");
  const fault = (status: number, body: string, type = "application/json") =>
    contract.fault(operation, new Response(body, { status, headers: { "content-type": type } }));
  expect(await fault(200, '{"items":[],"next_cursor":null}')).toBeNull();
  expect(await fault(200, '{"items":[]}')).toContain("must have required property 'next_cursor'");
  expect(await fault(200, '{"items":[{}],"next_cursor":null}')).toContain("must have required property");
  expect(await fault(200, '{"items":[],"next_cursor":null,"total":0}')).toContain(
    "must NOT have additional properties",
  );
  const item = JSON.stringify({ ...EVENT, colour: "red" });
  expect(await fault(200, `{"items":[${item}],"next_cursor":null}`)).toContain(
    "items/0 must NOT have additional properties",
  );
  expect(await fault(400, '{"type":"x","title":"x","status":400,"stack":"x"}', PROBLEM)).toContain(
    "must NOT have additional properties",
  );
  expect(await fault(200, "x", "text/plain")).toContain("text/plain isn't documented");
  expect(await fault(404, "{}", PROBLEM)).toContain("an undocumented status");
  expect(await fault(503, "{}", PROBLEM)).toContain("a fault of ours");
  expect(wanted(operation)).toEqual(["a good answer", "something in items"]);
  const nothing = '{"items":[],"next_cursor":null}';
  const page = new Response(nothing, { headers: { "content-type": "application/json" } });
  expect(brought(page, nothing)).toEqual(["a good answer"]);
});
