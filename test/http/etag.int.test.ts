/** ETag and If-None-Match on the reads that have them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
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

describe.each(["/api/v1/resource-types", "/api/v1/resource-types/openstack/volume"])("GET %s", (path) => {
  test("has a strong tag, the same for the same bytes", async () => {
    const [first, second] = [await ask(path), await ask(path)];
    expect(first.headers.get("etag")).toMatch(/^"[\w-]{27}"$/);
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
    const answer = await server.request(path, { headers: { "if-none-match": "*" } });
    expect(answer.status).toBe(401);
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
