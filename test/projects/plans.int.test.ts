/** How the database reads the registry: a page never reads or sorts the whole of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  await database.db`
    INSERT INTO projects (platform, cloud, external_id, metadata)
    SELECT CASE n % 100 WHEN 0 THEN 'vmware' ELSE 'openstack' END, 'cloud' || n % 10, 'p' || n / 4,
           jsonb_build_object('filler', repeat('x', 500))
      FROM generate_series(1, 20000) n ON CONFLICT DO NOTHING`;
  await database.db`ANALYZE projects`;
});
afterAll(() => database.drop());

async function plan(conditions: string): Promise<string> {
  const rows: { "QUERY PLAN": string }[] = await database.db.unsafe(
    `EXPLAIN SELECT * FROM projects WHERE ${conditions} ORDER BY cloud, external_id LIMIT 101`,
  );
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

describe("a page of projects", () => {
  test.each([
    "true",
    "(cloud, external_id) > ('cloud5', 'p100')",
    "cloud = 'cloud3'",
    "platform = 'vmware'",
    "platform = 'vmware' AND (cloud, external_id) > ('cloud5', 'p100')",
    "external_id = 'p77'",
    "cloud = 'cloud3' AND external_id = 'p77'",
  ])("WHERE %s comes out of an index", async (conditions) => {
    const text = await plan(conditions);
    expect(text).toContain("Index Scan");
    expect(text).not.toContain("Seq Scan");
  });
});
