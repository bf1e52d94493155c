/**
 * Every status that the document names is one that a request brings about, and none else is seen; every problem that
 * it shows is one that a request is told, word by word. What takes a broken database is elsewhere:
 * unavailable.int.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { type Contract, type Operation, readContract } from "./document.ts";
import { type Call, makeScene, type Scene } from "./statuses.ts";

const LEFT_OUT = ["500", "503"];
/** One byte more than a body may have, packed. */
const BOMB = gzipSync(new Uint8Array(32 * 1024 * 1024 + 1));

/** What was answered, with its body read. */
interface Seen {
  readonly status: string;
  readonly body: unknown;
}

let scene: Scene;
let contract: Contract;
const seen = new Map<string, Seen[]>();
beforeAll(async () => {
  scene = await makeScene();
  contract = await readContract(scene.server);
});
afterAll(() => scene.stop());

function tokenOf({ security }: Operation): string | null {
  const { credentials } = scene.server;
  const tokens = {
    apiToken: credentials.admin,
    ingestToken: scene.ingest,
    internalToken: credentials.internal,
  };
  for (const [scheme, token] of Object.entries(tokens)) if (scheme in (security[0] ?? {})) return token;
  return null;
}

/** Calls an operation, and keeps what it answers. */
async function ask(operation: Operation, call: Call, init: RequestInit & { token?: string | null } = {}) {
  const { token = call.small ? scene.small : tokenOf(operation), ...rest } = init;
  const answer = await scene.server.request(call.path, {
    method: operation.method,
    ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
    ...rest,
    ...(token === null ? {} : { token }),
  });
  const told = `${operation.operationId} ${call.path}`;
  const text = await answer.clone().text();
  expect([told, await contract.fault(operation, answer)]).toEqual([told, null]);
  const problem = answer.status >= 400;
  const kept = seen.get(operation.operationId) ?? [];
  seen.set(operation.operationId, kept);
  kept.push({ status: String(answer.status), body: problem ? JSON.parse(text) : null });
  return answer.status;
}

/** What comes alike everywhere, asked of every operation, whether the document names it there or not. */
async function askCommon(operation: Operation, good: Call): Promise<void> {
  await ask(operation, good, { token: null });
  if ("apiToken" in (operation.security[0] ?? {})) await ask(operation, good, { token: scene.small });
  if (operation.method === "GET") await ask(operation, good, { headers: { "if-none-match": "*" } });
  else {
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    await ask(operation, good, { headers, body: BOMB });
  }
  const query = good.path.includes("?") ? "&colour=red" : "?colour=red";
  await ask(operation, { ...good, path: good.path + query });
}

describe.serial("every status", () => {
  test("of the table is answered", async () => {
    for (const operation of contract.operations) {
      const calls = Object.entries(scene.calls[operation.operationId] ?? {});
      for (const [status, call] of calls) {
        for (const each of [call].flat()) {
          const told = `${operation.operationId} ${each.path}`;
          expect([told, await ask(operation, each)]).toEqual([told, Number(status)]);
        }
      }
      const [good] = calls.flatMap(([, call]) => call);
      if (good !== undefined) await askCommon(operation, good);
    }
  }, 60_000);

  test("that was seen is in the document, and the other way round", () => {
    const pairs = (statuses: (operation: Operation) => Iterable<string>) =>
      contract.operations.map((operation) => [
        operation.operationId,
        [...new Set(statuses(operation))].filter((status) => !LEFT_OUT.includes(status)).sort(),
      ]);
    const documented = pairs(({ responses }) => Object.keys(responses));
    expect(pairs(({ operationId }) => (seen.get(operationId) ?? []).map(({ status }) => status))).toEqual(
      documented,
    );
    expect(Object.keys(scene.calls).sort()).toEqual(documented.map(([id]) => String(id)).sort());
  });

  test("of a problem has examples that are what a request was told", () => {
    let compared = 0;
    for (const { operationId, responses } of contract.operations) {
      for (const [status, { content }] of Object.entries(responses)) {
        if (LEFT_OUT.includes(status)) continue;
        const examples = content?.["application/problem+json"]?.examples ?? {};
        const told = (seen.get(operationId) ?? []).filter((answer) => answer.status === status);
        for (const { value } of Object.values(examples)) {
          const what = `${operationId} ${status}`;
          expect([what, told.map(({ body }) => body)]).toEqual([what, expect.arrayContaining([value])]);
          compared += 1;
        }
      }
    }
    expect(compared).toBeGreaterThan(90);
  });
});
