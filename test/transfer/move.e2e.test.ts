/** The commands: a backup to a file, a move from the embedded database to another one by a pipe, a kill in the middle. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, openSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPool } from "../../src/database/pool.ts";
import { place, run, tally } from "../executable/tally.ts";
import { emptyDatabase, type TestDatabase } from "../support/database.ts";
import { digests, fill } from "./rich-database.ts";

const MINUTE = 60_000;
/** So many that an import takes a while. */
const EVENTS = 30_000;

let source: TestDatabase;
const at = place();
const env = () => ({ TALLY_REPORTING_DB_URL: source.url });
beforeAll(async () => {
  source = await emptyDatabase();
  await run(at, { args: ["migrate", "up"], env: env() });
  await fill(source);
  await source.db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second', now(), 'bulk-' || n, 'a.create', 'p', 'c',
           'volume', 'v-' || n % 1000, 'p', 'collector',
           jsonb_build_object('state', 's' || n % 3, 'size', jsonb_build_object('n', n % 7), 'provider', md5(n::text))
      FROM generate_series(1, ${EVENTS}) n`;
}, 2 * MINUTE);
afterAll(async () => {
  at.remove();
  await source.drop();
});

/** All that must be equal: the log gets an entry of the import, and the bulk above has no rows to compare with. */
async function carried(db: Parameters<typeof digests>[0]): Promise<Record<string, string>> {
  const { audit_log: _, current_resources: __, ...rest } = await digests(db);
  return rest;
}

test(
  "a backup is a file that only its owner reads, whole or not there, and can be checked",
  async () => {
    const file = join(at.cwd, "backup.zst");
    const exported = await run(at, { args: ["export", file], env: env() });
    expect([exported.code, exported.stdout]).toEqual([0, ""]);
    expect(exported.stderr).toMatch(/^\d+ rows exported, 30300 of them events, in [\d.]+ s\n$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await run(at, { args: ["export", file], env: env() })).stderr).toBe(
      `tally: ${file} is there already\n`,
    );
    const whole = await run(at, { args: ["import", "--check", file] });
    expect(whole.stdout).toMatch(/^whole: \d+ rows, 30300 of them events, as of 2\d{3}-/);
    // No database was made for it.
    expect(existsSync(at.dataDir)).toBe(false);
    writeFileSync(join(at.cwd, "cut.zst"), readFileSync(file));
    truncateSync(join(at.cwd, "cut.zst"), statSync(file).size - 100);
    const cut = await run(at, { args: ["import", "--check", join(at.cwd, "cut.zst")] });
    expect([cut.code, cut.stderr]).toEqual([1, expect.stringMatching(/^tally: the stream .* not whole\n$/)]);
  },
  MINUTE,
);

test(
  "an import that is killed goes on where it stopped",
  async () => {
    const target = await emptyDatabase();
    const file = join(at.cwd, "backup.zst");
    const to = { TALLY_REPORTING_DB_URL: target.url };
    const child = Bun.spawn([at.executable, "import", file], { env: to, stdout: "ignore", stderr: "ignore" });
    for (;;) {
      const [row] = await target.db`SELECT to_regclass('import_progress') IS NOT NULL AS begun`;
      if (
        row?.begun === true &&
        Number((await target.db`SELECT blocks FROM import_progress`)[0]?.blocks) >= 11
      )
        break;
      if (child.exitCode !== null) throw new Error("the import was over before it could be killed");
      await Bun.sleep(5);
    }
    child.kill("SIGKILL");
    await child.exited;
    const again = await run(at, { args: ["import", file], env: to });
    expect(again.stderr).toBe("");
    expect(again.stdout).toMatch(
      /^went on behind block 1\d\n\d+ rows, 30300 of them events imported and verified/,
    );
    expect(await carried(target.db)).toEqual(await carried(source.db));
    await target.drop();
  },
  2 * MINUTE,
);

test(
  "from one database to the embedded one and on to a third, each by one pipe",
  async () => {
    const third = await emptyDatabase();
    const pipe = async (from: Record<string, string>, to: Record<string, string>) => {
      const exporting = Bun.spawn([at.executable, "export"], { env: from, stdout: "pipe", stderr: "ignore" });
      const importing = Bun.spawn([at.executable, "import"], {
        env: to,
        stdin: exporting.stdout,
        stdout: "ignore",
        stderr: "pipe",
      });
      expect([await importing.exited, await exporting.exited]).toEqual([0, 0]);
    };
    const embedded = { TALLY_DATA_DIR: at.dataDir };
    await pipe(env(), embedded);
    await pipe(embedded, { TALLY_REPORTING_DB_URL: third.url });
    const db = openPool({ url: third.url }, { maxConnections: 1 });
    expect(await carried(db)).toEqual(await carried(source.db));
    await db.close({ timeout: 0 });
    await third.drop();
  },
  2 * MINUTE,
);

test(
  "memory stays flat, however much goes through",
  async () => {
    const wide = await emptyDatabase();
    const target = await emptyDatabase();
    const url = { TALLY_REPORTING_DB_URL: wide.url };
    await run(at, { args: ["migrate", "up"], env: url });
    // 250 MB, which would show if they were held.
    await wide.db`
      INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                          project_id, source, payload)
      SELECT now() + n * interval '1 second', now(), 'wide-' || n, 'a.create', 'p', 'c', 'volume', 'v', 'p',
             'collector', jsonb_build_object('state', 's', 'provider', repeat(md5(n::text), 32768))
        FROM generate_series(1, 250) n`;
    const file = join(at.cwd, "wide.zst");
    for (const [args, env] of [
      [["export", file], url],
      [["import", file], { TALLY_REPORTING_DB_URL: target.url }],
    ] as const) {
      const log = openSync(join(at.cwd, "memory.log"), "w");
      const child = Bun.spawn([at.executable, ...args], { env, stdout: log, stderr: log });
      let most = 0;
      while (child.exitCode === null) {
        const status = await Bun.file(`/proc/${child.pid}/status`)
          .text()
          .catch(() => "");
        most = Math.max(most, Number(/VmHWM:\s*(\d+)/.exec(status)?.[1] ?? 0) / 1000);
        await Bun.sleep(20);
      }
      expect([args[0], child.exitCode, most < 300 ? "flat" : `${most} MB`]).toEqual([args[0], 0, "flat"]);
    }
    await wide.drop();
    await target.drop();
  },
  2 * MINUTE,
);

test("what is no stream, and a terminal's absence, are told in one line", async () => {
  writeFileSync(join(at.cwd, "text"), "hello\n");
  expect((await tally(at, "import", join(at.cwd, "text"))).stderr).toBe(
    "tally: this is no export of Tally, or damaged at its very beginning\n",
  );
  expect((await tally(at, "import", join(at.cwd, "nothing"))).stderr).toMatch(/^tally: .*nothing.*\n$/);
});
