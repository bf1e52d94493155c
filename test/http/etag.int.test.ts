/** ETag and If-None-Match on the reads that have them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { call, project } from "../projects/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
let shop: string;
beforeAll(async () => {
  server = await testServer();
  shop = await project(server, "shop");
});
afterAll(() => server.stop());

const ask = (path: string, ifNoneMatch?: string, method = "GET") =>
  server.request(path, {
    method,
    token: server.credentials.readAll,
    ...(ifNoneMatch === undefined ? {} : { headers: { "if-none-match": ifNoneMatch } }),
  });

async function register(resourceType: string, sizeSchema: object): Promise<void> {
  const answer = await server.request(`/api/v1/resource-types/openstack/${resourceType}`, {
    method: "PUT",
    token: server.credentials.admin,
    body: JSON.stringify({ size_schema: sizeSchema }),
  });
  expect(answer.status).toBe(200);
}

const TAGGED = [
  { name: "the resource types", where: () => "/api/v1/resource-types" },
  { name: "a resource type", where: () => "/api/v1/resource-types/openstack/volume" },
  { name: "the projects", where: () => "/api/v1/projects" },
  { name: "a page of projects", where: () => "/api/v1/projects?limit=1&cloud=eu1" },
  { name: "a project", where: () => `/api/v1/projects/${shop}` },
];

describe.each(TAGGED)("the read of $name", ({ where }) => {
  let path: string;
  beforeAll(() => {
    path = where();
  });

  test("has a strong tag, the same for the same bytes", async () => {
    const [first, second] = [await ask(path), await ask(path)];
    expect(first.headers.get("etag")).toMatch(/^"\w{1,13}(?:\.\w{1,13})*"$/);
    expect(second.headers.get("etag")).toBe(first.headers.get("etag"));
    expect(await second.text()).toBe(await first.text());
  });

  test.each([
    ["the tag", (tag: string) => tag],
    ["the tag in a list", (tag: string) => `"other", ${tag} ,"more"`],
    ["a list without spaces", (tag: string) => `"a,b",${tag}`],
    ["the tag made weak", (tag: string) => `W/${tag}`],
    ["a star", () => "*"],
  ])("%s is answered 304, with the tag and no body", async (_, header) => {
    const tag = (await ask(path)).headers.get("etag") ?? "";
    for (const method of ["GET", "HEAD"]) {
      const answer = await ask(path, header(tag), method);
      expect(answer.status).toBe(304);
      expect(answer.headers.get("etag")).toBe(tag);
      expect(answer.headers.get("content-type")).toBeNull();
      expect(answer.headers.get("content-length")).toBeNull();
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(await answer.text()).toBe("");
    }
  });

  test.each([
    ["another tag", () => '"other"'],
    ["the tag without quotes", (tag: string) => tag.slice(1, -1)],
    ["half of it", (tag: string) => `${tag.slice(0, 10)}"`],
    ["a list that breaks off", (tag: string) => `${tag}, "x`],
    ["no tag", () => ","],
  ])("%s is answered in full", async (_, header) => {
    const tag = (await ask(path)).headers.get("etag") ?? "";
    const answer = await ask(path, header(tag));
    expect(answer.status).toBe(200);
    expect((await answer.text()).length).toBeGreaterThan(50);
  });

  test("a caller who may not read is told so, whatever it has", async () => {
    const tag = (await ask(path)).headers.get("etag") ?? "";
    for (const ifNoneMatch of ["*", tag]) {
      const answer = await server.request(path, { headers: { "if-none-match": ifNoneMatch } });
      expect([answer.status, answer.headers.get("etag")]).toEqual([401, null]);
    }
    const other = await server.request(path, {
      token: await server.credentials.ingest("openstack", "eu1"),
      headers: { "if-none-match": tag },
    });
    expect([other.status, other.headers.get("etag")]).toEqual([401, null]);
  });

  test("a faulty request is told so, whatever it has", async () => {
    const answer = await ask(`${path}${path.includes("?") ? "&" : "?"}colour=red`, "*");
    expect([answer.status, answer.headers.get("etag")]).toEqual([400, null]);
  });
});

describe("the registry's reads", () => {
  const project404 = "/api/v1/projects/00000000-0000-4000-8000-000000000000";

  test("are no more to a token of role project with a tag than without", async () => {
    const token = await server.credentials.project([shop]);
    for (const path of ["/api/v1/projects", `/api/v1/projects/${shop}`]) {
      const tag = (await ask(path)).headers.get("etag") ?? "";
      const answer = await server.request(path, { token, headers: { "if-none-match": tag } });
      expect([answer.status, answer.headers.get("etag")]).toEqual([403, null]);
    }
  });

  test("change their tags with a project, and the list's with any project of the page", async () => {
    const one = `/api/v1/projects/${shop}`;
    const other = "/api/v1/projects?cloud=us1";
    const lists = ["/api/v1/projects", "/api/v1/projects?cloud=eu1"];
    const tags = new Map<string, string>();
    for (const path of [one, other, ...lists]) tags.set(path, (await ask(path)).headers.get("etag") ?? "");
    expect(new Set(tags.values()).size).toBe(3);
    await call(server, "PATCH", one, '{"metadata":{"a":1}}');
    for (const path of [one, ...lists]) expect((await ask(path, tags.get(path))).status, path).toBe(200);
    expect((await ask(other, tags.get(other))).status).toBe(304);
    await project(server, "first", "us1");
    expect((await ask(other, tags.get(other))).status).toBe(200);
  });

  test("differ by page", async () => {
    await project(server, "second", "us1");
    const first = await ask("/api/v1/projects?limit=1");
    const { next_cursor: cursor }: { next_cursor: string } = JSON.parse(await first.text());
    const tag = first.headers.get("etag") ?? "";
    expect((await ask(`/api/v1/projects?limit=1&cursor=${cursor}`, tag)).status).toBe(200);
    expect((await ask("/api/v1/projects?limit=1", tag)).status).toBe(304);
  });

  test("an unknown one has none", async () => {
    const answer = await ask(project404, "*");
    expect([answer.status, answer.headers.get("etag")]).toEqual([404, null]);
  });

  test("a write takes no notice of it", async () => {
    const answer = await server.request(`/api/v1/projects/${shop}`, {
      method: "PATCH",
      token: server.credentials.admin,
      headers: { "if-none-match": "*" },
      body: '{"name":"Shop"}',
    });
    expect([answer.status, answer.headers.get("etag")]).toEqual([200, null]);
  });
});

test("the tag changes with the answer, and only then", async () => {
  const path = "/api/v1/resource-types/openstack/etag";
  await register("etag", { minProperties: 1 });
  const tag = (await ask(path)).headers.get("etag") ?? "";
  const all = (await ask("/api/v1/resource-types")).headers.get("etag") ?? "";
  expect((await ask(path, tag)).status).toBe(304);
  await register("etag", { minProperties: 2 });
  const changed = await ask(path, tag);
  expect(changed.status).toBe(200);
  expect(changed.headers.get("etag")).not.toBe(tag);
  expect((await ask("/api/v1/resource-types", all)).status).toBe(200);
});

test("an error has no tag", async () => {
  const answer = await ask("/api/v1/resource-types/openstack/none", "*");
  expect([answer.status, answer.headers.get("etag")]).toEqual([404, null]);
});
