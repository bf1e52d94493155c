/** tally sync, on a database of its own and a fake cloud. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FakeCloud, startFakeCloud } from "../../scripts/fake-openstack/fake-cloud.ts";
import { instant } from "../../scripts/fake-openstack/furnishing.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { booked, syncRuns } from "./runs.ts";

const AT = "2026-11-02T00:00:00Z";

let database: TestDatabase;
let cloud: FakeCloud;
let directory: string;
beforeAll(async () => {
  database = await testDatabase();
  directory = mkdtempSync(join(tmpdir(), "tally-sync-"));
  cloud = startFakeCloud({
    seed: 3,
    resources: 20,
    changesPerDay: 0,
    start: instant("2026-11-01T00:00:00Z"),
    cloud: "eu1",
  });
  write("clouds.yaml", cloud.cloudsYaml("eu1", "collector"));
  write("tally.yaml", entries("eu1"));
});
afterAll(async () => {
  await cloud.stop();
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
});

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
}

function entries(...names: string[]): string {
  const entry = (name: string) =>
    `  - cloud: ${name}\n    platform: openstack\n    adapter: openstack\n    interval_s: 0\n    adapter_config: { os_cloud: eu1 }\n`;
  return `clouds:\n${names.map(entry).join("")}`;
}

async function tally(words: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, "src/main.ts", ...words], {
    env: {
      TALLY_REPORTING_DB_URL: database.url,
      TALLY_REPORTING_CLOUDS_CONFIG: join(directory, "tally.yaml"),
      TALLY_REPORTING_SYNC_ALLOW_AT: "true",
      OS_CLIENT_CONFIG_FILE: join(directory, "clouds.yaml"),
      HOME: directory,
      ...env,
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

describe("tally sync", () => {
  test("shows what would be booked, and books nothing", async () => {
    const { code, stdout, stderr } = await tally(["sync", "eu1", "--dry-run", "--at", AT]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^ACTION +TYPE +RESOURCE +PROJECT +STATE +DATED +BECAUSE$/);
    expect(lines[2]).toMatch(/^create +\w+ .*it is not in the record$/);
    expect(lines.at(-2)).toMatch(
      /^eu1: would book \d+ created, 0 updated, 0 deleted; put off 0 in transition, 0 recent$/,
    );
    expect(lines.at(-1)).toBe("nothing was booked: a dry run");
    expect(await booked(database.db)).toEqual([]);
    expect(await syncRuns(database.db)).toEqual([]);
  });

  test("books, and says so", async () => {
    const { code, stdout, stderr } = await tally(["sync", "eu1", "--at", AT]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const events = await booked(database.db);
    expect(events.length).toBeGreaterThan(10);
    const [run] = await syncRuns(database.db);
    expect(stdout).toContain(`eu1: booked ${events.length} created, 0 updated, 0 deleted`);
    expect(stdout).toEndWith(`run ${run?.id} completed\n`);
    const audit: { actor: string }[] =
      await database.db`SELECT actor FROM audit_log WHERE action = 'sync.run'`;
    expect([...audit]).toEqual([{ actor: "admin-cli" }]);
  });

  test("ends with 1 where the run failed, and says why", async () => {
    write("clouds.yaml", cloud.cloudsYaml("eu1", "reader"));
    const { code, stdout, stderr } = await tally(["sync", "eu1", "--at", AT]);
    write("clouds.yaml", cloud.cloudsYaml("eu1", "collector"));
    expect(code).toBe(1);
    expect(stdout).toMatch(/run [0-9a-f-]{36} failed\n$/);
    expect(stderr).toStartWith("tally: ");
    expect(stderr).toContain("eu1");
  });

  test.each([
    ["a cloud that isn't configured", ["eu9"], {}, "tally: no cloud eu9 is configured; there is eu1\n"],
    [
      "no clouds file",
      ["eu1"],
      { TALLY_REPORTING_CLOUDS_CONFIG: "/nowhere/clouds.yaml" },
      "tally: /nowhere/clouds.yaml: can't be read: ENOENT\n",
    ],
    [
      "an instant that isn't allowed",
      ["eu1", "--at", AT],
      { TALLY_REPORTING_SYNC_ALLOW_AT: "false" },
      "tally: --at is taken only with TALLY_REPORTING_SYNC_ALLOW_AT=true\n",
    ],
  ])("refuses %s in one line", async (_, words, env, stderr) => {
    expect(await tally(["sync", ...words], env)).toEqual({ code: 1, stdout: "", stderr });
  });
});

describe("tally serve", () => {
  test("doesn't start with a clouds file that is at fault, and names the entry", async () => {
    write("twice.yaml", entries("eu1", "eu1"));
    const env = {
      TALLY_REPORTING_CLOUDS_CONFIG: join(directory, "twice.yaml"),
      TALLY_REPORTING_HTTP_PORT: "0",
    };
    const { code, stderr } = await tally(["serve"], env);
    expect(code).toBe(1);
    expect(stderr).toBe(`tally: ${join(directory, "twice.yaml")}: eu1: the cloud is there twice\n`);
  });

  test("runs its clouds by the clock, and stops cleanly", async () => {
    write("often.yaml", entries("eu1").replace("interval_s: 0", "interval_s: 1"));
    const child = Bun.spawn([process.execPath, "src/main.ts", "serve"], {
      env: {
        TALLY_REPORTING_DB_URL: database.url,
        TALLY_REPORTING_CLOUDS_CONFIG: join(directory, "often.yaml"),
        TALLY_REPORTING_HTTP_PORT: "0",
        TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
        OS_CLIENT_CONFIG_FILE: join(directory, "clouds.yaml"),
        HOME: directory,
      },
      stdout: "pipe",
      stderr: "pipe",
    });
    const before = (await syncRuns(database.db)).length;
    while ((await syncRuns(database.db)).length < before + 2) await Bun.sleep(20);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    const lines = (await child.stdout.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ message: "stopped" });
    const statuses = (await syncRuns(database.db)).slice(before).map(({ status }) => status);
    expect(statuses[0]).toBe("completed");
    expect(statuses).not.toContain("running");
  }, 60_000);
});
