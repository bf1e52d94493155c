/** A client that is generated from the document works: it compiles, and it does a day's work. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectToken } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

const ROOT = join(import.meta.dir, "../..");
const GENERATOR = Bun.resolveSync("openapi-typescript/package.json", join(import.meta.dir, "generator"));

let server: TestServer;
let directory: string;
beforeAll(async () => {
  server = await testServer();
  directory = mkdtempSync(join(tmpdir(), "tally-client-"));
  symlinkSync(join(ROOT, "node_modules"), join(directory, "node_modules"));
  for (const name of ["round-trip.ts", "tsconfig.json"]) {
    copyFileSync(join(import.meta.dir, "client", name), join(directory, name));
  }
  await Bun.write(join(directory, "openapi.json"), await (await server.request("/openapi.json")).text());
});
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await server.stop();
});

/** Runs a script; its exit code and all that it said. */
async function run(script: string, ...args: string[]): Promise<[code: number, said: string]> {
  const child = Bun.spawn([process.execPath, script, ...args], {
    cwd: directory,
    env: { ...process.env, NO_COLOR: "1" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return [await child.exited, said.join("")];
}

test("types are generated, the program compiles against them, and runs against the server", async () => {
  const generated = await run(join(GENERATOR, "../bin/cli.js"), "openapi.json", "--output", "api.ts");
  expect(generated).toEqual([0, expect.stringContaining("openapi.json → api.ts")]);
  expect(await run(join(ROOT, "node_modules/typescript/bin/tsc"), "--project", ".")).toEqual([0, ""]);
  const outcome = await run(
    "round-trip.ts",
    server.url,
    await server.credentials.ingest("openstack", "eu1"),
    server.credentials.admin,
    await projectToken(server, ["eu1", "p1"]),
  );
  expect(outcome).toEqual([0, "round trip done\n"]);
}, 60_000);
