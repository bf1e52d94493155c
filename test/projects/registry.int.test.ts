/** GET and POST /api/v1/projects, GET and PATCH of one. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { adminId, auditCount, auditOf, call, idOf, project, refusalOf } from "./calls.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const post = (body: string) => call(server, "POST", "/api/v1/projects", body);
const patch = (id: string, body: string) => call(server, "PATCH", `/api/v1/projects/${id}`, body);
const read = async (id: string) => (await call(server, "GET", `/api/v1/projects/${id}`)).text;
/** A body whose metadata is that text. */
const bodyOf = (externalId: string, metadata: string) =>
  `{"platform":"openstack","cloud":"eu1","external_id":"${externalId}","metadata":${metadata}}`;

describe("registering", () => {
  test("answers the project, where it is, and audits it", async () => {
    const answer = await post(
      '{"platform":"openstack","cloud":"eu1","external_id":"p/ü 1","name":"Shop","metadata":{"b":1.50,"a":12345678901234567890,"c":1e2}}',
    );
    expect(answer.status).toBe(201);
    const id = idOf(answer);
    const created = String(JSON.parse(answer.text).created_at);
    expect(created).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/);
    const metadata = '{"a": 12345678901234567890, "b": 1.50, "c": 100}';
    expect(answer.text).toBe(
      `{"id":"${id}","platform":"openstack","cloud":"eu1","external_id":"p/ü 1","name":"Shop","metadata":${metadata},"created_at":"${created}"}`,
    );
    expect(answer.location).toBe(`/api/v1/projects/${id}`);
    expect(await read(id)).toBe(answer.text);
    expect(await auditOf(server, id)).toEqual([
      {
        actor: await adminId(server),
        action: "project.create",
        object_type: "project",
        details: { platform: "openstack", cloud: "eu1", external_id: "p/ü 1", name: "Shop", metadata },
      },
    ]);
  });

  test("without name and metadata it has none, and {}", async () => {
    const { text } = await post('{"platform":"openstack","cloud":"eu1","external_id":"bare"}');
    expect(JSON.parse(text)).toMatchObject({ name: null, metadata: {} });
  });

  test("an id is found in either case", async () => {
    const id = await project(server, "case");
    expect(JSON.parse(await read(id.toUpperCase())).external_id).toBe("case");
  });

  test("512 bytes are fine in every text", async () => {
    const text = "ü".repeat(256);
    const answer = await post(JSON.stringify({ platform: text, cloud: text, external_id: text, name: text }));
    expect(answer.status).toBe(201);
    expect(JSON.parse(answer.text)).toMatchObject({
      platform: text,
      cloud: text,
      external_id: text,
      name: text,
    });
  });

  test("a held pair is a 409, another cloud's is another project", async () => {
    await project(server, "held", "eu1");
    const before = await auditCount(server);
    const again = await post('{"platform":"vmware","cloud":"eu1","external_id":"held","name":"other"}');
    expect(refusalOf(again)).toEqual({ status: 409, type: "conflict", locs: [] });
    expect(await auditCount(server)).toBe(before);
    expect(await project(server, "held", "us1")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("of twenty that register one pair at once, one does", async () => {
    const body = '{"platform":"openstack","cloud":"eu1","external_id":"raced"}';
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(409)]);
  });

  test.each(["meta", "partner"])(
    "a virtual project of platform %s is in the cloud of that name",
    async (name) => {
      expect((await post(`{"platform":"${name}","cloud":"${name}","external_id":"v"}`)).status).toBe(201);
    },
  );

  test.each([
    ["meta", "eu1"],
    ["partner", "eu1"],
    ["meta", "partner"],
    ["partner", "meta"],
    ["openstack", "meta"],
    ["openstack", "partner"],
  ])("platform %s in cloud %s: 422", async (platform, cloud) => {
    const before = await auditCount(server);
    const answer = await post(JSON.stringify({ platform, cloud, external_id: "odd" }));
    expect(refusalOf(answer)).toEqual({ status: 422, type: "validation", locs: ["body.cloud"] });
    expect(await auditCount(server)).toBe(before);
  });

  const whole = { platform: "openstack", cloud: "eu1", external_id: "x", name: "n", metadata: {} };
  const without = (member: keyof typeof whole) => {
    const { [member]: _, ...rest } = whole;
    return JSON.stringify(rest);
  };
  const changed = (member: string, value: unknown) => JSON.stringify({ ...whole, [member]: value });
  const identifiers = ["platform", "cloud", "external_id"] as const;
  const cases: [name: string, body: string, locs: string[]][] = [
    ...identifiers.flatMap((member): [string, string, string[]][] => [
      [`${member} missing`, without(member), [`body.${member}`]],
      [`${member} null`, changed(member, null), [`body.${member}`]],
    ]),
    ...[...identifiers, "name"].flatMap((member): [string, string, string[]][] => [
      [`${member} a number`, changed(member, 1), [`body.${member}`]],
      [`${member} a list`, changed(member, ["a"]), [`body.${member}`]],
      [`${member} empty`, changed(member, ""), [`body.${member}`]],
      [`${member} of 513 bytes`, changed(member, `a${"ü".repeat(256)}`), [`body.${member}`]],
      [`${member} with NUL`, changed(member, "a\0"), [`body.${member}`]],
      [`${member} with half a pair`, changed(member, "a\ud800"), [`body.${member}`]],
    ]),
    ["name null", changed("name", null), ["body.name"]],
    ["metadata null", changed("metadata", null), ["body.metadata"]],
    ["metadata a list", changed("metadata", []), ["body.metadata"]],
    ["metadata a text", changed("metadata", "{}"), ["body.metadata"]],
    ["metadata with NUL in a value", changed("metadata", { a: ["\0"] }), ["body.metadata"]],
    ["metadata with NUL in a key", changed("metadata", { "a\0": 1 }), ["body.metadata"]],
    ["metadata with half a pair", bodyOf("x", '{"a":"\\udc00"}'), ["body.metadata"]],
    ["metadata with half a pair in a key", bodyOf("x", '{"\\ud800":1}'), ["body.metadata"]],
    ["an unknown member", changed("labels", {}), ["body.labels"]],
    ["the id", changed("id", UNKNOWN), ["body.id"]],
    [
      "several faults",
      '{"platform":1,"cloud":"","colour":1}',
      ["body.platform", "body.cloud", "body.external_id", "body.colour"],
    ],
    ["a list", "[]", ["body"]],
    ["null", "null", ["body"]],
    ["no JSON", "{", ["body"]],
    ["nothing", "", ["body"]],
  ];
  test.each(cases)("%s: 400", async (_, body, locs) => {
    const before = await auditCount(server);
    expect(refusalOf(await post(body))).toEqual({ status: 400, type: "validation", locs });
    expect(await auditCount(server)).toBe(before);
  });

  test("a parameter is refused: 400", async () => {
    const answer = await call(server, "POST", "/api/v1/projects?dry_run=1", JSON.stringify(whole));
    expect(refusalOf(answer)).toEqual({ status: 400, type: "validation", locs: ["query.dry_run"] });
  });
});

describe("metadata is bounded as it is stored", () => {
  // The database writes {"a": "…"}: nine bytes around the value.
  const sized = (bytes: number) => `{"a":"${"x".repeat(bytes - 9)}"}`;
  const refused = { status: 422, type: "validation", locs: ["body.metadata"] };
  const stored = async (externalId: string) =>
    JSON.parse((await call(server, "GET", `/api/v1/projects?external_id=${externalId}`)).text).items.length;

  test("65,536 bytes are taken, one more is not", async () => {
    const answer = await post(bodyOf("full", sized(65_536)));
    expect(answer.status).toBe(201);
    expect(JSON.stringify(JSON.parse(answer.text).metadata)).toBe(sized(65_536));
    expect(refusalOf(await post(bodyOf("over", sized(65_537))))).toEqual(refused);
    expect(await stored("over")).toBe(0);
  });

  test("bytes, not characters", async () => {
    expect((await post(bodyOf("umlauts", `{"a":"${"ü".repeat(32_763)}"}`))).status).toBe(201);
    expect(refusalOf(await post(bodyOf("over", `{"a":"${"ü".repeat(32_764)}"}`)))).toEqual(refused);
  });

  test("exponents count spelled out", async () => {
    // {"a": 1000…}: seven bytes around the number, which has one digit more than its exponent.
    const answer = await post(bodyOf("spelled", '{"a":1e65528}'));
    expect(answer.status).toBe(201);
    expect(answer.text).toContain(`{"a": 1${"0".repeat(65_528)}}`);
    expect(refusalOf(await post(bodyOf("over", '{"a":1e65529}')))).toEqual(refused);
    expect(await stored("over")).toBe(0);
  });

  test("white space, escapes and doubled members don't", async () => {
    const answer = await post(
      bodyOf("spaced", `{${" ".repeat(100_000)}"a":"${"\\u0041".repeat(20_000)}","b":1e70000,"b":2}`),
    );
    expect(answer.status).toBe(201);
    expect(JSON.parse(answer.text).metadata).toEqual({ a: "A".repeat(20_000), b: 2 });
  });

  test.each([
    ["far too much", sized(3_000_000)],
    ["a number of 131,072 digits", '{"a":1e131071}'],
    ["a million of them", `{"a":[${Array(1_000_000).fill("1e131071").join(",")}]}`],
    ["a number past every bound", '{"a":1e400000}'],
    ["a fraction past every bound", '{"a":1e-20000}'],
    ["nesting without end", `{"a":${"[".repeat(500_000)}${"]".repeat(500_000)}}`],
  ])("%s: 422, and nothing is stored", async (_, metadata) => {
    const before = await auditCount(server);
    expect(refusalOf(await post(bodyOf("over", metadata)))).toEqual(refused);
    expect(await stored("over")).toBe(0);
    expect(await auditCount(server)).toBe(before);
  });

  test("a change is held to it, too, and stores nothing", async () => {
    const id = await project(server, "kept");
    expect(refusalOf(await patch(id, `{"name":"new","metadata":${sized(65_537)}}`))).toEqual(refused);
    expect(JSON.parse(await read(id))).toMatchObject({ name: null, metadata: {} });
  });
});

describe("changing", () => {
  test("the name leaves the metadata, and the metadata the name", async () => {
    const id = idOf(await post(bodyOf("change", '{"a":1,"b":2}')));
    const named = await patch(id, '{"name":"New"}');
    expect(named.status).toBe(200);
    expect(JSON.parse(named.text)).toMatchObject({ name: "New", metadata: { a: 1, b: 2 } });
    const replaced = await patch(id, '{"metadata":{"c":0.10}}');
    expect(replaced.text).toContain('"name":"New","metadata":{"c": 0.10}');
    expect(await read(id)).toBe(replaced.text);
    const both = await patch(id, '{"name":"Both","metadata":{}}');
    expect(JSON.parse(both.text)).toMatchObject({ name: "Both", metadata: {} });
    expect((await auditOf(server, id)).slice(1).map(({ action, details }) => [action, details])).toEqual([
      ["project.update", { name: "New" }],
      ["project.update", { metadata: '{"c": 0.10}' }],
      ["project.update", { name: "Both", metadata: "{}" }],
    ]);
  });

  test.each([
    ["{}", ["body"]],
    ['{"name":null}', ["body.name"]],
    ['{"name":""}', ["body.name"]],
    ['{"name":1}', ["body.name"]],
    [`{"name":"${"a".repeat(513)}"}`, ["body.name"]],
    ['{"name":"\\u0000"}', ["body.name"]],
    ['{"metadata":null}', ["body.metadata"]],
    ['{"metadata":[]}', ["body.metadata"]],
    ['{"metadata":{"a":"\\u0000"}}', ["body.metadata"]],
    ['{"name":"n","platform":"openstack"}', ["body.platform"]],
    ['{"name":"n","cloud":"eu1"}', ["body.cloud"]],
    ['{"name":"n","external_id":"x"}', ["body.external_id"]],
    ['{"name":"n","created_at":"2026-03-01T00:00:00Z"}', ["body.created_at"]],
    ["[]", ["body"]],
    ["", ["body"]],
  ])("%s: 400 at %p", async (body, locs) => {
    const id = await patched;
    expect(refusalOf(await patch(id, body))).toEqual({ status: 400, type: "validation", locs });
    expect(JSON.parse(await read(id))).toMatchObject({ name: null, metadata: {} });
    expect(await auditOf(server, id)).toHaveLength(1);
  });
  let patched: Promise<string>;
  beforeAll(() => {
    patched = project(server, "patched");
  });

  test("an unknown project is a 404, and leaves no audit row", async () => {
    const before = await auditCount(server);
    expect(refusalOf(await patch(UNKNOWN, '{"name":"n"}'))).toEqual({
      status: 404,
      type: "not_found",
      locs: [],
    });
    expect(await auditCount(server)).toBe(before);
  });
});

describe("reading one", () => {
  test("an unknown one is a 404", async () => {
    const answer = await call(server, "GET", `/api/v1/projects/${UNKNOWN}`);
    expect(refusalOf(answer)).toEqual({ status: 404, type: "not_found", locs: [] });
  });

  test("who has it already is told so, until it changes", async () => {
    const id = await project(server, "tagged");
    const path = `/api/v1/projects/${id}`;
    const get = (etag = '"none"') =>
      server.request(path, { token: server.credentials.readAll, headers: { "if-none-match": etag } });
    const first = await get();
    const etag = first.headers.get("etag") ?? "";
    expect(first.status).toBe(200);
    expect((await get(etag)).status).toBe(304);
    await patch(id, '{"name":"changed"}');
    expect((await get(etag)).status).toBe(200);
    const list = await server.request("/api/v1/projects", { token: server.credentials.readAll });
    const again = await server.request("/api/v1/projects", {
      token: server.credentials.readAll,
      headers: { "if-none-match": list.headers.get("etag") ?? "" },
    });
    expect([list.status, again.status]).toEqual([200, 304]);
  });

  test.each([
    ["x", "path.id"],
    [`${UNKNOWN}0`, "path.id"],
    [`${UNKNOWN}%0a`, "path.id"],
    ["%00", "path.id"],
    ["%ff", "path.id"],
    [`${UNKNOWN}?at=now`, "query.at"],
  ])("%s: 400 at %s", async (path, loc) => {
    const answer = await call(server, "GET", `/api/v1/projects/${path}`);
    expect(refusalOf(answer)).toEqual({ status: 400, type: "validation", locs: [loc] });
  });
});

describe("listing", () => {
  let own: TestServer;
  const list = async (query: string) => JSON.parse((await call(own, "GET", `/api/v1/projects${query}`)).text);
  const names = async (query: string) =>
    (await list(query)).items.map((item: Record<string, string>) => `${item.cloud}/${item.external_id}`);
  beforeAll(async () => {
    own = await testServer();
    for (const [cloud, externalId] of [
      ["us1", "p1"],
      ["eu1", "p2"],
      ["eu1", "P3"],
      ["eu1", "p1"],
      ["us1", "ä"],
    ] as const) {
      await project(own, externalId, cloud);
    }
    await call(own, "POST", "/api/v1/projects", '{"platform":"meta","cloud":"meta","external_id":"p1"}');
  });
  afterAll(() => own.stop());

  test("is by the bytes of cloud and external_id", async () => {
    expect(await names("")).toEqual(["eu1/P3", "eu1/p1", "eu1/p2", "meta/p1", "us1/p1", "us1/ä"]);
    expect((await list("")).next_cursor).toBeNull();
  });

  test.each([
    ["?cloud=eu1", ["eu1/P3", "eu1/p1", "eu1/p2"]],
    ["?platform=meta", ["meta/p1"]],
    ["?external_id=p1", ["eu1/p1", "meta/p1", "us1/p1"]],
    ["?external_id=%C3%A4", ["us1/ä"]],
    ["?platform=openstack&cloud=us1&external_id=p1", ["us1/p1"]],
    ["?platform=vmware", []],
  ])("%s", async (query, expected) => {
    expect(await names(query)).toEqual(expected);
  });

  test.each([1, 2, 3, 5, 6, 1000])("pages of %d hold each once", async (limit) => {
    const seen: string[] = [];
    let cursor = "";
    for (;;) {
      const page = await list(`?limit=${limit}${cursor}`);
      seen.push(...page.items.map((item: Record<string, string>) => `${item.cloud}/${item.external_id}`));
      if (page.next_cursor === null) break;
      expect(page.items).toHaveLength(limit);
      cursor = `&cursor=${page.next_cursor}`;
    }
    expect(seen).toEqual(["eu1/P3", "eu1/p1", "eu1/p2", "meta/p1", "us1/p1", "us1/ä"]);
  });

  test("a cursor is a position: other filters go on from there", async () => {
    const { next_cursor } = await list("?limit=2");
    expect(await names(`?external_id=p1&cursor=${next_cursor}`)).toEqual(["meta/p1", "us1/p1"]);
  });

  test.each([
    ["?limit=0", ["query.limit"]],
    ["?limit=1001", ["query.limit"]],
    ["?limit=ten", ["query.limit"]],
    ["?limit=1&limit=2", ["query.limit"]],
    ["?cloud=", ["query.cloud"]],
    ["?platform=", ["query.platform"]],
    ["?external_id=", ["query.external_id"]],
    ["?cloud=eu1&cloud=eu1", ["query.cloud"]],
    [`?platform=${"a".repeat(513)}`, ["query.platform"]],
    ["?external_id=a%00", ["query.external_id"]],
    ["?external_id=%ff", ["query.external_id"]],
    ["?name=shop", ["query.name"]],
    ["?cursor=", ["query.cursor"]],
    ["?cursor=forged", ["query.cursor"]],
    ["?externalid=p1&Cloud=eu1", ["query.externalid", "query.Cloud"]],
  ])("%s: 400 at %p", async (query, locs) => {
    const answer = await call(own, "GET", `/api/v1/projects${query}`);
    expect(refusalOf(answer)).toEqual({ status: 400, type: "validation", locs });
  });

  test("another list's cursor is a 400", async () => {
    await own.db.db`INSERT INTO current_resources (first_event_at, last_event_at, last_received_at, cloud,
      resource_type, resource_id, platform, project_id, state, last_event_id, last_event_type, size)
      SELECT now(), now(), now(), 'eu1', 'thing', n::text, 'openstack', 'p', 'on', 'e', 'x', '{}'
        FROM generate_series(1, 2) n`;
    const { text } = await call(own, "GET", "/api/v1/resources?limit=1");
    const answer = await call(own, "GET", `/api/v1/projects?cursor=${JSON.parse(text).next_cursor}`);
    expect(refusalOf(answer).locs).toEqual(["query.cursor"]);
  });
});
