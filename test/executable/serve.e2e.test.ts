import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../src/database/embedded/process.ts";
import { startLoad } from "./load.ts";
import { AS_ROOT, ask, place, type RunOptions, readiness, run, serve, tally } from "./tally.ts";

const MINUTE = 60_000;

function postmaster(dataDir: string): number {
  return Number(readFileSync(join(dataDir, "database/postmaster.pid"), "utf8").split("\n")[0]);
}

describe("from an empty machine", () => {
  const at = place();
  afterAll(at.remove);
  let internalToken = "";
  let ingestToken = "";

  test(
    "the first start makes everything and listens",
    async () => {
      const served = await serve(at);
      expect(served.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      await readiness(served.url, 200);
      internalToken = readFileSync(join(at.dataDir, "internal-token"), "utf8");
      expect(internalToken).toMatch(/^[0-9a-f]{64}\n$/);
      expect(statSync(join(at.dataDir, "internal-token")).mode & 0o777).toBe(0o600);
      const rebuild = await fetch(`${served.url}/internal/projection/rebuild`, {
        method: "POST",
        headers: { Authorization: `Bearer ${internalToken.trim()}` },
      });
      expect(rebuild.status).toBe(200);
      expect(await served.stop()).toBe(0);
      expect(existsSync(join(at.dataDir, "database/postmaster.pid"))).toBe(false);
      expect(served.log.at(-1)?.message).toBe("stopped");
    },
    MINUTE,
  );

  test(
    "the heap is bounded without anybody setting anything, and an operator's own bound stands",
    async () => {
      const bound = (pid: number) =>
        readFileSync(`/proc/${pid}/environ`, "utf8")
          .split("\0")
          .find((variable) => variable.startsWith("BUN_JSC_forceRAMSize="));
      const served = await serve(at);
      expect(bound(served.pid)).toBe("BUN_JSC_forceRAMSize=536870912");
      expect(await served.stop()).toBe(0);
      const told = await serve(at, { BUN_JSC_forceRAMSize: "805306368" });
      expect(bound(told.pid)).toBe("BUN_JSC_forceRAMSize=805306368");
      expect(await told.stop()).toBe(0);
    },
    MINUTE,
  );

  test(
    "a credential is made while nothing serves; stdout is the token alone",
    async () => {
      const made = await tally(at, "credential", "create", "--platform", "openstack", "--cloud", "c1");
      expect(made.code).toBe(0);
      expect(made.stdout).toMatch(/^tly_i_[0-9a-f]{64}\n$/);
      ingestToken = made.stdout.trim();
    },
    MINUTE,
  );

  test(
    "the second start keeps the data, the token, and takes the credential",
    async () => {
      const served = await serve(at);
      expect(readFileSync(join(at.dataDir, "internal-token"), "utf8")).toBe(internalToken);
      expect(
        served.log.filter(({ message }) => String(message).startsWith("a new database is made")),
      ).toEqual([]);
      const answer = await fetch(`${served.url}/api/v1/events`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${ingestToken}` },
        body: "[]",
      });
      expect(await answer.json()).toEqual({ accepted: 0, duplicates: 0, rejected: [] });
      expect(await served.stop("SIGINT")).toBe(0);
    },
    MINUTE,
  );

  test(
    "with the checks switched off a warning is logged once, and nobody is asked who it is",
    async () => {
      const served = await serve(at, { TALLY_REPORTING_AUTH_MODE: "disabled" });
      expect(served.log.filter(({ level }) => level === "WARN")).toEqual([
        expect.objectContaining({
          message:
            "TALLY_REPORTING_AUTH_MODE=disabled: everybody on this machine may read and write everything",
        }),
      ]);
      expect((await fetch(`${served.url}/api/v1/audit-log`)).status).toBe(200);
      expect(await served.stop()).toBe(0);
    },
    MINUTE,
  );

  test(
    "a start beside a running one is refused in one line that names it",
    async () => {
      const served = await serve(at);
      const second = await tally(at, "serve");
      expect(second).toEqual({
        code: 1,
        stdout: "",
        stderr: `tally: tally serve already runs on ${at.dataDir} (pid ${served.pid})\n`,
      });
      await readiness(served.url, 200);
      await served.stop();
    },
    MINUTE,
  );

  test(
    "commands work beside a running one, several at once, and leave it running",
    async () => {
      const served = await serve(at);
      const lists = await Promise.all(Array.from({ length: 3 }, () => tally(at, "credential", "list")));
      for (const list of lists) {
        expect(list.code).toBe(0);
        expect(list.stdout).toContain("openstack");
      }
      await readiness(served.url, 200);
      await served.stop();
    },
    MINUTE,
  );

  test(
    "commands that meet while nothing serves wait for each other",
    async () => {
      const lists = await Promise.all(Array.from({ length: 3 }, () => tally(at, "credential", "list")));
      expect(lists.map((list) => [list.code, list.stderr])).toEqual(Array(3).fill([0, ""]));
    },
    MINUTE,
  );

  test(
    "an address that is in use is refused in one line, and no server stays behind",
    async () => {
      const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
      const env = {
        TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
        TALLY_REPORTING_HTTP_PORT: String(listener.port),
      };
      const refused = await run(at, { args: ["serve"], env });
      expect(refused.code).toBe(1);
      expect(refused.stderr).toBe(
        `tally: can't listen on 127.0.0.1 port ${listener.port}: the port is in use\n`,
      );
      expect(existsSync(join(at.dataDir, "database/postmaster.pid"))).toBe(false);
      listener.stop(true);
    },
    MINUTE,
  );

  test(
    "an embedded PostgreSQL that dies takes tally along, with exit code 1",
    async () => {
      const served = await serve(at);
      process.kill(postmaster(at.dataDir), "SIGKILL");
      expect(await served.exited).toBe(1);
      expect(served.log.map((line) => line.level)).toContain("ERROR");
    },
    MINUTE,
  );

  test(
    "tally health asks the running one",
    async () => {
      const served = await serve(at);
      const env = { TALLY_REPORTING_HTTP_PORT: new URL(served.url).port };
      expect((await run(at, { args: ["health"], env })).code).toBe(0);
      expect((await run(at, { args: ["health", "--ready"], env })).code).toBe(0);
      await served.stop();
      const down = await run(at, { args: ["health"], env });
      expect([down.code, down.stdout]).toEqual([1, ""]);
      expect(down.stderr).toMatch(/^tally: http:\/\/127\.0\.0\.1:\d+\/healthz doesn't answer\n$/);
    },
    MINUTE,
  );
});

describe("who it runs as", () => {
  test.if(AS_ROOT)(
    "root: the server is given to an unprivileged user",
    async () => {
      const at = place();
      const served = await serve(at);
      const status = readFileSync(`/proc/${postmaster(at.dataDir)}/status`, "utf8");
      expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).not.toBe("0");
      expect(/^Groups:[\t ]*(.*)$/m.exec(status)?.[1]?.trim()).toBe("");
      expect(await served.stop()).toBe(0);
      await at.remove();
    },
    MINUTE,
  );

  test(
    "a user: everything is that user's",
    async () => {
      const at = place();
      const served = await serve(at, {}, AS_ROOT);
      const own = statSync(at.dataDir).uid;
      expect(own).not.toBe(0);
      expect(statSync(join(at.dataDir, "database")).uid).toBe(own);
      expect(await ask(at, "SELECT count(*)::int FROM resource_types")).toBe(5);
      expect(await served.stop()).toBe(0);
      await at.remove();
    },
    MINUTE,
  );

  test.if(AS_ROOT)(
    "a user, and root's commands beside and after it",
    async () => {
      const at = place();
      const served = await serve(at, {}, true);
      expect((await tally(at, "credential", "list")).code).toBe(0);
      expect(await served.stop()).toBe(0);
      expect((await tally(at, "credential", "list")).code).toBe(0);
      const again = await serve(at, {}, true);
      expect(await again.stop()).toBe(0);
      await at.remove();
    },
    MINUTE,
  );

  test.if(AS_ROOT)(
    "a user to whom the directory is closed is told so",
    async () => {
      const at = place();
      mkdirSync(at.dataDir, { mode: 0o700 });
      const refused = await run(at, { args: ["credential", "list"], unprivileged: true });
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toBe(
        `tally: the data directory ${at.dataDir} can't be used (EACCES): run as its owner, or set TALLY_DATA_DIR\n`,
      );
      await at.remove();
    },
    MINUTE,
  );
});

describe("what was answered 200 is stored", () => {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    test(
      `${signal} under load`,
      async () => {
        const at = place();
        const token = (
          await tally(at, "credential", "create", "--platform", "openstack", "--cloud", "c1")
        ).stdout.trim();
        const served = await serve(at);
        const load = startLoad(served.url, token);
        await Bun.sleep(1_500);
        expect(await served.stop(signal)).toBe(signal === "SIGTERM" ? 0 : 137);
        await load.over;
        // A start that fell silent would make the test empty.
        expect(load.acknowledged.length).toBeGreaterThan(500);
        const again = await serve(at);
        const list = load.acknowledged.map((id) => `'${id}'`).join(",");
        expect(await ask(at, `SELECT count(*)::int FROM events WHERE event_id IN (${list})`)).toBe(
          load.acknowledged.length,
        );
        // Whole batches only: what was not acknowledged is there whole or not at all.
        expect(await ask(at, "SELECT (count(*) % 50)::int FROM events")).toBe(0);
        expect(await again.stop()).toBe(0);
        await at.remove();
      },
      MINUTE,
    );
  }

  test(
    "kill -9 leaves no server of ours running for long",
    async () => {
      const at = place();
      const served = await serve(at);
      const server = postmaster(at.dataDir);
      await served.stop("SIGKILL");
      const again = await serve(at);
      expect(isAlive(server)).toBe(false);
      expect(await again.stop()).toBe(0);
      await at.remove();
    },
    MINUTE,
  );
});

describe("what lies in the working directory", () => {
  test("is neither environment nor program", async () => {
    const at = place();
    const cwd = join(at.cwd, "elsewhere");
    mkdirSync(cwd);
    writeFileSync(join(cwd, ".env"), "TALLY_LOG_LEVEL=nonsense\n");
    writeFileSync(join(cwd, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
    writeFileSync(join(cwd, "evil.ts"), 'console.log("evil")\n');
    writeFileSync(join(cwd, "package.json"), '{ "version": "6.6.6" }');
    const options: RunOptions = { args: ["version"], cwd };
    const said = await run(at, options);
    expect(said).toEqual({ code: 0, stdout: "0.1.0\n", stderr: "" });
    expect((await run(at, { args: ["config"], cwd })).code).toBe(0);
    await at.remove();
  });
});
