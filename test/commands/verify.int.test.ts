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
  return await run([process.execPath, script, ...args]);
}

async function run(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = Bun.spawn([...command], {
    env: { TALLY_REPORTING_DB_URL: database.url, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

const LOOKED_AT = "checked: 102 resources, 102 events, 1 project, 1 audit entry\n";

test("a sound database: 0, by the command and by the script", async () => {
  const sound = { code: 0, stdout: `${LOOKED_AT}no fault found\n`, stderr: "" };
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

/** The screen that a terminal shows, line by line, as far as cursor and lines are moved and cleared. */
function screenOf(output: string): string[] {
  const lines = [""];
  let [row, column] = [0, 0];
  let saved = { row, column };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how terminals are told
  for (const [part] of output.matchAll(/\x1b\[[?0-9;]*[A-Za-z]|\x1b[78]|./gs)) {
    const line = lines[row] ?? "";
    if (part === "\r" || part === "\x1b[1G") column = 0;
    else if (part === "\n") {
      row++;
      lines[row] ??= "";
    } else if (part === "\x1b[0K") lines[row] = line.slice(0, column);
    else if (part === "\x1b[2K") lines[row] = "";
    else if (part === "\x1b7") saved = { row, column };
    else if (part === "\x1b8") ({ row, column } = saved);
    else if (!part.startsWith("\x1b")) {
      lines[row] = line.padEnd(column).slice(0, column) + part + line.slice(column + 1);
      column++;
    }
  }
  return lines;
}

// script(1) gives a command a terminal.
test.if(Bun.which("script") !== null)("on a terminal bar and faults leave each other whole", async () => {
  const { stdout } = await run(["script", "-qec", `"${process.execPath}" src/main.ts verify`, "/dev/null"], {
    TERM: "xterm",
    PATH: process.env.PATH ?? "",
  });
  const lines = screenOf(stdout);
  const at = lines.findIndex((line) => line.startsWith("resource "));
  expect(lines.slice(at, at + 100)).toEqual(
    Array.from(
      { length: 100 },
      (_, n) =>
        `resource os-1/instance/r-${String(n).padStart(3, "0")}: its row's state is "damaged", and by its history "active"`,
    ),
  );
  expect(lines.slice(at + 100)).toEqual([
    expect.stringMatching(/^resources .* 100% \| 102 of about 102 \| /),
    "projects: 1",
    expect.stringMatching(/^audit entries .* 100% \| 1 of about 1 \| /),
    "… and 2 more",
    LOOKED_AT.trim(),
    "tally: 102 faults found",
    "",
  ]);
});

test("a run that is broken off has told what it had found", async () => {
  await database.db`ALTER TABLE audit_log RENAME TO kept`;
  await database.db`
    CREATE VIEW audit_log AS
    SELECT id, at, actor, action, object_type, object_id, to_jsonb(1 / (id - id)) AS details FROM kept`;
  const { code, stdout, stderr } = await verify("src/main.ts", "verify");
  expect([code, stderr]).toEqual([1, "tally: division by zero\n"]);
  expect(stdout.split("\n")).toHaveLength(101);
  expect(stdout).toStartWith("resource os-1/instance/r-000: ");
  await database.db`DROP VIEW audit_log`;
  await database.db`ALTER TABLE kept RENAME TO audit_log`;
});
