/** tally verify: what it prints, and what it exits with. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { itemText } from "../ingest/items.ts";
import { ingestItems } from "../ingest/record.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

// Every command is a process of its own, and the machine may be busy.
setDefaultTimeout(60_000);

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  const ids = Array.from({ length: 102 }, (_, n) => `r-${String(n).padStart(3, "0")}`);
  await ingestItems(
    database.db,
    ids.map((id) => itemText({ resource_id: `"${id}"`, event_id: `"${id}"` })),
  );
});
afterAll(() => database.drop());

async function verify(script: string, ...args: string[]) {
  const child = Bun.spawn([process.execPath, script, ...args], {
    env: { TALLY_REPORTING_DB_URL: database.url },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

const LOOKED_AT = "checked: 102 resources, 102 events, 1 project, 1 audit entry\n";

test("a sound database: 0, by the command and by the script", async () => {
  const sound = { code: 0, stdout: LOOKED_AT, stderr: "" };
  expect(await verify("src/main.ts", "verify")).toEqual(sound);
  expect(await verify("scripts/verify.ts")).toEqual(sound);
});

test("faults: 1, a line for each of the first hundred, and how many there are", async () => {
  await database.db`UPDATE current_resources SET state = 'damaged'`;
  const { code, stdout, stderr } = await verify("src/main.ts", "verify");
  expect([code, stderr]).toEqual([1, "tally: 102 faults found\n"]);
  const lines = stdout.split("\n");
  expect(lines[0]).toBe(
    'resource os-1/instance/r-000: its row\'s state is "damaged", and by its history "active"',
  );
  expect(lines.slice(100)).toEqual(["… and 2 more", LOOKED_AT.trim(), ""]);
  // Nothing was mended.
  const [row] = await database.db`
    SELECT count(*)::int AS n FROM current_resources WHERE state = 'damaged'`;
  expect(row?.n).toBe(102);
});
