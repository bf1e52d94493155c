import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type TestDatabase, testDatabase } from "../support/database.ts";

// Every command is a process of its own, and the machine may be busy.
setDefaultTimeout(60_000);

let database: TestDatabase;
let project = "";
beforeAll(async () => {
  database = await testDatabase();
  const [row]: { id: string }[] = await database.db`
    INSERT INTO projects (platform, cloud, external_id) VALUES ('openstack', 'eu1', 'p1') RETURNING id::text AS id`;
  project = row?.id ?? "";
});
afterAll(() => database.drop());

/** Runs `tally` with the arguments against the test's database. */
async function tally(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([process.execPath, "src/main.ts", ...args], {
    env: { TALLY_REPORTING_DB_URL: database.url },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

const idIn = (text: string) => /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(text)?.[0] ?? "";

describe("tally credential", () => {
  test("create prints the token alone on stdout; list and revoke know its id", async () => {
    const created = await tally(
      "credential",
      "create",
      "--platform",
      "openstack",
      "--cloud",
      "eu1",
      "--description",
      "rack 4",
    );
    expect(created.stdout).toMatch(/^tly_i_[0-9a-f]{64}\n$/);
    expect(created.code).toBe(0);
    const id = idIn(created.stderr);
    expect(id).not.toBe("");

    const listed = await tally("credential", "list");
    const lines = listed.stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^ID +PLATFORM +CLOUD +CREATED +REVOKED +DESCRIPTION$/);
    expect(lines[2]).toMatch(new RegExp(`^${id}  openstack  eu1    \\d{4}-[^ ]+Z +rack 4$`));
    expect(lines).toHaveLength(3);
    expect(listed.stdout).not.toContain("tly_i_");

    expect(await tally("credential", "revoke", id)).toMatchObject({
      code: 0,
      stdout: `credential ${id} revoked\n`,
    });
    const again = await tally("credential", "revoke", id);
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(new RegExp(`^credential ${id} was revoked already, at \\d{4}-.+Z\n$`));
  });

  test.each([
    [
      ["credential", "create", "--platform", "meta", "--cloud", "eu1"],
      'platform: "meta" is a virtual platform, which never carries resources',
    ],
    [["credential", "create", "--platform", "openstack"], "required option '--cloud <cloud>' not specified"],
    [
      ["credential", "revoke", "00000000-0000-4000-8000-000000000001"],
      "no ingest credential has the id 00000000-0000-4000-8000-000000000001",
    ],
    [["credential", "revoke", "nonsense"], 'credential: "nonsense" is not a UUID'],
    [["token", "create", "--role", "king"], "is invalid. Allowed choices are admin, read_all, project."],
    [["token", "create", "--role", "project"], "a token of role project needs at least one --project"],
    [
      ["token", "create", "--role", "project", "--project", "00000000-0000-4000-8000-000000000002"],
      "no registered project has the id 00000000-0000-4000-8000-000000000002",
    ],
  ])("%p is refused in one line", async (args, message) => {
    const { code, stdout, stderr } = await tally(...args);
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

test("tally token create, list, revoke", async () => {
  const created = await tally(
    "token",
    "create",
    "--role",
    "project",
    "--project",
    project,
    "--description",
    "billing",
  );
  expect(created.stdout).toMatch(/^tly_a_[0-9a-f]{64}\n$/);
  const id = idIn(created.stderr);
  const admin = await tally("token", "create", "--role", "admin");
  expect(admin.stdout).toMatch(/^tly_a_[0-9a-f]{64}\n$/);

  const { stdout } = await tally("token", "list");
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^ID +ROLE +PROJECTS +CREATED +REVOKED +DESCRIPTION$/);
  expect(lines.find((line) => line.startsWith(id))).toMatch(
    new RegExp(`^${id}  project  ${project}  .+billing$`),
  );
  expect(lines.find((line) => line.startsWith(idIn(admin.stderr)))).toMatch(/ {2}admin {4} +\d{4}-/);

  expect(await tally("token", "revoke", id)).toMatchObject({ code: 0, stdout: `token ${id} revoked\n` });
  const [row]: { live: boolean }[] = await database.db`
    SELECT revoked_at IS NULL AS live FROM api_tokens WHERE id = ${id}::uuid`;
  expect(row?.live).toBe(false);
  const [audited]: { actors: string }[] = await database.db`
    SELECT string_agg(actor || ' ' || action, ', ' ORDER BY id) AS actors FROM audit_log WHERE object_id = ${id}`;
  expect(audited?.actors).toBe("admin-cli api_token.create, admin-cli api_token.revoke");
});
