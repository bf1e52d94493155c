/** The document says what the app does: no more, no less. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import componentSchemas from "../data/component-schemas.json";
import { type TestServer, testServer } from "../support/server.ts";

interface Schema {
  $ref?: string;
  $id?: string;
  type?: string | string[];
  format?: string;
  pattern?: string;
  enum?: unknown[];
  description?: string;
  nullable?: boolean;
  items?: Schema;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
}
interface Operation {
  operationId: string;
  summary: string;
  tags: string[];
  security: Record<string, unknown[]>[];
  parameters: { name: string; in: string; required: boolean; description?: string; schema: Schema }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>;
}
interface Document {
  openapi: string;
  info: Record<string, unknown>;
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    securitySchemes: Record<string, Schema & { scheme: string }>;
  };
}

let server: TestServer;
let text: string;
let document: Document;
beforeAll(async () => {
  server = await testServer();
  text = await (await server.request("/openapi.json")).text();
  document = JSON.parse(text);
});
afterAll(() => server.stop());

function operations(): [name: string, operation: Operation][] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
}

/** Where the API is and which credential it takes. */
const ROUTES: Record<string, string | null> = {
  "POST /api/v1/events": "ingestToken",
  "GET /api/v1/events": "apiToken",
  "GET /api/v1/resources": "apiToken",
  "GET /api/v1/resources/{cloud}/{resource_type}/{resource_id}/events": "apiToken",
  "GET /api/v1/resources/{cloud}/{resource_type}/{resource_id}/lifecycle": "apiToken",
  "GET /api/v1/stats/resources": "apiToken",
  "GET /api/v1/stats/events": "apiToken",
  "GET /api/v1/rejected-events": "apiToken",
  "POST /api/v1/rejected-events/{id}/retry": "apiToken",
  "POST /api/v1/rejected-events/retry": "apiToken",
  "GET /api/v1/audit-log": "apiToken",
  "GET /api/v1/sync-runs": "apiToken",
  "GET /api/v1/projects": "apiToken",
  "POST /api/v1/projects": "apiToken",
  "GET /api/v1/projects/{id}": "apiToken",
  "PATCH /api/v1/projects/{id}": "apiToken",
  "GET /api/v1/projects/{id}/summary": "apiToken",
  "GET /api/v1/projects/{id}/relations": "apiToken",
  "POST /api/v1/projects/{id}/relations": "apiToken",
  "PATCH /api/v1/projects/{id}/relations/{relation_id}": "apiToken",
  "DELETE /api/v1/projects/{id}/relations/{relation_id}": "apiToken",
  "GET /api/v1/projects/{id}/related": "apiToken",
  "GET /api/v1/resource-types": "apiToken",
  "GET /api/v1/resource-types/{platform}/{resource_type}": "apiToken",
  "PUT /api/v1/resource-types/{platform}/{resource_type}": "apiToken",
  "POST /internal/projection/rebuild": "internalToken",
  "POST /internal/sync/{cloud}": "internalToken",
  "GET /healthz": null,
  "GET /readyz": null,
  "GET /metrics": null,
  "GET /openapi.json": null,
  "GET /docs": null,
};

/** What an operation answers when all is well. */
function goodStatus(name: string): string {
  if (name === "POST /api/v1/projects" || name === "POST /api/v1/projects/{id}/relations") return "201";
  return name.startsWith("DELETE ") ? "204" : "200";
}

describe("the document", () => {
  test("is OpenAPI 3.1 of this very server", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.info).toMatchObject({
      title: "Tally Reporting API",
      license: { identifier: "Apache-2.0" },
    });
    expect(document.servers).toEqual([{ url: "/" }]);
  });

  test("lists every route, with its credential", () => {
    const listed = operations().map(([name, { security }]) => [
      name,
      Object.keys(security[0] ?? {})[0] ?? null,
    ]);
    expect(Object.fromEntries(listed)).toEqual(ROUTES);
  });

  test("has every route that answers, and no other", () => {
    const app = createApp({
      db: server.db.db,
      settings: {
        logLevel: "ERROR",
        http: { host: "127.0.0.1", port: 0 },
        database: { url: null, maxConnections: 1, autoMigrate: false, silenceSeconds: 10 },
        auth: { mode: "enforced", internalToken: null },
        unhealthyThresholdSeconds: 600,
        requireSizeSchema: false,
        attributingRelationTypes: ["infrastructure_tenant"],
        metrics: { enabled: true, refreshSeconds: 60 },
        sync: {
          cloudsConfig: null,
          allowAt: false,
          budgetSeconds: 45,
          settleSeconds: 60,
          intervalSeconds: 600,
          maxAbsentPercent: 20,
        },
        dataDir: "/nowhere",
      },
      now: () => {
        throw new Error("not asked");
      },
      log: { debug() {}, info() {}, warn() {}, error() {} },
      metrics: createMetrics(),
      clouds: [],
    });
    const answering = app.routes
      .filter(({ hidden }) => !hidden)
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
    expect(answering.sort()).toEqual(
      operations()
        .map(([name]) => name)
        .sort(),
    );
    // What is not in the document are the page's assets.
    const hidden = app.routes.filter((route) => route.hidden).map(({ path }) => path);
    expect(hidden.every((path) => path.startsWith("/docs/"))).toBe(true);
  });

  test("every operation has a name of its own, a summary, good answers and the problems", () => {
    const ids = operations().map(([, { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [name, operation] of operations()) {
      expect(operation.operationId, name).toMatch(/^[a-z][A-Za-z]+$/);
      expect(operation.summary.length, name).toBeGreaterThan(5);
      expect(operation.tags, name).toHaveLength(1);
      expect(
        Object.keys(operation.responses).filter((status) => status < "300"),
        name,
      ).toEqual([goodStatus(name)]);
      const expected = ["400", "500"];
      if (operation.security.length > 0) expected.push("401", "503");
      if (operation.requestBody !== undefined) expected.push("413");
      expect(Object.keys(operation.responses), name).toEqual(expect.arrayContaining(expected));
      for (const [status, answer] of Object.entries(operation.responses)) {
        expect(answer.description.length, `${name} ${status}`).toBeGreaterThan(3);
        const problem = answer.content?.["application/problem+json"];
        if (Number(status) < 400 || (status === "503" && operation.security.length === 0)) {
          expect(problem, `${name} ${status}`).toBeUndefined();
        } else {
          expect(problem?.schema, `${name} ${status}`).toEqual({ $ref: "#/components/schemas/Problem" });
        }
      }
    }
  });

  test("every parameter is described, and those of the path are the path's", () => {
    for (const [name, { parameters }] of operations()) {
      for (const parameter of parameters) {
        expect(parameter.description ?? "", `${name} ${parameter.name}`).not.toBe("");
      }
      const inPath = [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
      const described = parameters.filter((parameter) => parameter.in === "path");
      expect(
        described.map((parameter) => parameter.name),
        name,
      ).toEqual(inPath as string[]);
      expect(
        described.every((parameter) => parameter.required),
        name,
      ).toBe(true);
    }
  });

  test("every body and answer of the API is a component by name", () => {
    for (const [name, { requestBody, responses }] of operations()) {
      if (!name.includes("/api/") && !name.includes("/internal/")) continue;
      const good = goodStatus(name);
      const schema = responses[good]?.content?.["application/json"]?.schema;
      expect(Object.keys(schema ?? {}), name).toEqual(good === "204" ? [] : ["$ref"]);
      if (requestBody === undefined || name === "POST /api/v1/events") continue;
      expect(Object.keys(requestBody.content["application/json"]?.schema ?? {}), name).toEqual(["$ref"]);
    }
    expect(document.paths["/api/v1/events"]?.post?.requestBody?.content["application/json"]?.schema).toEqual({
      anyOf: [
        { $ref: "#/components/schemas/EventInput" },
        { type: "array", maxItems: 1000, items: { $ref: "#/components/schemas/EventInput" } },
      ],
    } as Schema);
  });

  test("every reference leads somewhere, and nothing is left in place with a name", () => {
    const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference ?? "");
    expect(references.length).toBeGreaterThan(30);
    for (const reference of new Set(references)) {
      const [, ...steps] = reference.split("/");
      let found: unknown = document;
      for (const step of steps) found = (found as Record<string, unknown>)[step];
      expect(found, reference).toBeDefined();
    }
    expect(text).not.toContain('"$id"');
    expect(text).not.toContain('"nullable"');
  });

  test("the credentials are bearer tokens of three schemes", () => {
    const schemes = Object.entries(document.components.securitySchemes);
    expect(schemes.map(([name, { type, scheme }]) => [name, type, scheme])).toEqual([
      ["ingestToken", "http", "bearer"],
      ["apiToken", "http", "bearer"],
      ["internalToken", "http", "bearer"],
    ]);
  });
});

/** Beyond what was agreed. */
const OWN = [
  "AuditEntry",
  "AuditList",
  "RetriedEvent",
  "RetryResult",
  "SyncCorrection",
  "SyncRun",
  "SyncRunList",
];
/** Members beyond those that were agreed; no caller has to know them. */
const OWN_MEMBERS: Record<string, string[]> = {
  SyncRequest: ["dry_run", "confirm_mass_delete"],
  SyncResult: ["corrections", "errors"],
};

describe("components", () => {
  test("are those that were agreed and those of our own, and no unnamed one", () => {
    const agreed = Object.keys(componentSchemas);
    expect(Object.keys(document.components.schemas).sort()).toEqual([...agreed, ...OWN].sort());
  });

  test("have exactly the members, types and required flags that were agreed", () => {
    const agreed: Record<string, { properties: Record<string, { type: string; required: boolean }> }> =
      componentSchemas;
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      if (OWN.includes(name)) continue;
      const own = OWN_MEMBERS[name] ?? [];
      expect(own.filter((member) => schema.required?.includes(member))).toEqual([]);
      const members = Object.entries(schema.properties ?? {})
        .filter(([member]) => !own.includes(member))
        .map(([member, value]) => [
          member,
          { type: typeOf(value), required: schema.required?.includes(member) ?? false },
        ]);
      expect({ name, members: Object.fromEntries(members) }).toEqual({
        name,
        members: agreed[name]?.properties ?? {},
      });
      expect(schema.description ?? "", name).not.toBe("");
      for (const [member, value] of Object.entries(schema.properties ?? {})) {
        if (value.$ref === undefined) expect(value.description ?? "", `${name}.${member}`).not.toBe("");
      }
    }
  });
});

/** A schema in the words of the agreed list: `string or null, date-time`, `array of StoredEvent`. */
function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.replace("#/components/schemas/", "");
  if (schema.type === "array") return `array of ${typeOf(schema.items ?? {})}`;
  const type = Array.isArray(schema.type) ? schema.type.join(" or ") : (schema.type ?? "any");
  return [type, schema.format, schema.pattern].filter((part) => part !== undefined).join(", ");
}

describe("every route", () => {
  const tokens: Record<string, () => Promise<string> | string> = {
    ingestToken: () => server.credentials.ingest("openstack", "os-prod"),
    apiToken: () => server.credentials.admin,
    internalToken: () => server.credentials.internal,
  };

  test("refuses a parameter that the document doesn't name", async () => {
    for (const [name, { security, requestBody }] of operations()) {
      const [method = "", path = ""] = name.split(" ");
      const scheme = Object.keys(security[0] ?? {})[0];
      const token = scheme === undefined ? undefined : await tokens[scheme]?.();
      const answer = await server.request(`${path.replace(/\{\w+\}/g, "x")}?colour=red`, {
        method,
        ...(token === undefined ? {} : { token }),
        ...(requestBody === undefined ? {} : { body: "{}" }),
      });
      expect(answer.status, name).toBe(400);
      const body: { errors: { loc: string; msg: string }[] } = JSON.parse(await answer.text());
      expect(body.errors, name).toContainEqual({
        loc: "query.colour",
        msg: "is no parameter of this operation",
      });
    }
  });

  test("without a body refuses one", async () => {
    for (const [name, { security, requestBody }] of operations()) {
      const [method = "", path = ""] = name.split(" ");
      // fetch sends none with a GET; test/http/body.unit.test.ts does.
      if (requestBody !== undefined || method === "GET") continue;
      const answer = await server.request(path.replace(/\{\w+\}/g, "x"), {
        method,
        token: (await tokens[Object.keys(security[0] ?? {})[0] ?? ""]?.()) ?? "",
        body: '{"colour":"red"}',
      });
      expect(answer.status, name).toBe(400);
      expect(await answer.text(), name).toContain('"loc":"body"');
    }
  });

  test("takes live tokens of the scheme that the document names, and no others", async () => {
    const { db } = server.db;
    const ingest = await server.credentials.ingest("openstack", "os-gone");
    const api = await server.credentials.project(["00000000-0000-4000-8000-000000000003"]);
    await db`UPDATE ingest_credentials SET revoked_at = now() WHERE cloud = 'os-gone'`;
    await db`UPDATE api_tokens SET revoked_at = now() WHERE token_sha256 = sha256(${api}::text::bytea)`;
    for (const [name, { security, requestBody }] of operations()) {
      const [method = "", path = ""] = name.split(" ");
      const scheme = Object.keys(security[0] ?? {})[0];
      if (scheme === undefined) continue;
      const others = Object.entries(tokens).filter(([other]) => other !== scheme);
      const refused = await Promise.all(others.map(([, make]) => make()));
      for (const token of [undefined, ...refused, ingest, api]) {
        const answer = await server.request(path.replace(/\{\w+\}/g, "x"), {
          method,
          ...(token === undefined ? {} : { token }),
          ...(requestBody === undefined ? {} : { body: "{}" }),
        });
        expect([answer.status, answer.headers.get("www-authenticate")], name).toEqual([401, "Bearer"]);
        expect(await answer.json(), name).toMatchObject({ type: "urn:tally:error:unauthorized" });
      }
    }
  });

  test("with a body refuses a member that the document doesn't name", async () => {
    for (const [name, { requestBody }] of operations()) {
      const [method = "", path = ""] = name.split(" ");
      // Ingest judges its items one by one, and takes unknown members.
      if (requestBody === undefined || name === "POST /api/v1/events") continue;
      const scheme = ROUTES[name] ?? "";
      const answer = await server.request(path.replace(/\{\w+\}/g, "x"), {
        method,
        token: (await tokens[scheme]?.()) ?? "",
        body: '{"colour":"red"}',
      });
      expect(answer.status, name).toBe(400);
      expect(await answer.text(), name).toContain('"loc":"body.colour"');
    }
  });
});
