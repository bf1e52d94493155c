/** `bun run drills` itself: it says what was run, and what was not. */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../database/own-server.ts";

const directory = temporaryDirectory();
afterAll(directory.remove);

/** With neither mount nor anything else to be found: the drill that needs a disk of its own can't be run. */
async function drills(...args: string[]): Promise<{ code: number; lines: string[]; wrong: string }> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../scripts/drills.ts"), ...args], {
    // Where nothing is built.
    cwd: directory.path,
    env: { PATH: directory.path },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, wrong] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, lines: said.trimEnd().split("\n"), wrong };
}

test("a drill that could not be run did not hold, and fails the run only where that is asked for", async () => {
  const { code, lines } = await drills("disk-full", "--seed", "7");
  expect(code).toBe(0);
  expect(lines[0]).toEndWith("; the sources; seed 7");
  expect(lines[2]).toStartWith("disk-full: not run: ");
  expect(lines.at(-1)).toBe("0 of 1 held, 1 not run");
  expect(await drills("disk-full", "--strict")).toMatchObject({ code: 1 });
});

test("the first line names the executable as it was given", async () => {
  const { code, lines } = await drills("disk-full", "--executable", process.execPath);
  expect(code).toBe(0);
  expect(lines[0]).toContain(`; ${process.execPath}; seed `);
});

test("an executable that is not there is not replaced by anything", async () => {
  const { code, wrong } = await drills("disk-full", "--executable", "dist/tally");
  expect(code).toBe(1);
  expect(wrong).toBe("error: there is no dist/tally\n");
});

test("the last line tells those that failed from those that were not run", async () => {
  const { code, lines } = await drills(
    ...["kill-tally", "disk-full", "--executable", "/bin/false", "--dir", directory.path],
  );
  expect(code).toBe(1);
  expect(lines[2]).toMatch(/^kill-tally: FAILED \(seed \d+\): Tally ended by itself/);
  expect(lines.at(-1)).toBe("0 of 2 held, 1 failed, 1 not run");
});
