import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { apiCaller, ingestCaller } from "../../src/access/callers.ts";
import { issueApiToken, issueCredential, revoke } from "../../src/access/credentials.ts";
import { listApiTokens, listCredentials } from "../../src/access/queries.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
const projects: string[] = [];
beforeAll(async () => {
  database = await testDatabase();
  for (const [cloud, externalId] of [
    ["eu1", "p1"],
    ["us1", "p1"],
  ]) {
    const [row]: { id: string }[] = await database.db`
      INSERT INTO projects (platform, cloud, external_id) VALUES ('openstack', ${cloud}, ${externalId})
      RETURNING id::text AS id`;
    projects.push(row?.id ?? "");
  }
});
afterAll(() => database.drop());

const services = () => ({
  db: database.db,
  settings: { auth: { mode: "enforced", internalToken: null } as const },
});
const bearing = (token: string) =>
  new Request("http://tally/", { headers: { authorization: `Bearer ${token}` } });

/** The audit rows that tell of one object, oldest first. */
async function audited(objectId: string): Promise<object[]> {
  return [
    ...(await database.db`
      SELECT actor, action, object_type, details::text AS details FROM audit_log
       WHERE object_id = ${objectId} ORDER BY id`),
  ];
}

const auditRows = async (): Promise<number> => {
  const [row]: { n: number }[] = await database.db`SELECT count(*)::int AS n FROM audit_log`;
  return row?.n ?? -1;
};

describe("an ingest credential", () => {
  test("carries its platform and cloud, and is audited", async () => {
    const wanted = { platform: "openstack", cloud: "eu1", description: "the agent on rack 4" };
    const { id, token } = await issueCredential(database.db, wanted, "admin-cli");
    expect(token).toMatch(/^tly_i_[0-9a-f]{64}$/);
    expect(await ingestCaller(services(), bearing(token))).toEqual({
      actor: id,
      scope: { platform: "openstack", cloud: "eu1" },
    });
    expect(await audited(id)).toEqual([
      {
        actor: "admin-cli",
        action: "ingest_credential.create",
        object_type: "ingest_credential",
        details: '{"cloud": "eu1", "platform": "openstack", "description": "the agent on rack 4"}',
      },
    ]);
  });

  test("is revoked once", async () => {
    const wanted = { platform: "openstack", cloud: "eu2", description: null };
    const { id, token } = await issueCredential(database.db, wanted, "admin-cli");
    const first = await revoke(database.db, "ingest", id, "admin-cli");
    expect(first.outcome).toBe("revoked");
    await expect(ingestCaller(services(), bearing(token))).rejects.toMatchObject({ kind: "unauthorized" });
    expect(await revoke(database.db, "ingest", id.toUpperCase(), "admin-cli")).toEqual({
      outcome: "already",
      at: first.at,
    });
    expect((await audited(id)).map((row) => "action" in row && row.action)).toEqual([
      "ingest_credential.create",
      "ingest_credential.revoke",
    ]);
    const listed = (await listCredentials(database.db)).find((row) => row.id === id);
    expect(listed).toMatchObject({
      platform: "openstack",
      cloud: "eu2",
      description: null,
      revokedAt: first.at,
    });
  });

  test.each([
    [
      { platform: "meta", cloud: "eu1" },
      'platform: "meta" is a virtual platform, which never carries resources',
    ],
    [
      { platform: "openstack", cloud: "partner" },
      'cloud: "partner" is a virtual cloud, which never carries resources',
    ],
    [{ platform: "", cloud: "eu1" }, "platform: must be 1 to 512 bytes, got 0"],
    [{ platform: "ü".repeat(257), cloud: "eu1" }, "platform: must be 1 to 512 bytes, got 514"],
    [{ platform: "a\0b", cloud: "eu1" }, "platform: holds a NUL character"],
  ])("is refused with a reason, and leaves nothing: %#", async (wanted, message) => {
    const before = await auditRows();
    await expect(issueCredential(database.db, { ...wanted, description: null }, "admin-cli")).rejects.toThrow(
      message,
    );
    expect(await auditRows()).toBe(before);
  });
});

describe("an API token", () => {
  test("of role project stands for its projects' pairs", async () => {
    const wanted = { role: "project", projectIds: projects, description: null } as const;
    const { id, token } = await issueApiToken(database.db, wanted, "admin-cli");
    expect(token).toMatch(/^tly_a_[0-9a-f]{64}$/);
    const caller = await apiCaller(services(), bearing(token), "project");
    expect(caller.actor).toBe(id);
    expect(caller.role).toBe("project");
    expect(caller.scope?.toSorted((a, b) => (a.cloud < b.cloud ? -1 : 1))).toEqual([
      { cloud: "eu1", projectId: "p1" },
      { cloud: "us1", projectId: "p1" },
    ]);
    expect(await audited(id)).toEqual([
      {
        actor: "admin-cli",
        action: "api_token.create",
        object_type: "api_token",
        details: `{"role": "project", "description": null, "project_ids": ["${projects[0]}", "${projects[1]}"]}`,
      },
    ]);
  });

  test.each(["admin", "read_all"] as const)("of role %s sees everything", async (role) => {
    const { id, token } = await issueApiToken(
      database.db,
      { role, projectIds: [], description: "ops" },
      "admin-cli",
    );
    expect(await apiCaller(services(), bearing(token), role)).toEqual({ actor: id, role, scope: null });
    const listed = (await listApiTokens(database.db)).find((row) => row.id === id);
    expect(listed).toMatchObject({ role, projectIds: [], description: "ops", revokedAt: null });
  });

  test("names a project twice and keeps it once", async () => {
    const [project = ""] = projects;
    const wanted = {
      role: "project",
      projectIds: [project, project.toUpperCase()],
      description: null,
    } as const;
    const { id } = await issueApiToken(database.db, wanted, "admin-cli");
    expect((await listApiTokens(database.db)).find((row) => row.id === id)?.projectIds).toEqual([project]);
  });

  const unknown = "00000000-0000-4000-8000-00000000000f";
  test.each([
    [{ role: "project", projectIds: [] }, "a token of role project needs at least one --project"],
    [
      { role: "project", projectIds: [unknown] },
      `no registered project has the id ${unknown}: tally project list shows them`,
    ],
    [
      { role: "project", projectIds: ["p1"] },
      'project: "p1" is not a UUID: tally project list shows the ids that tokens take',
    ],
    [
      { role: "admin", projectIds: [unknown] },
      "a token of role admin reads every project: leave --project out",
    ],
  ] as const)("is refused with a reason, and leaves nothing: %#", async (wanted, message) => {
    const before = await auditRows();
    await expect(issueApiToken(database.db, { ...wanted, description: null }, "admin-cli")).rejects.toThrow(
      message,
    );
    expect(await auditRows()).toBe(before);
  });
});

test("a token stands for at most 1000 projects", async () => {
  const projectIds = Array.from({ length: 1_001 }, () => crypto.randomUUID());
  const wanted = { role: "project", projectIds, description: null } as const;
  await expect(issueApiToken(database.db, wanted, "admin-cli")).rejects.toThrow(
    "at most 1000 projects, got 1001",
  );
});

test("what isn't there can't be revoked", async () => {
  const unknown = "00000000-0000-4000-8000-00000000000f";
  await expect(revoke(database.db, "api", unknown, "admin-cli")).rejects.toThrow(
    `no API token has the id ${unknown}`,
  );
  await expect(revoke(database.db, "ingest", unknown, "x")).rejects.toThrow(
    `no ingest credential has the id ${unknown}`,
  );
  await expect(revoke(database.db, "ingest", "x' OR 1=1", "x")).rejects.toThrow("is not a UUID");
});

test("no table holds a token", async () => {
  const wanted = { platform: "openstack", cloud: "eu9", description: null };
  const { token } = await issueCredential(database.db, wanted, "admin-cli");
  const [dump]: { text: string }[] = await database.db`
    SELECT (SELECT string_agg(c::text, ' ') FROM ingest_credentials c)
        || (SELECT string_agg(t::text, ' ') FROM api_tokens t)
        || (SELECT string_agg(a::text, ' ') FROM audit_log a) AS text`;
  const hash = new Bun.CryptoHasher("sha256").update(token).digest("hex");
  expect(dump?.text).toContain(hash);
  expect(dump?.text).not.toContain(token.slice("tly_i_".length));
});
