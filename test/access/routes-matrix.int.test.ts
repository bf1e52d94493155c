import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { revoke } from "../../src/access/credentials.ts";
import { tokenSha256 } from "../../src/access/tokens.ts";
import { readSettings } from "../../src/settings.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
let tokens: Record<"admin" | "read_all" | "project" | "ingest" | "revoked" | "unknown" | "internal", string>;

beforeAll(async () => {
  server = await testServer();
  const { db } = server.db;
  const [project]: { id: string }[] = await db`
    INSERT INTO projects (platform, cloud, external_id) VALUES ('openstack', 'eu1', 'p1') RETURNING id::text AS id`;
  if (project === undefined) throw new Error("no project");
  const ingest = await server.credentials.ingest("openstack", "eu1");
  const revoked = await server.credentials.project([project.id]);
  await db`UPDATE api_tokens SET revoked_at = now() WHERE token_sha256 = decode(${tokenSha256(revoked)}, 'hex')`;
  tokens = {
    admin: server.credentials.admin,
    read_all: server.credentials.readAll,
    project: await server.credentials.project([project.id]),
    ingest,
    revoked,
    unknown: `tly_a_${"0".repeat(64)}`,
    internal: server.credentials.internal,
  };
  const sent = await server.request("/api/v1/events", {
    method: "POST",
    token: ingest,
    body: JSON.stringify({
      event_id: "e1",
      timestamp: "2026-03-01T00:00:00Z",
      event_type: "volume.create.end",
      platform: "openstack",
      cloud: "eu1",
      resource_type: "volume",
      resource_id: "v1",
      project_id: "p1",
      payload: { state: "available", size: { size_gb: 10, type: "ssd" } },
    }),
  });
  expect(await sent.json()).toEqual({ accepted: 1, duplicates: 0, rejected: [] });
});
afterAll(() => server.stop());

const document = JSON.stringify({ size_schema: { type: "object" } });
/** Method, path, body, and the status for (project, read_all, admin). */
const routes: [string, string, string | undefined, [number, number, number]][] = [
  ["GET", "/api/v1/events", undefined, [200, 200, 200]],
  ["GET", "/api/v1/resources", undefined, [200, 200, 200]],
  ["GET", "/api/v1/resources/eu1/volume/v1/events", undefined, [200, 200, 200]],
  ["GET", "/api/v1/resources/eu1/volume/v1/lifecycle", undefined, [200, 200, 200]],
  ["GET", "/api/v1/rejected-events", undefined, [403, 403, 200]],
  ["POST", "/api/v1/rejected-events/retry", undefined, [403, 403, 200]],
  ["GET", "/api/v1/audit-log", undefined, [403, 403, 200]],
  ["GET", "/api/v1/sync-runs", undefined, [403, 200, 200]],
  ["GET", "/api/v1/resource-types", undefined, [200, 200, 200]],
  ["GET", "/api/v1/resource-types/openstack/volume", undefined, [200, 200, 200]],
  ["PUT", "/api/v1/resource-types/openstack/router", document, [403, 403, 200]],
];

const call = (method: string, path: string, body: string | undefined, headers: Record<string, string>) =>
  server.request(path, { method, headers, ...(body === undefined ? {} : { body }) });

describe.each(routes)("%s %s", (method, path, body, allowed) => {
  test.each(["project", "read_all", "admin"] as const)("as %s", async (role) => {
    const expected = allowed[["project", "read_all", "admin"].indexOf(role)];
    const answer = await call(method, path, body, { authorization: `Bearer ${tokens[role]}` });
    expect(answer.status).toBe(expected ?? 0);
    if (expected === 403) expect(await answer.json()).toMatchObject({ type: "urn:tally:error:forbidden" });
  });

  test.each([
    ["no header", () => ({})],
    ["an empty header", () => ({ authorization: "" })],
    ["the token without its scheme", () => ({ authorization: tokens.admin })],
    ["another scheme", () => ({ authorization: `Basic ${tokens.admin}` })],
    ["two tokens", () => ({ authorization: `Bearer ${tokens.admin} ${tokens.admin}` })],
    ["two tokens in a list", () => ({ authorization: `Bearer ${tokens.admin}, Bearer ${tokens.admin}` })],
    ["half a token", () => ({ authorization: `Bearer ${tokens.admin.slice(0, 40)}` })],
    ["an ingest token", () => ({ authorization: `Bearer ${tokens.ingest}` })],
    ["the internal token", () => ({ authorization: `Bearer ${tokens.internal}` })],
    ["a revoked token", () => ({ authorization: `Bearer ${tokens.revoked}` })],
    ["an unknown token", () => ({ authorization: `Bearer ${tokens.unknown}` })],
    ["the token's hash", () => ({ authorization: `Bearer tly_a_${tokenSha256(tokens.admin)}` })],
  ] as [string, () => Record<string, string>][])("%s: 401", async (_, headers) => {
    const answer = await call(method, path, body, headers());
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(await answer.json()).toMatchObject({
      type: "urn:tally:error:unauthorized",
      status: 401,
      detail: "this route takes a bearer token, a live API token (tly_a_…): tally token create issues one",
    });
  });
});

describe("callers", () => {
  test.each([
    ["ingest", "/api/v1/events", "a live ingest token (tly_i_…): tally credential create issues one"],
    [
      "internal",
      "/internal/projection/rebuild",
      "the internal token: TALLY_REPORTING_INTERNAL_TOKEN, or else the data directory's file internal-token",
    ],
  ])("whose token is of another scheme are told which one it takes: %s", async (_, path, needed) => {
    const answer = await call("POST", path, "[]", { authorization: `Bearer ${tokens.admin}` });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ detail: `this route takes a bearer token, ${needed}` });
  });

  test("the scheme's name may be in any case", async () => {
    const answer = await call("GET", "/api/v1/events", undefined, {
      authorization: `bEaReR ${tokens.admin}`,
    });
    expect(answer.status).toBe(200);
  });

  test("a faulty request of an unknown caller is 401, of a small role 403: neither learns of its faults", async () => {
    const path = "/api/v1/rejected-events?nonsense=1";
    expect((await server.request(path)).status).toBe(401);
    expect((await server.request(path, { token: tokens.project })).status).toBe(403);
    expect((await server.request(path, { token: tokens.admin })).status).toBe(400);
  });

  test("a revoked token is refused at the next request", async () => {
    const token = await server.credentials.project(["00000000-0000-4000-8000-000000000001"]);
    expect((await server.request("/api/v1/events", { token })).status).toBe(200);
    const [row]: { id: string }[] = await server.db.db`
      SELECT id::text AS id FROM api_tokens WHERE token_sha256 = decode(${tokenSha256(token)}, 'hex')`;
    await revoke(server.db.db, "api", row?.id ?? "", "test");
    expect((await server.request("/api/v1/events", { token })).status).toBe(401);
  });

  test("a token whose projects the registry doesn't know sees nothing", async () => {
    const token = await server.credentials.project(["00000000-0000-4000-8000-000000000002"]);
    for (const path of ["/api/v1/events", "/api/v1/resources?status=all"]) {
      expect(await (await server.request(path, { token })).text()).toBe('{"items":[],"next_cursor":null}');
    }
    expect((await server.request("/api/v1/resources/eu1/volume/v1/lifecycle", { token })).status).toBe(404);
  });

  test("an ingest token writes and an API token doesn't", async () => {
    const post = (token: string) => server.request("/api/v1/events", { method: "POST", token, body: "[]" });
    expect((await post(tokens.ingest)).status).toBe(200);
    expect((await post(tokens.admin)).status).toBe(401);
    expect((await post(tokens.internal)).status).toBe(401);
  });

  test("the internal routes take the internal token only, and nothing where none is set", async () => {
    const rebuild = (at: TestServer, token?: string) =>
      at.request("/internal/projection/rebuild", {
        method: "POST",
        ...(token === undefined ? {} : { token }),
      });
    expect((await rebuild(server, tokens.internal)).status).toBe(200);
    expect((await rebuild(server, `${tokens.internal}x`)).status).toBe(401);
    expect((await rebuild(server, tokens.admin)).status).toBe(401);
    expect((await rebuild(server)).status).toBe(401);
    const closed = await testServer({
      db: server.db,
      settings: { auth: { mode: "enforced", internalToken: null } },
    });
    expect((await rebuild(closed, tokens.internal)).status).toBe(401);
    expect((await rebuild(closed, "null")).status).toBe(401);
    await closed.stop();
  });

  test("an internal token of any characters that the setting takes is let in", async () => {
    const env = { TALLY_REPORTING_INTERNAL_TOKEN: "pa=s:w!o@r{d},~" };
    const { auth } = readSettings(env);
    const chosen = await testServer({ db: server.db, settings: { auth } });
    const answer = await chosen.request("/internal/projection/rebuild", {
      method: "POST",
      token: env.TALLY_REPORTING_INTERNAL_TOKEN,
    });
    expect(answer.status).toBe(200);
    await chosen.stop();
  });

  test("with the checks switched off everybody is everything", async () => {
    const open = await testServer({
      db: server.db,
      settings: { auth: { mode: "disabled", internalToken: null } },
    });
    for (const [method, path, body] of routes) {
      const answer = await open.request(path, { method, ...(body === undefined ? {} : { body }) });
      expect(answer.status).toBe(200);
    }
    await open.stop();
    const [row]: { actor: string }[] = await server.db.db`
      SELECT actor FROM audit_log WHERE action = 'resource_type.put' ORDER BY id DESC LIMIT 1`;
    expect(row?.actor).toBe("auth-disabled");
  });

  test("no token is ever logged", () => {
    const lines = JSON.stringify(server.logged);
    expect(server.logged.length).toBeGreaterThan(50);
    for (const token of Object.values(tokens)) expect(lines).not.toContain(token);
  });
});
