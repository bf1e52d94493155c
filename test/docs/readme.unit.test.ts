/** README.md: its settings are the program's, its links lead somewhere, its commands are run for a reason or not. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { blocksOf, holds, onPort } from "../../scripts/readme.ts";
import { settingsTable } from "../../scripts/settings-table.ts";
import { page } from "./markdown.ts";

const readme = await page("README.md");

test("the table of settings is the program's", () => {
  const table = readme.slice(readme.indexOf("| variable "));
  expect(table.slice(0, table.indexOf("\n\n"))).toBe(settingsTable());
});

test("every page and file that it links to is there", () => {
  const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map((match) => match[1] ?? "");
  expect(links).toContain("docs/semantics.md");
  const missing = links.filter(
    (link) => !existsSync(fileURLToPath(new URL(`../../${link}`, import.meta.url))),
  );
  expect(missing).toEqual([]);
});

test("every fenced block of a shell is run", () => {
  expect(readme).not.toMatch(/^```(bash|shell|console)$/m);
  expect(blocksOf(readme).length).toBeGreaterThan(10);
});

test("what CI itself runs is what the README says", async () => {
  const [, tests] = blocksOf(readme);
  expect(tests?.command).toBe("npm ci && npm test");
  const ci = await page(".ci/run");
  expect(ci).toContain("npm ci ");
  expect(ci).toContain("npm test\n");
});

test("a check of the README has a port of its own", () => {
  expect(onPort("curl http://127.0.0.1:8080/a http://127.0.0.1:8080/b -d 8080", 9)).toBe(
    "curl http://127.0.0.1:9/a http://127.0.0.1:9/b -d 8080",
  );
});

describe("blocksOf", () => {
  const block = (above: string) => blocksOf(`${above}\n\`\`\`sh\necho a\necho b\n\`\`\`\n`);

  test("a block without a comment is run as it stands", () => {
    expect(block("Text.")).toEqual([
      { line: 2, command: "echo a\necho b", manner: { command: "echo a\necho b", why: null, lasting: null } },
    ]);
  });

  test("a block that lasts", () => {
    expect(block('<!-- ci: ends after "up" -->')[0]?.manner.lasting).toEqual({ text: "up", stays: false });
    expect(block('<!-- ci: stays after "up" -->')[0]?.manner.lasting).toEqual({ text: "up", stays: true });
  });

  test("another command, with its reason", () => {
    expect(
      block('<!-- ci: instead `x -y`, which stays after "up", because there is no z -->')[0]?.manner,
    ).toEqual({
      command: "x -y",
      why: "there is no z",
      lasting: { text: "up", stays: true },
    });
  });

  test("not run here, with its reason", () => {
    expect(block("<!-- ci: elsewhere, because CI does it -->")[0]?.manner).toEqual({
      command: null,
      why: "CI does it",
      lasting: null,
    });
  });

  test("nothing goes without a reason", () => {
    expect(() => block("<!-- ci: elsewhere -->")).toThrow("line 1");
    expect(() => block("<!-- ci: instead `x` -->")).toThrow("line 1");
  });

  test("other languages are not run, answers belong to the block before", () => {
    expect(blocksOf('```json\n{"a": 1}\n```\n')).toEqual([]);
    expect(blocksOf('```sh\nx\n```\n\n<!-- ci: the answer -->\n```json\n{"a": 1}\n```\n')[0]?.answer).toEqual(
      { a: 1 },
    );
  });
});

describe("holds", () => {
  test.each([
    [{ a: 1, b: 2 }, { a: 1 }, true],
    [{ a: 1 }, { a: 2 }, false],
    [{ a: 1 }, { b: undefined }, false],
    [{ a: [{ x: 1, y: 2 }] }, { a: [{ x: 1 }] }, true],
    [{ a: [1, 2] }, { a: [1] }, false],
    [{ a: {} }, { a: [] }, false],
    [{ a: null }, { a: null }, true],
  ])("%j has %j: %p", (whole, part, answer) => {
    expect(holds(whole, part)).toBe(answer);
  });
});
