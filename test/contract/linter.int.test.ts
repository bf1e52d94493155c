/** The served document, before a strict linter. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestServer, testServer } from "../support/server.ts";

const LINTER = join(import.meta.dir, "../../node_modules/@redocly/cli/bin/cli.js");

let server: TestServer;
let directory: string;
beforeAll(async () => {
  server = await testServer();
  directory = mkdtempSync(join(tmpdir(), "tally-lint-"));
});
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await server.stop();
});

async function lint(document: string): Promise<{ rule: string; severity: string; at: string }[]> {
  const file = join(directory, "openapi.json");
  await Bun.write(file, document);
  // The linter would ask a server of its own whether there is a newer one, and report its use.
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const command = [process.execPath, LINTER, "lint", "--extends=recommended", "--format=json", file];
  const run = Bun.spawn(command, { cwd: directory, env, stdout: "pipe", stderr: "pipe" });
  const [out, errors] = await Promise.all([
    new Response(run.stdout).text(),
    new Response(run.stderr).text(),
    run.exited,
  ]);
  const start = out.indexOf("{");
  if (start === -1) throw new Error(`the linter said nothing: ${out}${errors}`);
  const report: {
    totals: { errors: number; ignored: number };
    problems: { ruleId: string; severity: string; location: { pointer: string }[] }[];
  } = JSON.parse(out.slice(start));
  expect(report.totals.ignored).toBe(0);
  return report.problems.map(({ ruleId, severity, location }) => ({
    rule: ruleId,
    severity,
    at: location[0]?.pointer ?? "",
  }));
}

test("the document has no fault that the recommended rules know", async () => {
  expect(await lint(await (await server.request("/openapi.json")).text())).toEqual([]);
});

test("the linter would have found one", async () => {
  const document = JSON.parse(await (await server.request("/openapi.json")).text());
  document.paths["/healthz"].get.security = [{ nobody: [] }];
  const problems = await lint(JSON.stringify(document));
  expect(problems.map(({ severity, rule }) => [severity, rule])).toContainEqual([
    "error",
    "security-defined",
  ]);
});
