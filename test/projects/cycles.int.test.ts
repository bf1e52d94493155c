/** Attributing relations never form a cycle, whoever makes them at once. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { call, idOf, project, refusalOf } from "./calls.ts";

let server: TestServer;
let made = 0;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

const TENANT = "infrastructure_tenant";
const projects = async (count: number) => {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await project(server, `p${++made}`));
  return ids;
};
const relate = (source: string | undefined, target: string | undefined, type = TENANT, at = server) =>
  call(
    at,
    "POST",
    `/api/v1/projects/${source}/relations`,
    JSON.stringify({ target_id: target, relation_type: type }),
    server.credentials.admin,
  );
const CYCLE = { status: 422, type: "relation_cycle", locs: [] };

describe("a cycle", () => {
  test("of two is refused, and of five", async () => {
    const [a, b, c, d, e] = await projects(5);
    expect((await relate(a, b)).status).toBe(201);
    expect(refusalOf(await relate(b, a))).toEqual(CYCLE);
    for (const [source, target] of [
      [b, c],
      [c, d],
      [d, e],
    ])
      expect((await relate(source, target)).status).toBe(201);
    for (const target of [a, b, c, d]) expect(refusalOf(await relate(e, target))).toEqual(CYCLE);
  });

  test("is none where two ways meet", async () => {
    const [a, b, c, d] = await projects(4);
    for (const [source, target] of [
      [a, b],
      [a, c],
      [b, d],
      [c, d],
    ])
      expect((await relate(source, target)).status).toBe(201);
    expect(refusalOf(await relate(d, a))).toEqual(CYCLE);
  });

  test("is none of a type that attributes nothing, nor over a relation of one", async () => {
    const [a, b, c] = await projects(3);
    for (const [source, target] of [
      [a, b],
      [b, a],
    ])
      expect((await relate(source, target, "member_of")).status).toBe(201);
    expect((await relate(b, c)).status).toBe(201);
    expect((await relate(c, a)).status).toBe(201);
    expect((await relate(a, b, "managed_by")).status).toBe(201);
  });

  test("is none over a closed relation, also one that still holds for a while", async () => {
    const [a, b] = await projects(2);
    const id = idOf(await relate(a, b));
    await call(
      server,
      "PATCH",
      `/api/v1/projects/${a}/relations/${id}`,
      '{"valid_to":"9999-01-01T00:00:00Z"}',
    );
    expect((await relate(b, a)).status).toBe(201);
    expect(refusalOf(await relate(a, b))).toEqual(CYCLE);
  });

  test("counts a relation that has not begun to hold", async () => {
    const [a, b] = await projects(2);
    const later = JSON.stringify({ target_id: b, relation_type: TENANT, valid_from: "9999-01-01T00:00:00Z" });
    expect((await call(server, "POST", `/api/v1/projects/${a}/relations`, later)).status).toBe(201);
    expect(refusalOf(await relate(b, a))).toEqual(CYCLE);
  });

  test("mixes the attributing types that the settings name", async () => {
    const other = await testServer({
      db: server.db,
      settings: { attributingRelationTypes: ["pays", "hosts"] },
    });
    const [a, b, c] = await projects(3);
    expect((await relate(a, b, "pays", other)).status).toBe(201);
    expect((await relate(b, c, "hosts", other)).status).toBe(201);
    expect(refusalOf(await relate(c, a, "pays", other))).toEqual(CYCLE);
    expect((await relate(c, a, TENANT, other)).status).toBe(201);
    expect((await relate(c, a, "pays")).status).toBe(201);
    await other.stop();
  });
});

/** Whether the open attributing relations form no cycle: leaves are taken off until nothing is left. */
async function acyclic(): Promise<boolean> {
  let edges: { s: string; t: string }[] = await server.db.db`
    SELECT source_id::text AS s, target_id::text AS t FROM project_relations
     WHERE relation_type = ${TENANT} AND valid_to IS NULL`;
  for (;;) {
    const sources = new Set(edges.map(({ s }) => s));
    const rest = edges.filter(({ t }) => sources.has(t));
    if (rest.length === edges.length) return edges.length === 0;
    edges = rest;
  }
}

describe("twenty creations that would close a cycle together", () => {
  test("around a ring: one is refused", async () => {
    const other = await testServer({ db: server.db, credentials: false });
    for (let round = 0; round < 5; round++) {
      const ring = await projects(20);
      const answers = await Promise.all(
        ring.map((source, at) => relate(source, ring[(at + 1) % 20], TENANT, at % 2 === 0 ? server : other)),
      );
      // Nineteen are a chain; only the last one closes it.
      expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(201), 422]);
      expect(await acyclic()).toBe(true);
    }
    await other.stop();
  });

  test("between few: whatever is left has no cycle", async () => {
    const few = await projects(5);
    const answers = await Promise.all(
      few.flatMap((source) =>
        few.filter((target) => target !== source).map((target) => relate(source, target)),
      ),
    );
    const statuses = answers.map(({ status }) => status);
    // Of each pair exactly one direction can stand; ten in all.
    expect(statuses.filter((status) => status === 201)).toHaveLength(10);
    expect(statuses.filter((status) => status === 422)).toHaveLength(10);
    expect(await acyclic()).toBe(true);
  });
});

test("a large graph is looked through once", async () => {
  const [start, end] = await projects(2);
  await server.db.db`
    WITH layer AS (
      INSERT INTO projects (platform, cloud, external_id)
      SELECT 'openstack', 'dense', n::text FROM generate_series(0, 599) n RETURNING id, external_id::int AS n)
    INSERT INTO project_relations (source_id, target_id, relation_type, valid_from)
    SELECT s.id, t.id, ${TENANT}, now() FROM layer s JOIN layer t ON t.n / 20 = s.n / 20 + 1`;
  const [first, last] = await Promise.all(
    ["0", "599"].map(async (n) => {
      const [row]: { id: string }[] = await server.db.db`
        SELECT id::text AS id FROM projects WHERE cloud = 'dense' AND external_id = ${n}`;
      return row?.id;
    }),
  );
  // 20 ways a layer: 20^29 ways from the first project to the last one.
  expect((await relate(start, first)).status).toBe(201);
  expect((await relate(last, end)).status).toBe(201);
  expect(refusalOf(await relate(end, start))).toEqual(CYCLE);
});
