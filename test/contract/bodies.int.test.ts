/**
 * Every member of every body that is taken as a whole: missing, of each wrong type, too long, empty, with what can't be
 * stored, with an unknown one beside it; and the same body when it is good. What is free within a body isn't in the
 * document: the bounds of `metadata` are tested in test/projects/registry.int.test.ts, `pricing_adjustments` in
 * adjustments.unit.test.ts and relations.int.test.ts there, those of `size_schema` in
 * test/resource-types/routes.int.test.ts.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { HOSTILE_ITEMS } from "../ingest/hostile-items.ts";
import { project, relation } from "../projects/calls.ts";
import { at, scriptedCloud } from "../reconcile/scripted-adapter.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { type Contract, type Operation, readContract, type Schema } from "./document.ts";
import { textsOf } from "./values.ts";

type Json = Readonly<Record<string, unknown>>;

/** A request that is taken. */
interface Good {
  readonly path: string;
  readonly body: Json;
}

/** Their items are judged one by one, and the answer is 200: hostile-items.ts holds the faults of every member. */
const ITEM_BY_ITEM = ["ingestEvents"];

let server: TestServer;
let contract: Contract;
let source: string;
beforeAll(async () => {
  server = await testServer({
    clouds: [scriptedCloud("eu1").cloud],
    now: () => at("2026-03-02T12:00:00Z"),
    settings: {
      sync: {
        cloudsConfig: null,
        allowAt: true,
        budgetSeconds: 45,
        settleSeconds: 60,
        intervalSeconds: 600,
        maxAbsentPercent: 20,
      },
    },
  });
  contract = await readContract(server);
  source = await project(server, "source");
});
afterAll(() => server.stop());

const another = () => project(server, randomUUID());

/** Makes a documented example good, and good again after it was taken: ids are real, names are new. */
const GOOD: Readonly<Record<string, (example: Json) => Promise<Good>>> = {
  createProject: async (example) => ({
    path: "/api/v1/projects",
    body: { ...example, external_id: randomUUID() },
  }),
  updateProject: async (body) => ({ path: `/api/v1/projects/${source}`, body }),
  createRelation: async (example) => ({
    path: `/api/v1/projects/${source}/relations`,
    body: { ...example, target_id: await another() },
  }),
  updateRelation: async (body) => {
    const since = { valid_from: "2024-01-01T00:00:00Z" };
    const id = await relation(server, source, await another(), since);
    return { path: `/api/v1/projects/${source}/relations/${id}`, body };
  },
  registerResourceType: async (body) => ({ path: "/api/v1/resource-types/openstack/thing", body }),
  rebuildProjection: async (body) => ({ path: "/internal/projection/rebuild", body }),
  syncCloud: async (body) => ({ path: "/internal/sync/eu1", body }),
};

const withBody = () => contract.operations.filter(({ requestBody }) => requestBody !== undefined);
const wholeBodies = () => withBody().filter(({ operationId }) => !ITEM_BY_ITEM.includes(operationId));
const contentOf = ({ requestBody }: Operation) => requestBody?.content["application/json"];
const schemaOf = (operation: Operation) => contract.resolve(contentOf(operation)?.schema ?? {});
const membersOf = (operation: Operation) =>
  Object.entries(schemaOf(operation).properties ?? {}).map(([name, member]): [string, Schema] => [
    name,
    contract.resolve(member),
  ]);
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;

async function goodOf(operation: Operation): Promise<Good> {
  const make = GOOD[operation.operationId];
  const example = contentOf(operation)?.example;
  if (make === undefined || !isObject(example)) throw new Error(`no good ${operation.operationId}`);
  return await make(example);
}

async function send(
  operation: Operation,
  path: string,
  body: string | Uint8Array<ArrayBuffer> | null,
  type = "application/json",
): Promise<{ status: number; locs: string[] }> {
  const token = "internalToken" in (operation.security[0] ?? {}) ? "internal" : "admin";
  const answer = await server.request(path, {
    method: operation.method,
    token: server.credentials[token],
    ...(body === null ? {} : { body, headers: { "content-type": type } }),
  });
  const problem: { errors?: { loc: string }[] } = JSON.parse(await answer.text());
  return { status: answer.status, locs: (problem.errors ?? []).map(({ loc }) => loc) };
}

const without = (body: Json, name: string): Json =>
  Object.fromEntries(Object.entries(body).filter(([other]) => other !== name));

/** A value of each JSON type, with nothing in it. */
const OF_EACH_TYPE: readonly [type: string, value: unknown][] = [
  ["null", null],
  ["boolean", true],
  ["number", 1],
  ["string", "x"],
  ["array", []],
  ["object", {}],
];
/** What text can't be stored: NUL, and half a surrogate pair. */
const UNSTORABLE = ["\0", "a\0b", "a\ud800"];

interface Values {
  readonly good: readonly unknown[];
  readonly bad: readonly unknown[];
}

/** Values that a member takes, and that it doesn't. @param own the good body's: an id is only good if it is real */
function valuesOf(schema: Schema, own: unknown): Values {
  const wrongTypes = OF_EACH_TYPE.filter(([type]) => type !== schema.type).map(([, value]) => value);
  switch (schema.type) {
    case "boolean":
      return { good: [true, false], bad: [...wrongTypes, 0, "true"] };
    case "object":
      return {
        good: [{}, { title: "ü" }],
        bad: [
          ...wrongTypes,
          ...UNSTORABLE.flatMap((text) => [{ title: text }, { examples: [{ [text]: 1 }] }]),
        ],
      };
    case "string": {
      const { good, bad } = textsOf(schema);
      const real = [String(own), String(own).toUpperCase()];
      return {
        good: schema.format === "uuid" ? real : good,
        bad: [...wrongTypes, ...bad, "", ...UNSTORABLE],
      };
    }
    default:
      throw new Error(`no values for ${JSON.stringify(schema)}`);
  }
}

test("every operation that takes a body is here, and only what is judged item by item is left out", async () => {
  const named = (operations: readonly Operation[]) => operations.map(({ operationId }) => operationId).sort();
  expect(named(withBody())).toEqual([...Object.keys(GOOD), ...ITEM_BY_ITEM].sort());
  for (const operation of withBody().filter(({ operationId }) => ITEM_BY_ITEM.includes(operationId))) {
    const token = await server.credentials.ingest("openstack", "eu1");
    const answer = await server.request(operation.path, { method: "POST", token, body: '{"colour":"red"}' });
    expect([operation.operationId, answer.status]).toEqual([operation.operationId, 200]);
    const item = contract.resolve(schemaOf(operation).anyOf?.[0] ?? {});
    const told = (member: string) => HOSTILE_ITEMS.some(({ name }) => name.startsWith(`${member} `));
    expect(Object.keys(item.properties ?? {}).length).toBeGreaterThan(9);
    expect(Object.keys(item.properties ?? {}).filter((member) => !told(member))).toEqual([]);
  }
});

test("a good body is taken: the example, each member's good values, and without what it may leave out", async () => {
  for (const operation of wholeBodies()) {
    const { operationId } = operation;
    const taken = async (what: readonly string[], path: string, body: string | null) => {
      const { status, locs } = await send(operation, path, body);
      const answer = { isGood: status >= 200 && status < 300, locs };
      expect([operationId, ...what, answer]).toEqual([operationId, ...what, { isGood: true, locs: [] }]);
    };
    const example = await goodOf(operation);
    await taken(["the example"], example.path, JSON.stringify(example.body));
    if (operation.requestBody?.required !== true) await taken(["no body"], example.path, null);
    for (const [member, schema] of membersOf(operation)) {
      const { length } = valuesOf(schema, "").good;
      for (let n = 0; n < length; n++) {
        const { path, body } = await goodOf(operation);
        const value = valuesOf(schema, body[member]).good[n];
        await taken([member, JSON.stringify(value)], path, JSON.stringify({ ...body, [member]: value }));
      }
      const { path, body } = await goodOf(operation);
      const rest = without(body, member);
      const mayBeEmpty = schemaOf(operation).minProperties === undefined || Object.keys(rest).length > 0;
      if (schemaOf(operation).required?.includes(member) !== true && mayBeEmpty)
        await taken([member, "left out"], path, JSON.stringify(rest));
    }
  }
});

test("a bad body is refused at the place of its fault, and does nothing", async () => {
  const refusals = new Map<string, number>();
  for (const operation of wholeBodies()) {
    const { operationId, requestBody } = operation;
    const { path, body } = await goodOf(operation);
    const refused = async (
      [member, ...what]: readonly [member: string, ...what: string[]],
      loc: string,
      sent: string | Uint8Array<ArrayBuffer> | null,
      type?: string,
    ) => {
      const answer = await send(operation, path, sent, type);
      expect([operationId, member, ...what, answer]).toEqual([
        operationId,
        member,
        ...what,
        { status: 400, locs: [loc] },
      ]);
      const counted = `${operationId} ${member}`;
      refusals.set(counted, (refusals.get(counted) ?? 0) + 1);
    };
    const before = await written();

    for (const [member, schema] of membersOf(operation)) {
      const loc = `body.${member}`;
      for (const value of valuesOf(schema, body[member]).bad) {
        await refused([member, JSON.stringify(value)], loc, JSON.stringify({ ...body, [member]: value }));
      }
      if (schemaOf(operation).required?.includes(member) === true)
        await refused([member, "left out"], loc, JSON.stringify(without(body, member)));
      const shouted = member.toUpperCase();
      await refused([member, "shouted"], `body.${shouted}`, JSON.stringify({ ...body, [shouted]: 1 }));
    }
    for (const unknown of ["colour", "", "__proto__", "constructor"]) {
      const sent = JSON.stringify({ ...body, [unknown]: "\0" });
      await refused(["unknown members", unknown], `body.${unknown}`, sent);
    }

    for (const [type, value] of OF_EACH_TYPE.filter(([each]) => each !== "object")) {
      await refused(["the body", type], "body", JSON.stringify(value));
    }
    await refused(["the body", "in a list"], "body", JSON.stringify([body]));
    await refused(["the body", "broken off"], "body", JSON.stringify(body).slice(0, -1));
    await refused(["the body", "not UTF-8"], "body", new Uint8Array([0x22, 0xff, 0x22]));
    await refused(["the body", "of another type"], "body", JSON.stringify(body), "text/plain");
    if (requestBody?.required === true) await refused(["the body", "missing"], "body", null);
    if (schemaOf(operation).minProperties !== undefined) await refused(["the body", "empty"], "body", "{}");

    expect([operationId, await written()]).toEqual([operationId, before]);
  }

  const all = wholeBodies().flatMap((operation) => [
    ...membersOf(operation).map(([member]) => `${operation.operationId} ${member}`),
    `${operation.operationId} unknown members`,
    `${operation.operationId} the body`,
  ]);
  expect([...refusals.keys()]).toEqual(all);
  // Five wrong types and a name in capitals at least.
  const few = [...refusals].filter(([what, times]) => times < (what.endsWith("unknown members") ? 4 : 6));
  expect(few).toEqual([]);
});

/** How many writes and runs there were. */
async function written(): Promise<number> {
  const [row]: { n: number }[] = await server.db.db`
    SELECT ((SELECT count(*) FROM audit_log) + (SELECT count(*) FROM sync_runs))::int AS n`;
  return row?.n ?? -1;
}
