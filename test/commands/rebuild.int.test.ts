/** tally rebuild: what it replays, and what it tells of it where. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { itemText } from "../ingest/items.ts";
import { ingestItems, projectionRows } from "../ingest/record.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

// Every command is a process of its own, and the machine may be busy.
setDefaultTimeout(60_000);

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  for (const cloud of ["os-1", "os-2"]) {
    const item = (type: string, id: string) =>
      itemText({
        cloud: `"${cloud}"`,
        resource_type: `"${type}"`,
        resource_id: `"${id}"`,
        payload: '{"state":"on","size":{"n":1}}',
      });
    await ingestItems(database.db, [item("lamp", "a"), item("lamp", "b"), item("fan", "a")], cloud);
  }
});
afterAll(() => database.drop());

async function run(command: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn(command, {
    env: { TALLY_REPORTING_DB_URL: database.url, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}
const tally = (...args: string[]) => run([process.execPath, "src/main.ts", ...args]);

test("replays the one cloud's resources of the one type that are asked for, and prints their number alone", async () => {
  const sound = await projectionRows(database.db);
  await database.db`UPDATE current_resources SET state = 'damaged'`;
  expect(await tally("rebuild", "--cloud", "os-1", "--resource-type", "lamp")).toEqual({
    code: 0,
    stdout: "2 resources replayed\n",
    stderr: "",
  });
  const left: { key: string }[] = await database.db`
    SELECT cloud || ' ' || resource_type || ' ' || resource_id AS key FROM current_resources
    WHERE state = 'damaged' ORDER BY 1`;
  expect(left.map(({ key }) => key)).toEqual(["os-1 fan a", "os-2 fan a", "os-2 lamp a", "os-2 lamp b"]);
  expect((await tally("rebuild")).stdout).toBe("6 resources replayed\n");
  expect(await projectionRows(database.db)).toEqual(sound);
  const audited: { details: string }[] = await database.db`
    SELECT details::text AS details FROM audit_log WHERE actor = 'admin-cli' ORDER BY id`;
  expect(audited).toHaveLength(2);
  expect(JSON.parse(audited[0]?.details ?? "")).toMatchObject({ cloud: "os-1", resource_type: "lamp" });
});

// script(1) gives a command a terminal.
test.if(Bun.which("script") !== null)("on a terminal a bar tells how far it is", async () => {
  const { stdout } = await run(["script", "-qec", `"${process.execPath}" src/main.ts rebuild`, "/dev/null"], {
    TERM: "xterm",
    PATH: process.env.PATH ?? "",
  });
  expect(stdout).toContain("100% | 6 of about 6 resources");
  expect(stdout).toContain("6 resources replayed\r\n");
});
