/** tally project, on a database of its own. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

async function tally(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([process.execPath, "src/main.ts", "project", ...args], {
    env: { TALLY_REPORTING_DB_URL: database.url },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}
const rows = async () => [
  ...(await database.db`
    SELECT id::text AS id, platform, cloud, external_id, name, metadata::text AS metadata FROM projects
     ORDER BY cloud, external_id`),
];

test("create-meta and create-partner print the id alone, and are audited as admin-cli", async () => {
  const group = await tally("create-meta", "--external-id", "group 1", "--name", "All of Europe");
  expect(group).toMatchObject({ code: 0, stderr: "" });
  expect(group.stdout).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\n$/);
  const partner = await tally("create-partner", "--external-id", "acme");
  expect(partner).toMatchObject({ code: 0, stderr: "" });
  expect(await rows()).toEqual([
    {
      id: group.stdout.trim(),
      platform: "meta",
      cloud: "meta",
      external_id: "group 1",
      name: "All of Europe",
      metadata: "{}",
    },
    {
      id: partner.stdout.trim(),
      platform: "partner",
      cloud: "partner",
      external_id: "acme",
      name: null,
      metadata: "{}",
    },
  ]);
  const audit = await database.db`SELECT actor, action, object_type, object_id FROM audit_log ORDER BY id`;
  expect([...audit]).toEqual(
    [group, partner].map(({ stdout }) => ({
      actor: "admin-cli",
      action: "project.create",
      object_type: "project",
      object_id: stdout.trim(),
    })),
  );
});

test("list shows every project in a table", async () => {
  await database.db`INSERT INTO projects (platform, cloud, external_id, name, created_at)
    VALUES ('openstack', 'eu1', 'shop', E'S\nhop', '2026-03-01T00:00:00.25Z')`;
  const { code, stdout } = await tally("list");
  expect(code).toBe(0);
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^ID +PLATFORM +CLOUD +EXTERNAL ID +CREATED +NAME$/);
  expect(lines).toHaveLength(5);
  expect(lines[2]).toMatch(/^[0-9a-f-]{36} +openstack +eu1 +shop +2026-03-01T00:00:00\.25Z +S\\u000ahop$/);
  expect(lines[3]).toMatch(/^[0-9a-f-]{36} +meta +meta +group 1 +\S+Z +All of Europe$/);
  expect(lines[4]).toMatch(/^[0-9a-f-]{36} +partner +partner +acme +\S+Z$/);
});

test("a thousand and more are listed, too", async () => {
  await database.db`INSERT INTO projects (platform, cloud, external_id)
    SELECT 'openstack', 'many', n::text FROM generate_series(1, 1500) n`;
  expect((await tally("list")).stdout.trimEnd().split("\n")).toHaveLength(1_505);
});

test.each([
  [["create-meta", "--external-id", "group 1"], "a project of this cloud has this external_id already"],
  [["create-meta"], "required option '--external-id <id>' not specified"],
  [["create-meta", "--external-id", ""], "external_id: must be 1 to 512 bytes, got 0"],
  [["create-meta", "--external-id", "ü".repeat(257)], "external_id: must be 1 to 512 bytes, got 514"],
  [["create-partner", "--external-id", "x", "--name", ""], "name: must be 1 to 512 bytes, got 0"],
  [["create-real", "--external-id", "x"], "unknown command 'create-real'"],
])("%p is refused in one line, and nothing is written", async (args, reason) => {
  const before = await rows();
  const { code, stdout, stderr } = await tally(...args);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^tally: [^\n]+\n$/);
  expect(stderr).toContain(reason);
  expect(await rows()).toEqual(before);
});
