/** GET /api/v1/projects/{id}/related. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { parseInstant } from "../../src/event/instant.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { call, project, refusalOf, relation } from "./calls.ts";

const UNKNOWN = "00000000-0000-4000-8000-000000000000";
let server: TestServer;
let seconds = 0;
beforeAll(async () => {
  // Each relation is a second younger than the one before.
  const now = () => {
    const value = parseInstant(
      `2026-03-01T00:${String(Math.floor(seconds / 60)).padStart(2, "0")}:${String(seconds % 60).padStart(2, "0")}Z`,
    );
    if (typeof value === "string") throw new Error(value);
    return value;
  };
  server = await testServer({ now });
});
afterAll(() => server.stop());

let made = 0;
/** Projects by the letters of their names. */
async function projects<N extends string>(...names: N[]): Promise<Record<N, string>> {
  made++;
  const ids: Partial<Record<N, string>> = {};
  for (const name of names) ids[name] = await project(server, name, `cloud${made}`);
  return ids as Record<N, string>;
}
async function relate(source: string, target: string, more: Record<string, unknown> = {}): Promise<string> {
  seconds++;
  return await relation(server, source, target, more);
}
interface Item {
  project: { external_id: string };
  relation_type: string;
  depth: number;
  path: string[];
}
async function related(start: string, query = ""): Promise<Item[]> {
  const answer = await call(server, "GET", `/api/v1/projects/${start}/related${query}`);
  if (answer.status !== 200) throw new Error(answer.text);
  return JSON.parse(answer.text).items;
}
const names = (items: Item[]) => items.map((item) => `${item.project.external_id}${item.depth}`);

describe("related projects", () => {
  test("nearest first, siblings by age, each once, with the way there", async () => {
    const { a, b, c, d, e } = await projects("a", "b", "c", "d", "e");
    const ac = await relate(a, c, { relation_type: "managed_by" });
    const ab = await relate(a, b);
    const ce = await relate(c, e);
    const bd = await relate(b, d);
    await relate(c, d);
    await relate(b, e);
    const de = await relate(d, e);
    const items = await related(a, "?depth=3");
    expect(items.map(({ project: reached, ...way }) => ({ reached: reached.external_id, ...way }))).toEqual([
      { reached: "c", relation_type: "managed_by", depth: 1, path: [ac] },
      { reached: "b", relation_type: "member_of", depth: 1, path: [ab] },
      { reached: "e", relation_type: "member_of", depth: 2, path: [ac, ce] },
      { reached: "d", relation_type: "member_of", depth: 2, path: [ac, expect.any(String)] },
    ]);
    // c was visited before b, so d is reached from c, though b's relation to it is older.
    expect(items[3]?.path).not.toContain(bd);
    expect(items.flatMap(({ path }) => path)).not.toContain(de);
    expect(items[0]?.project).toEqual(JSON.parse((await call(server, "GET", `/api/v1/projects/${c}`)).text));
  });

  test("as deep as asked, one where nothing is asked, ten at most", async () => {
    const letters = [..."abcdefghijklm"];
    const ids = await projects(...letters);
    for (let at = 1; at < letters.length; at++)
      await relate(ids[letters[at - 1] ?? ""] ?? "", ids[letters[at] ?? ""] ?? "");
    const start = ids.a ?? "";
    expect(names(await related(start))).toEqual(["b1"]);
    expect(names(await related(start, "?depth=2"))).toEqual(["b1", "c2"]);
    const deepest = await related(start, "?depth=10");
    expect(names(deepest)).toEqual(["b1", "c2", "d3", "e4", "f5", "g6", "h7", "i8", "j9", "k10"]);
    expect(deepest[9]?.path).toHaveLength(10);
  });

  test("outgoing only, and never the start again", async () => {
    const { a, b, c } = await projects("a", "b", "c");
    await relate(a, b);
    await relate(b, a);
    await relate(c, a);
    expect(names(await related(a, "?depth=10"))).toEqual(["b1"]);
    expect(names(await related(b, "?depth=10"))).toEqual(["a1"]);
    expect(names(await related(c, "?depth=10"))).toEqual(["a1", "b2"]);
  });

  test("of several relations to one project the oldest is the way", async () => {
    const { a, b } = await projects("a", "b");
    const first = await relate(a, b, { relation_type: "managed_by" });
    await relate(a, b);
    expect((await related(a)).map(({ path, relation_type }) => [relation_type, path])).toEqual([
      ["managed_by", [first]],
    ]);
  });

  test("over one type of relation only", async () => {
    const { a, b, c, d } = await projects("a", "b", "c", "d");
    await relate(a, b);
    await relate(b, c, { relation_type: "managed_by" });
    await relate(b, d);
    expect(names(await related(a, "?depth=9&relation_type=member_of"))).toEqual(["b1", "d2"]);
    expect(names(await related(a, "?depth=9&relation_type=managed_by"))).toEqual([]);
  });

  test("over what is valid at the instant", async () => {
    const { a, b, c } = await projects("a", "b", "c");
    const ab = await relate(a, b, { valid_from: "2020-01-01T00:00:00Z" });
    await relate(b, c, { valid_from: "2021-01-01T00:00:00Z" });
    await call(
      server,
      "PATCH",
      `/api/v1/projects/${a}/relations/${ab}`,
      '{"valid_to":"2022-01-01T00:00:00Z"}',
    );
    const at = async (instant: string) => names(await related(a, `?depth=2&at=${instant}`));
    expect(await at("2019-12-31T23:59:59.999999Z")).toEqual([]);
    expect(await at("2020-01-01T00:00:00Z")).toEqual(["b1"]);
    expect(await at("2021-01-01T00:00:00Z")).toEqual(["b1", "c2"]);
    expect(await at("2021-12-31T23:59:59.999999Z")).toEqual(["b1", "c2"]);
    expect(await at("2022-01-01T00:00:00Z")).toEqual([]);
    expect(names(await related(a, "?depth=2"))).toEqual([]);
  });

  test("of a dense graph each is reached once", async () => {
    // 10 layers of 30, each wholly related to the next: 30^10 ways.
    await server.db.db`
      WITH layer AS (
        INSERT INTO projects (platform, cloud, external_id)
        SELECT 'openstack', 'dense', n::text FROM generate_series(0, 299) n RETURNING id, external_id::int AS n)
      INSERT INTO project_relations (source_id, target_id, relation_type, valid_from)
      SELECT s.id, t.id, 'member_of', '2026-01-01Z' FROM layer s JOIN layer t ON t.n / 30 = s.n / 30 + 1`;
    const [row]: { id: string }[] = await server.db.db`
      SELECT id::text AS id FROM projects WHERE cloud = 'dense' AND external_id = '0'`;
    const items = await related(row?.id ?? "", "?depth=10");
    expect(items).toHaveLength(270);
    expect(new Set(items.map((item) => item.project.external_id)).size).toBe(270);
  });

  test("more than 10,000 are refused", async () => {
    const { a } = await projects("a");
    await server.db.db`
      WITH made AS (
        INSERT INTO projects (platform, cloud, external_id)
        SELECT 'openstack', 'wide', n::text FROM generate_series(1, 10001) n RETURNING id, external_id)
      INSERT INTO project_relations (source_id, target_id, relation_type, valid_from)
      SELECT ${a}::text::uuid, id, CASE external_id WHEN '1' THEN 'one' ELSE 'member_of' END, '2026-01-01Z' FROM made`;
    expect(refusalOf(await call(server, "GET", `/api/v1/projects/${a}/related`))).toEqual({
      status: 422,
      type: "result_too_large",
      locs: [],
    });
    expect(await related(a, "?relation_type=member_of")).toHaveLength(10_000);
  });

  test("of an unknown project: 404", async () => {
    const answer = await call(server, "GET", `/api/v1/projects/${UNKNOWN}/related`);
    expect(refusalOf(answer)).toEqual({ status: 404, type: "not_found", locs: [] });
  });

  test.each([
    ["depth=0", "query.depth"],
    ["depth=11", "query.depth"],
    ["depth=-1", "query.depth"],
    ["depth=1.5", "query.depth"],
    ["depth=", "query.depth"],
    ["depth=1&depth=1", "query.depth"],
    ["relation_type=", "query.relation_type"],
    ["relation_type=%00", "query.relation_type"],
    ["at=", "query.at"],
    ["at=yesterday", "query.at"],
    ["direction=incoming", "query.direction"],
    ["limit=1", "query.limit"],
  ])("%s: 400", async (query, loc) => {
    const answer = await call(server, "GET", `/api/v1/projects/${UNKNOWN}/related?${query}`);
    expect(refusalOf(answer)).toEqual({ status: 400, type: "validation", locs: [loc] });
  });
});
