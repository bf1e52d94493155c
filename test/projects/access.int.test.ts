/** Who may do what with the registry. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { auditCount, project, relation } from "./calls.ts";

let server: TestServer;
let own: string;
let other: string;
let related: string;
let tokens: Record<"project" | "read_all" | "admin", string>;
beforeAll(async () => {
  server = await testServer();
  own = await project(server, "own");
  other = await project(server, "other");
  related = await relation(server, own, other);
  tokens = {
    project: await server.credentials.project([own]),
    read_all: server.credentials.readAll,
    admin: server.credentials.admin,
  };
});
afterAll(() => server.stop());

const WINDOW = "from=2026-03-01T00:00:00Z&to=2026-04-01T00:00:00Z";
/** Method, path, body, and the status for (project, read_all, admin). */
const routes: [string, () => string, (() => string) | undefined, [number, number, number]][] = [
  ["GET", () => "/api/v1/projects", undefined, [403, 200, 200]],
  [
    "POST",
    () => "/api/v1/projects",
    () => '{"platform":"p","cloud":"c","external_id":"new"}',
    [403, 403, 201],
  ],
  ["GET", () => `/api/v1/projects/${own}`, undefined, [403, 200, 200]],
  ["PATCH", () => `/api/v1/projects/${own}`, () => '{"name":"n"}', [403, 403, 200]],
  ["GET", () => `/api/v1/projects/${own}/summary?${WINDOW}`, undefined, [200, 200, 200]],
  ["GET", () => `/api/v1/projects/${other}/summary?${WINDOW}`, undefined, [404, 200, 200]],
  ["GET", () => `/api/v1/projects/${own}/relations`, undefined, [403, 200, 200]],
  [
    "POST",
    () => `/api/v1/projects/${other}/relations`,
    () => JSON.stringify({ target_id: own, relation_type: "t" }),
    [403, 403, 201],
  ],
  [
    "PATCH",
    () => `/api/v1/projects/${own}/relations/${related}`,
    () => '{"metadata":{"a":1}}',
    [403, 403, 200],
  ],
  ["GET", () => `/api/v1/projects/${own}/related`, undefined, [403, 200, 200]],
  ["DELETE", () => `/api/v1/projects/${own}/relations/${related}`, undefined, [403, 403, 204]],
];
const call = (method: string, path: string, body: string | undefined, token: string | undefined) =>
  server.request(path, {
    method,
    ...(body === undefined ? {} : { body }),
    ...(token === undefined ? {} : { token }),
  });

describe.each(routes.map(([method, path, body, allowed], at) => ({ at, method, path, body, allowed })))(
  "route $at, $method",
  ({ method, path, body, allowed }) => {
    test.each(["project", "read_all", "admin"] as const)("as %s", async (role) => {
      const expected = allowed[["project", "read_all", "admin"].indexOf(role)] ?? 0;
      const before = await auditCount(server);
      const answer = await call(method, path(), body?.(), tokens[role]);
      expect(answer.status).toBe(expected);
      if (expected === 403) expect(await answer.json()).toMatchObject({ type: "urn:tally:error:forbidden" });
      // Every write leaves one row, and what is refused or only read none.
      const writes = method !== "GET" && expected < 300 ? 1 : 0;
      expect(await auditCount(server)).toBe(before + writes);
    });

    test("without a token, or with another scheme's: 401", async () => {
      const ingest = await server.credentials.ingest("openstack", "eu1");
      for (const token of [undefined, ingest, server.credentials.internal, `tly_a_${"0".repeat(64)}`]) {
        const answer = await call(method, path(), body?.(), token);
        expect(answer.status).toBe(401);
        expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      }
    });

    test("whoever may not call it learns nothing of its faults", async () => {
      const faulty = `${path()}${path().includes("?") ? "&" : "?"}nonsense=1`;
      expect((await call(method, faulty, body?.(), undefined)).status).toBe(401);
      if (allowed[0] === 403) expect((await call(method, faulty, body?.(), tokens.project)).status).toBe(403);
      expect((await call(method, faulty, body?.(), tokens.admin)).status).toBe(400);
    });
  },
);
