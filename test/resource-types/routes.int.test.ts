import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
let ingest: string;
beforeAll(async () => {
  server = await testServer();
  ingest = await server.credentials.ingest("openstack", "eu1");
});
afterAll(() => server.stop());

const put = (path: string, body: string, at = server) =>
  at.request(`/api/v1/resource-types/${path}`, { method: "PUT", token: server.credentials.admin, body });
const get = async (path = "") => {
  const answer = await server.request(`/api/v1/resource-types${path}`, { token: server.credentials.readAll });
  return { status: answer.status, text: await answer.text() };
};

/** Sends a create of that type; gives the reason of its refusal, or null. */
async function reasonFor(type: string, size: string, at = server): Promise<string | null> {
  const item = `{"event_id":"${crypto.randomUUID()}","timestamp":"2026-03-01T00:00:00Z","event_type":"x.create","platform":"openstack","cloud":"eu1","resource_type":"${type}","resource_id":"r","project_id":"p","payload":{"state":"on","size":${size}}}`;
  const answer = await at.request("/api/v1/events", { method: "POST", token: ingest, body: item });
  return JSON.parse(await answer.text()).rejected[0]?.reason ?? null;
}

const auditOf = async (objectId: string) => [
  ...(await server.db.db`
    SELECT actor, action, details ->> 'size_schema' AS document FROM audit_log
     WHERE object_type = 'resource_type' AND object_id = ${objectId} ORDER BY id`),
];

describe("resource types", () => {
  test("the seeded ones are listed by platform and type", async () => {
    const { items, next_cursor } = JSON.parse((await get()).text);
    expect(
      items.map(
        (item: { platform: string; resource_type: string }) => `${item.platform}/${item.resource_type}`,
      ),
    ).toEqual([
      "openstack/floating_ip",
      "openstack/image",
      "openstack/instance",
      "openstack/loadbalancer",
      "openstack/volume",
    ]);
    expect(next_cursor).toBeNull();
    expect(Object.keys(items[0])).toEqual(["platform", "resource_type", "size_schema", "updated_at"]);
  });

  test("one is answered as it was sent: digits, order and white space", async () => {
    const document =
      '{ "type": "object",\n  "maximum": 12345678901234567890, "x-rate": 0.1000, "minimum": 1e2, "title": "\\u00fc" }';
    const answer = await put("openstack/verbatim", `{"size_schema":  ${document}  }`);
    expect(answer.status).toBe(200);
    const text = await answer.text();
    const updated = /"updated_at":"([^"]+)"\}$/.exec(text)?.[1] ?? "";
    expect(text).toBe(
      `{"platform":"openstack","resource_type":"verbatim","size_schema":${document},"updated_at":"${updated}"}`,
    );
    expect(updated).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/);
    expect(await get("/openstack/verbatim")).toEqual({ status: 200, text });
    expect((await get()).text).toContain(text);
    const [row]: { actor: string }[] = await server.db
      .db`SELECT id::text AS actor FROM api_tokens WHERE role = 'admin'`;
    expect(await auditOf("openstack/verbatim")).toEqual([
      { actor: row?.actor, action: "resource_type.put", document },
    ]);
  });

  test("registering again replaces, moves updated_at, and is audited with the document", async () => {
    const first = JSON.parse(await (await put("openstack/again", '{"size_schema":{"title":"1"}}')).text());
    const second = JSON.parse(await (await put("openstack/again", '{"size_schema":{"title":"2"}}')).text());
    expect(second.size_schema).toEqual({ title: "2" });
    expect(second.updated_at > first.updated_at).toBe(true);
    expect((await auditOf("openstack/again")).map((row: { document?: string }) => row.document)).toEqual([
      '{"title":"1"}',
      '{"title":"2"}',
    ]);
  });

  test("the next event is held to it, in every process on the database", async () => {
    const other = await testServer({ db: server.db });
    expect(await reasonFor("router", '{"ports":"many"}', other)).toBeNull();
    await put(
      "openstack/router",
      '{"size_schema":{"required":["ports","uplinks"],"properties":{"ports":{"type":"integer"}}}}',
    );
    for (const at of [server, other]) {
      expect(await reasonFor("router", '{"ports":"many","uplinks":1}', at)).toBe(
        "size_schema: ports: must be integer",
      );
      expect(await reasonFor("router", '{"ports":1}', at)).toBe(
        "size_schema: 'uplinks' is a required property",
      );
      expect(await reasonFor("router", '{"ports":1,"uplinks":2}', at)).toBeNull();
    }
    await put("openstack/router", '{"size_schema":{}}', other);
    expect(await reasonFor("router", '{"ports":"many"}')).toBeNull();
    await other.stop();
  });

  test("names are percent-decoded, and of any text", async () => {
    const answer = await put("my%2Fcloud%20%C3%BC/%F0%9F%98%80%25", '{"size_schema":{}}');
    expect(answer.status).toBe(200);
    expect(JSON.parse((await get("/my%2Fcloud%20%C3%BC/%F0%9F%98%80%25")).text)).toMatchObject({
      platform: "my/cloud ü",
      resource_type: "😀%",
    });
  });

  test("an unknown one is a 404", async () => {
    expect((await get("/openstack/unknown")).status).toBe(404);
    expect((await get("/openstack/Instance")).status).toBe(404);
  });
});

describe("a registration that is refused changes nothing", () => {
  const MAX = 65_536;
  const sized = (bytes: number) => `{"title":"${"ü".repeat((bytes - 12) / 2)}"}`;

  test("a document of 64 KiB is taken, one byte more is a 413", async () => {
    expect(Buffer.byteLength(sized(MAX))).toBe(MAX);
    expect((await put("openstack/large", `{"size_schema":${sized(MAX)}}`)).status).toBe(200);
    const answer = await put("openstack/larger", `{"size_schema":${sized(MAX)} }`.replace('"}', '" }'));
    expect(answer.status).toBe(413);
    expect(JSON.parse(await answer.text()).type).toBe("urn:tally:error:payload_too_large");
    expect((await get("/openstack/larger")).status).toBe(404);
  });

  test.each([
    ['{"size_schema":{"type":"strin"}}', "body.size_schema"],
    ['{"size_schema":{"$ref":"https://example.com/x"}}', "body.size_schema"],
    ['{"size_schema":{"pattern":"(?=x)"}}', "body.size_schema"],
    ['{"size_schema":{"title":"\\u0000"}}', "body.size_schema"],
    ['{"size_schema":[]}', "body.size_schema"],
    ['{"size_schema":true}', "body.size_schema"],
    ['{"size_schema":null}', "body.size_schema"],
    ['{"size_schema":"{}"}', "body.size_schema"],
    ["{}", "body.size_schema"],
    ['{"size_schema":{},"updated_at":"2026-03-01T00:00:00Z"}', "body.updated_at"],
    ['{"size_schema":{},"sizeSchema":{}}', "body.sizeSchema"],
    ["[]", "body"],
    ["{", "body"],
    ["", "body"],
  ])("%p: 400 at %p", async (body, loc) => {
    const answer = await put("openstack/instance", body);
    expect(answer.status).toBe(400);
    const { type, errors } = JSON.parse(await answer.text());
    expect(type).toBe("urn:tally:error:validation");
    expect(errors.map((error: { loc: string }) => error.loc)).toEqual([loc]);
    expect(await reasonFor("instance", "{}")).toContain("'vcpus' is a required property");
    expect(await auditOf("openstack/instance")).toEqual([]);
  });

  test("the reason is told", async () => {
    const answer = await put(
      "openstack/instance",
      '{"size_schema":{"properties":{"a":{"$ref":"https://example.com/x"}}}}',
    );
    expect(JSON.parse(await answer.text()).errors).toEqual([
      {
        loc: "body.size_schema",
        msg: 'properties.a.$ref: refers to "https://example.com/x" outside the document',
      },
    ]);
  });

  test.each([
    ["meta/instance", "path.platform"],
    ["partner/instance", "path.platform"],
    ["openstack/%00", "path.resource_type"],
    ["%ff/instance", "path.platform"],
    [`openstack/${"%C3%BC".repeat(257)}`, "path.resource_type"],
    ["openstack/instance?dry_run=true", "query.dry_run"],
  ])("PUT %s: 400 at %p", async (path, loc) => {
    const answer = await put(path, '{"size_schema":{}}');
    expect(answer.status).toBe(400);
    expect(JSON.parse(await answer.text()).errors.map((error: { loc: string }) => error.loc)).toEqual([loc]);
  });
});
