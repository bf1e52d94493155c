import { afterAll, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AS_ROOT, place } from "./tally.ts";

const SCRIPTS = join(import.meta.dir, "../../scripts");
const at = place();
afterAll(at.remove);

function install(args: string[], become: string[] = []) {
  const script = ["sh", join(SCRIPTS, "install.sh"), ...args];
  const { exitCode, stdout, stderr } = Bun.spawnSync([...become, ...script], {
    env: { PATH: process.env.PATH ?? "" },
  });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

test("--dry-run prints every step and does none", () => {
  const before = existsSync("/usr/local/bin/tally");
  const said = install(["--dry-run", "--binary", at.executable, "--start"]);
  expect([said.code, said.stderr]).toEqual([0, ""]);
  for (const step of ["/usr/local/bin/tally", "/etc/systemd/system/tally.service", "user"]) {
    expect(said.stdout).toContain(step);
  }
  expect(said.stdout).toContain(
    "would run: systemctl enable tally.service\nwould run: systemctl restart tally.service\n",
  );
  expect(existsSync("/usr/local/bin/tally")).toBe(before);
});

test.if(AS_ROOT)("without root it refuses in one line", () => {
  // From standard input: the repository may lie where this user can't read.
  const script = readFileSync(join(SCRIPTS, "install.sh"));
  const become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
  const run = Bun.spawnSync([...become, "sh", "-s", "--", "--bogus"], { stdin: script, cwd: "/" });
  expect([run.exitCode, run.stderr.toString()]).toEqual([
    1,
    "install.sh: unknown option --bogus (see --help)\n",
  ]);
  writeFileSync(join(at.cwd, "install.sh"), script);
  writeFileSync(join(at.cwd, "tally.service"), readFileSync(join(SCRIPTS, "tally.service")));
  const refused = Bun.spawnSync([...become, "sh", join(at.cwd, "install.sh"), "--binary", at.executable], {
    cwd: "/",
  });
  expect([refused.exitCode, refused.stderr.toString()]).toEqual([
    1,
    "install.sh: must run as root (or with --dry-run)\n",
  ]);
});

test("a missing binary is refused in one line", () => {
  const said = install(["--dry-run", "--binary", "/nowhere/tally"]);
  expect([said.code, said.stdout]).toEqual([1, ""]);
  expect(said.stderr).toBe(
    "install.sh: there is no /nowhere/tally: build it (npm run build), or name one with --binary\n",
  );
});

test.if(Bun.which("systemd-analyze") !== null)("systemd accepts the unit", () => {
  // It looks for the program where the unit says that it is.
  const unit = readFileSync(join(SCRIPTS, "tally.service"), "utf8").replace(
    "/usr/local/bin/tally",
    at.executable,
  );
  writeFileSync(join(at.cwd, "tally.service"), unit);
  const said = Bun.spawnSync(["systemd-analyze", "verify", join(at.cwd, "tally.service")]);
  expect([said.exitCode, said.stderr.toString()]).toEqual([0, ""]);
});
