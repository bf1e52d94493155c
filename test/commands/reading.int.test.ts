/** Commands that only read make no database, migrate none, and don't take what isn't there for something empty. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../../src/database/migration-files.ts";
import { migrateUp } from "../../src/database/migrations.ts";
import { openPool } from "../../src/database/pool.ts";
import { ownServer, temporaryDirectory } from "../database/own-server.ts";
import { emptyDatabase } from "../support/database.ts";

// Every command is a process of its own, and the machine may be busy.
setDefaultTimeout(60_000);

const directory = temporaryDirectory();
const file = join(directory.path, "backup.zst");
afterAll(() => directory.remove());

/** A cloud that nobody reaches: what a dry run says of its database comes first. */
beforeAll(() => {
  writeFileSync(
    join(directory.path, "tally.yaml"),
    "clouds:\n  - cloud: eu1\n    platform: openstack\n    adapter: openstack\n    adapter_config: { os_cloud: eu1 }\n",
  );
});

const READING: readonly string[][] = [
  ["verify"],
  ["export", file],
  ["project", "list"],
  ["credential", "list"],
  ["token", "list"],
  ["sync", "eu1", "--dry-run"],
  ["migrate", "status"],
];

async function tally(env: Record<string, string>, ...args: string[]) {
  const child = Bun.spawn([process.execPath, "src/main.ts", ...args], {
    env: { TALLY_REPORTING_CLOUDS_CONFIG: join(directory.path, "tally.yaml"), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

describe("where there is no database", () => {
  test.each(READING)("tally %s … says so, and makes none", async (...words) => {
    const args = words.filter((word) => typeof word === "string");
    const missing = join(directory.path, "mistyped");
    const empty = join(directory.path, "empty");
    mkdirSync(empty, { recursive: true });
    for (const dataDir of [missing, empty]) {
      expect(await tally({ TALLY_DATA_DIR: dataDir }, ...args)).toEqual({
        code: 1,
        stdout: "",
        stderr: `tally: there is no database in ${dataDir}: set TALLY_DATA_DIR to the directory that has one (tally serve makes one)\n`,
      });
    }
    expect([existsSync(missing), readdirSync(empty), existsSync(file)]).toEqual([false, [], false]);
  });

  test("nor when a Tally that was killed had only begun to make it", async () => {
    const dataDir = join(directory.path, "begun");
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, "tally.lock"), "");
    writeFileSync(join(dataDir, "holder.json"), '{"pid":999999,"role":"serve","socketDirectory":"/nowhere"}');
    const { code, stderr } = await tally({ TALLY_DATA_DIR: dataDir }, "verify");
    expect([code, stderr]).toEqual([1, expect.stringContaining(`there is no database in ${dataDir}: `)]);
    expect(existsSync(join(dataDir, "database"))).toBe(false);
  });
});

/** A database directory of a schema that ends with migration 8, as an older Tally left it. */
async function olderDirectory(name: string): Promise<string> {
  const dataDir = join(directory.path, name);
  const server = await ownServer(dataDir);
  const db = openPool(server.target, { maxConnections: 1 });
  await migrateUp(
    db,
    MIGRATIONS.filter(({ version }) => version <= 8),
  );
  await db`INSERT INTO projects (platform, cloud, external_id) VALUES ('openstack', 'os-1', 'shop')`;
  await db.close({ timeout: 0 });
  await server.stop();
  return dataDir;
}

/** The versions of the migrations that a directory's database has. */
async function versionsIn(dataDir: string): Promise<number[]> {
  const server = await ownServer(dataDir);
  const db = openPool(server.target, { maxConnections: 1 });
  const rows: { version: number }[] = await db`SELECT version FROM schema_migrations ORDER BY version`;
  await db.close({ timeout: 0 });
  await server.stop();
  return rows.map(({ version }) => version);
}

const OLDER = "tally: the database's schema is older than this Tally: run tally migrate up\n";
const NEWER = "tally: the database's schema is newer than this Tally: use the newer one\n";
const AS_IT_IS = [
  ["export", file],
  ["migrate", "status"],
].map((args) => args.join(" "));

describe("an embedded database of an older Tally", () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await olderDirectory("older");
  });

  test.each(READING.filter((args) => !AS_IT_IS.includes(args.join(" "))))(
    "tally %s … refuses it",
    async (...words) => {
      const args = words.filter((word) => typeof word === "string");
      expect(await tally({ TALLY_DATA_DIR: dataDir }, ...args)).toEqual({
        code: 1,
        stdout: "",
        stderr: OLDER,
      });
    },
  );

  test("is exported as it is, and its status told; this Tally imports that", async () => {
    const env = { TALLY_DATA_DIR: dataDir };
    const exported = await tally(env, "export", file);
    expect([exported.code, exported.stdout]).toEqual([0, ""]);
    // One project, and the size schemas of five types.
    expect(exported.stderr).toMatch(/^6 rows exported, 0 of them events, in [\d.]+ s\n$/);
    const status = await tally(env, "migrate", "status");
    expect(status.stdout).toMatch(/^0008 +read_indexes +applied /m);
    expect(status.stdout).toMatch(/^0009 +dead_letter_work +pending *$/m);
    const target = await emptyDatabase();
    const url = { TALLY_REPORTING_DB_URL: target.url };
    expect((await tally(url, "import", file)).stdout).toMatch(
      /^6 rows, 0 of them events imported and verified/,
    );
    expect((await tally(url, "project", "list")).stdout).toMatch(/ os-1 +shop /);
    await target.drop();
  });

  test("none of them has migrated it", async () => {
    expect(await versionsIn(dataDir)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});

test("a database of a newer Tally is refused by all that read its rows, export among them", async () => {
  const newer = await emptyDatabase();
  const env = { TALLY_REPORTING_DB_URL: newer.url };
  await migrateUp(newer.db);
  await newer.db`INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'later', 'x')`;
  for (const args of READING) {
    const said = await tally(env, ...args.map((word) => (word === file ? `${file}.newer` : word)));
    if (args[0] === "migrate") expect(said.stdout).toMatch(/^9999 +later +unknown /m);
    else if (args[0] === "export")
      expect(said.stderr).toBe(
        "tally: the database's schema is newer than this Tally: export it with the newer one\n",
      );
    else expect(said).toEqual({ code: 1, stdout: "", stderr: NEWER });
  }
  await newer.drop();
});

test("an external database without a schema is no empty record", async () => {
  const empty = await emptyDatabase();
  const env = { TALLY_REPORTING_DB_URL: empty.url };
  expect((await tally(env, "verify")).stderr).toBe(OLDER);
  expect((await tally(env, "export", join(directory.path, "none.zst"))).stderr).toBe(
    "tally: the database has no schema: there is nothing to export\n",
  );
  await empty.drop();
});
