/** A fault of Tally's own code is found: the checker doesn't lean on what it checks. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Fault } from "../../src/verify/fault.ts";
import { itemText } from "../ingest/items.ts";
import { ingestItems } from "../ingest/record.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

// Each has a process of its own, and the machine may be busy.
setDefaultTimeout(60_000);

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  const lamp = (id: string, event: string, at: string, project = "shop") =>
    itemText({
      resource_type: '"lamp"',
      resource_id: `"${id}"`,
      event_type: `"lamp.${event}"`,
      timestamp: `"2026-03-01T${at}:00Z"`,
      project_id: `"${project}"`,
      payload: '{"state":"on","size":{"n":1}}',
    });
  await ingestItems(database.db, [
    // An hour; then it is another project's.
    lamp("a", "create", "08:00"),
    lamp("a", "hand_over", "09:00", "bar"),
    lamp("a", "delete", "12:00", "bar"),
    // Two hours; what comes after the delete counts for nothing.
    lamp("b", "create", "08:00"),
    lamp("b", "delete", "10:00"),
    lamp("b", "power_off", "11:00"),
    lamp("b", "delete", "14:00"),
  ]);
});
afterAll(() => database.drop());

/** Checks the projects' minutes in a process where a module says something else in one place. */
async function faultsWith(module: string, right: string, wrong: string): Promise<Fault[]> {
  const script = `
    import { plugin } from "bun";
    const [url, src, module, right, wrong] = process.argv.slice(1);
    plugin({
      name: "mutant",
      setup(build) {
        build.onLoad({ filter: new RegExp(module + "$") }, async ({ path }) => {
          const text = await Bun.file(path).text();
          if (text.split(right).length !== 2) throw new Error(module + " doesn't say it once: " + right);
          return { contents: text.replace(right, wrong), loader: "ts" };
        });
      },
    });
    const { openPool } = await import(src + "/database/pool.ts");
    const { checkMinutes } = await import(src + "/verify/minutes.ts");
    const faults = [];
    await checkMinutes(openPool({ url }, { maxConnections: 1 }), (fault) => faults.push(fault), () => {});
    console.log(JSON.stringify(faults));
    process.exit(0);`;
  const src = `${import.meta.dir}/../../src`;
  const child = Bun.spawn([process.execPath, "-e", script, database.url, src, module, right, wrong], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

function shop(minutes: number): Fault {
  return {
    where: "project os-1/shop",
    what: `its summary says ${minutes} minutes of lamp, and its resources' events come to 180`,
  };
}

test("as it is, nothing is found", async () => {
  expect(await faultsWith("summary-queries.ts", "ORDER BY rt, r`", "ORDER BY rt, r `")).toEqual([]);
});

test("a resource that a summary doesn't find", async () => {
  const faults = await faultsWith("summary-queries.ts", "ORDER BY rt, r`", "ORDER BY rt, r LIMIT 1`");
  expect(faults).toEqual([shop(60)]);
});

test("a resource whose history a summary doesn't read", async () => {
  const faults = await faultsWith("histories.ts", ".sort(compareKeys);", ".sort(compareKeys).slice(1);");
  expect(faults).toContainEqual(shop(120));
});

test("a straggler that bills a dead resource", async () => {
  const faults = await faultsWith(
    "fold.ts",
    '} else if (dead && category === "update") {',
    "} else if (false) {",
  );
  // From 11 to 14 o'clock.
  expect(faults).toContainEqual(shop(360));
});

test("a resource that stays with who handed it on", async () => {
  const faults = await faultsWith("fold.ts", "a.projectId === b.projectId &&", "");
  // From 9 to 12 o'clock.
  expect(faults).toContainEqual(shop(360));
});
