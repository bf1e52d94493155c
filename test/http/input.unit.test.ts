/** Path and query: read strictly, all faults told together. */
import { afterAll, describe, expect, test } from "bun:test";
import { faults, refused, smallApp } from "./small-app.ts";

const app = smallApp();
afterAll(() => app.stop());

const preset = { status: "active", limit: 100 };

describe("a query is read", () => {
  const cases: [query: string, read: Record<string, unknown>][] = [
    ["", preset],
    ["?", preset],
    ["?&&", preset],
    ["?limit=1000&status=all", { status: "all", limit: 1000 }],
    ["?name=a%2Fb%20c+d%F0%9F%98%80", { ...preset, name: "a/b c d😀" }],
    ["?n%61me=x", { ...preset, name: "x" }],
    ["?name=a=b", { ...preset, name: "a=b" }],
    ["?name=a;b", { ...preset, name: "a;b" }],
    [`?name=${"%C3%BC".repeat(256)}`, { ...preset, name: "ü".repeat(256) }],
    ["?from=1970-01-01T00:00:01.0000019Z", { ...preset, from: "1000001" }],
    ["?from=1970-01-01T05:30:00%2B05:30", { ...preset, from: "0" }],
    ["?from=1970-01-01T05:30:00+05:30", { ...preset, from: "0" }],
    ["?from=1969-12-31T20:00:00-04:00", { ...preset, from: "0" }],
    ["?group_by=state,cloud", { ...preset, group_by: ["state", "cloud"] }],
    ["?group_by=state%2Ccloud", { ...preset, group_by: ["state", "cloud"] }],
  ];
  test.each(cases)("%s", async (query, read) => {
    const answer = await app.request(`/list${query}`);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual(read);
  });
});

describe("a query is refused", () => {
  const unknown = "is no parameter of this operation";
  const instant = "must be an RFC 3339 date and time with an offset, like 2026-03-01T08:00:00Z";
  const cases: [query: string, ...errors: [loc: string, msg: string][]][] = [
    ["?nmae=x", ["query.nmae", unknown]],
    ["?NAME=x", ["query.NAME", unknown]],
    ["?=x", ["query.", unknown]],
    ["?__proto__=x", ["query.__proto__", unknown]],
    ["?constructor=x", ["query.constructor", unknown]],
    ["?name=a&name=a", ["query.name", "is given more than once"]],
    ["?name=a&n%61me=b&name=c", ["query.name", "is given more than once"]],
    ["?name=", ["query.name", "must not be empty"]],
    ["?name", ["query.name", "must not be empty"]],
    ["?name=a%00b", ["query.name", "holds a NUL character"]],
    ["?name=%", ["query.name", "is not percent-encoded UTF-8"]],
    ["?name=%zz", ["query.name", "is not percent-encoded UTF-8"]],
    ["?name=%ff", ["query.name", "is not percent-encoded UTF-8"]],
    ["?name=%c0%80", ["query.name", "is not percent-encoded UTF-8"]],
    ["?name=%ed%a0%80", ["query.name", "is not percent-encoded UTF-8"]],
    ["?n%00=x", ["query", "a parameter's name is not percent-encoded UTF-8 text without NUL"]],
    ["?n%ff=x", ["query", "a parameter's name is not percent-encoded UTF-8 text without NUL"]],
    [`?name=${"%C3%BC".repeat(257)}`, ["query.name", "must be 1 to 512 bytes, got 514"]],
    ["?limit=0", ["query.limit", "must be an integer from 1 to 1000"]],
    ["?limit=1001", ["query.limit", "must be an integer from 1 to 1000"]],
    ["?limit=1.0", ["query.limit", "must be an integer from 1 to 1000"]],
    ["?limit=1e2", ["query.limit", "must be an integer from 1 to 1000"]],
    ["?limit=+5", ["query.limit", "must be an integer from 1 to 1000"]],
    ["?limit=0x10", ["query.limit", "must be an integer from 1 to 1000"]],
    ["?limit=9999999999999999999", ["query.limit", "must be an integer from 1 to 1000"]],
    ["?status=Active", ["query.status", "must be one of active, deleted, all"]],
    ["?from=2026-01-01", ["query.from", instant]],
    ["?from=2026-01-01T00:00:00", ["query.from", instant]],
    ["?from=2026-01-01T00:00:60Z", ["query.from", "time of day must be 00:00:00 to 23:59:59"]],
    ["?from=2026-01-01+00:00:00Z", ["query.from", instant]],
    ["?group_by=cloud,cloud", ["query.group_by", "names cloud twice"]],
    ["?group_by=cloud,zone", ["query.group_by", "must be a comma-separated list of cloud, state"]],
    ["?group_by=cloud,", ["query.group_by", "must be a comma-separated list of cloud, state"]],
    [
      "?limit=0&colour=red&from=&status=x&name=a&name=b",
      ["query.from", "must not be empty"],
      ["query.name", "is given more than once"],
      ["query.status", "must be one of active, deleted, all"],
      ["query.limit", "must be an integer from 1 to 1000"],
      ["query.colour", unknown],
    ],
  ];
  test.each(cases)("%s", async (query, ...errors) => {
    expect(await faults(await app.request(`/list${query}`))).toEqual(refused(...errors));
  });

  test("where the operation takes none", async () => {
    expect((await app.request("/plain")).status).toBe(200);
    expect(await faults(await app.request("/plain?x=1"))).toEqual(refused(["query.x", unknown]));
  });

  test("where a required parameter is missing, or is there and wrong: one fault each", async () => {
    expect(await faults(await app.request("/needs"))).toEqual(refused(["query.to", "is required"]));
    expect(await faults(await app.request("/needs?to="))).toEqual(refused(["query.to", "must not be empty"]));
  });

  test("with at most a hundred faults told", async () => {
    const many = Array.from({ length: 400 }, (_, i) => `p${i}=1`).join("&");
    const answer = await app.request(`/list?${many}`);
    expect(answer.status).toBe(400);
    const body: { errors: unknown[]; detail: string } = JSON.parse(await answer.text());
    expect(body.errors).toHaveLength(100);
    expect(body.detail.length).toBeLessThan(600);
  });
});

describe("a path", () => {
  const read: [path: string, cloud: string, id: string][] = [
    ["/things/os-prod/1", "os-prod", "1"],
    ["/things/os-prod/a%2Fb%2F", "os-prod", "a/b/"],
    ["/things/os-prod/a%20b+c", "os-prod", "a b+c"],
    ["/things/os-prod/%F0%9F%98%80", "os-prod", "😀"],
    ["/things/%3Acloud/%3Fx%23y", ":cloud", "?x#y"],
    ["/things/os-prod/100%25", "os-prod", "100%"],
    ["/things/os-prod/%252F", "os-prod", "%2F"],
  ];
  test.each(read)("%s is decoded", async (path, cloud, id) => {
    const answer = await app.request(path);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ cloud, id });
  });

  const wrong: [path: string, ...errors: [loc: string, msg: string][]][] = [
    ["/things/os-prod/%ff", ["path.id", "is not percent-encoded UTF-8"]],
    ["/things/os-prod/a%2", ["path.id", "is not percent-encoded UTF-8"]],
    ["/things/os-prod/a%00", ["path.id", "holds a NUL character"]],
    [`/things/os-prod/${"x".repeat(513)}`, ["path.id", "must be 1 to 512 bytes, got 513"]],
    [
      "/things/%ff/%00?x=1",
      ["path.cloud", "is not percent-encoded UTF-8"],
      ["path.id", "holds a NUL character"],
      ["query.x", "is no parameter of this operation"],
    ],
    ["/uuids/1", ["path.id", "must be a UUID"]],
  ];
  test.each(wrong)("%s is refused", async (path, ...errors) => {
    expect(await faults(await app.request(path))).toEqual(refused(...errors));
  });

  test.each(["/things/os-prod/", "/things//1", "/things/a/b/c", "/things/a%2Fb", "/list/", "/List"])(
    "%s is no path of the app",
    async (path) => {
      expect((await app.request(path)).status).toBe(404);
    },
  );

  test("a UUID is read in lower case", async () => {
    const answer = await app.request("/uuids/0A1B2C3D-0000-4000-8000-00000000000F");
    expect(await answer.json()).toEqual({ id: "0a1b2c3d-0000-4000-8000-00000000000f" });
  });
});
