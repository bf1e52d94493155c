import { afterAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { place, run, tally } from "./tally.ts";

const at = place();
afterAll(at.remove);

describe("a refusal is one line on stderr, exit code 1, and nothing on stdout", () => {
  const cases: [string[], string][] = [
    [[], "a command is missing: see tally --help"],
    [["srve"], "unknown command 'srve' (Did you mean serve?)"],
    [["serve", "--port", "1"], "unknown option '--port'"],
    [["serve", "now"], "too many arguments for 'serve'. Expected 0 arguments but got 1."],
    [["migrate"], "a command is missing: see tally migrate --help"],
    [["migrate", "doen"], "unknown command 'doen' (Did you mean down?)"],
    [["migrate", "down"], "required option '--to <version>' not specified"],
    [["migrate", "down", "--to", "0"], "migrate down loses what the dropped tables hold: add --yes"],
    [
      ["migrate", "down", "--to", "-1", "--yes"],
      "option '--to <version>' argument '-1' is invalid. It is a migration's number, or 0 for none.",
    ],
    [["credential"], "a command is missing: see tally credential --help"],
    [["help", "srve"], "unknown command 'srve': see tally --help"],
    [["migrate", "help", "doen"], "unknown command 'doen': see tally migrate --help"],
  ];
  for (const [args, line] of cases) {
    test(["tally", ...args].join(" "), async () => {
      expect(await tally(at, ...args)).toEqual({ code: 1, stdout: "", stderr: `tally: ${line}\n` });
    });
  }

  test("wrong settings, all of them at once", async () => {
    const env = { TALLY_LOG_LEVL: "INFO", TALLY_REPORTING_HTTP_PORT: "x", TALLY_METRICS_ENABLED: "yes" };
    expect(await run(at, { args: ["serve"], env })).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "tally: TALLY_LOG_LEVL is no setting of Tally: did you mean TALLY_LOG_LEVEL?; " +
        "TALLY_REPORTING_HTTP_PORT must be an integer from 0 to 65535; " +
        "TALLY_METRICS_ENABLED must be true or false\n",
    });
  });

  test("none of them has touched the disk", () => {
    expect(existsSync(at.dataDir)).toBe(false);
  });
});

test("the licences of what it holds of others", async () => {
  const { code, stdout, stderr } = await tally(at, "version", "--notices");
  expect([code, stderr]).toEqual([0, ""]);
  for (const part of [
    "PostgreSQL 18",
    "OpenSSL License",
    "GNU LIBRARY GENERAL PUBLIC LICENSE",
    "elysia 1.",
    "ajv 8.",
  ]) {
    expect(stdout).toContain(part);
  }
});

describe("--help goes to stdout and is no refusal", () => {
  for (const args of [
    ["--help"],
    ["serve", "--help"],
    ["migrate", "--help"],
    ["migrate", "down", "--help"],
    ["credential", "create", "--help"],
    ["token", "create", "--help"],
    ["rebuild", "--help"],
    ["config", "--help"],
    ["version", "--help"],
  ]) {
    test(["tally", ...args].join(" "), async () => {
      const said = await tally(at, ...args);
      expect([said.code, said.stderr]).toEqual([0, ""]);
      expect(said.stdout).toStartWith(["Usage: tally", ...args.slice(0, -1)].join(" "));
    });
  }
});

test("tally serve --help says where everything is set", async () => {
  const { stdout } = await tally(at, "serve", "--help");
  expect(stdout).toContain("tally config lists them");
  expect(stdout).toContain("TALLY_DATA_DIR");
});

test("tally version", async () => {
  expect(await tally(at, "version")).toEqual({ code: 0, stdout: "0.1.0\n", stderr: "" });
});

test("tally config masks secrets and names sources", async () => {
  const env = {
    TALLY_REPORTING_DB_URL: "postgres://ada:s3cret@db.example/bills",
    TALLY_REPORTING_INTERNAL_TOKEN: "s3cret",
  };
  const said = await run(at, { args: ["config"], env });
  expect(said.code).toBe(0);
  expect(said.stdout).toMatch(
    /^TALLY_REPORTING_DB_URL +postgres:\/\/ada:\*\*\*@db\.example:5432\/bills +environment$/m,
  );
  expect(said.stdout).toMatch(/^TALLY_REPORTING_INTERNAL_TOKEN +\*\*\* +environment$/m);
  expect(said.stdout).toMatch(/^TALLY_REPORTING_HTTP_PORT +8080 +default$/m);
  expect(said.stdout + said.stderr).not.toContain("s3cret");
});
