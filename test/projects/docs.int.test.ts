/** docs/projects.md: its commands are run in one shell, one after the other, and answer what it says. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { page } from "../docs/markdown.ts";
import { type TestServer, testServer } from "../support/server.ts";

const text = await page("docs/projects.md");
const blocks = [...text.matchAll(/```sh\n([\s\S]*?)\n```(?:\n[^`]*?```json\n([\s\S]*?)\n```)?/g)].map(
  ([, command = "", answer], n) => ({
    command: command.replaceAll("http://127.0.0.1:8080", "$TALLY"),
    answer: answer ?? null,
    name: `${n + 1}: ${command.trim().split("\n").at(-1)}`,
  }),
);
const MARK = "@@ the end of a block @@";

let server: TestServer;
let answers: string[];
let said: string;
beforeAll(async () => {
  server = await testServer();
  const shell = Bun.spawn(["bash", "-euo", "pipefail"], {
    env: {
      PATH: process.env.PATH ?? "",
      TALLY: server.url,
      API_TOKEN: server.credentials.admin,
      INGEST_TOKEN: await server.credentials.ingest("openstack", "eu1"),
    },
    stdin: new Blob([blocks.map(({ command }) => `${command}\necho; echo "${MARK}"\n`).join("")]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors] = await Promise.all([shell.stdout.text(), shell.stderr.text()]);
  answers = out.split(MARK);
  said = errors;
  expect([await shell.exited, said]).toEqual([0, ""]);
});
afterAll(() => server.stop());

const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/** An answer with its ids numbered as they come, and without the instants at which it was written. */
function comparable(json: string): unknown {
  const ids: string[] = [];
  const numbered = JSON.stringify(JSON.parse(json)).replace(UUID, (id) => {
    if (!ids.includes(id)) ids.push(id);
    return `id ${ids.indexOf(id)}`;
  });
  return JSON.parse(numbered.replace(/"created_at":"[^"]*"/g, '"created_at":"then"'));
}

test("there are commands, and answers to most of them", () => {
  expect(blocks.length).toBe(9);
  expect(blocks.filter(({ answer }) => answer !== null)).toHaveLength(7);
});

describe("every command answers what the page says", () => {
  test.each(blocks.map((block, n) => ({ ...block, n })))("$name", ({ answer, n }) => {
    const got = (answers[n] ?? "").trim();
    if (answer === null) expect(got).toBe("");
    else expect(comparable(got)).toEqual(comparable(answer));
  });
});

test("metadata keeps its digits", () => {
  expect(answers[1]).toContain('"metadata":{"share": 0.10, "cost_centre": 4711}');
});
