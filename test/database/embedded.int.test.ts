import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { clusterOf } from "../../src/database/embedded/cluster.ts";
import type { EmbeddedDatabase } from "../../src/database/embedded/embedded.ts";
import { readHolder, takeLock } from "../../src/database/embedded/lock.ts";
import { isAlive, isPostgresOn } from "../../src/database/embedded/process.ts";
import { openPool } from "../../src/database/pool.ts";
import { ownServer, temporaryDirectory } from "./own-server.ts";

async function ask(server: EmbeddedDatabase, query: string): Promise<unknown> {
  const db = openPool(server.target, { maxConnections: 1 });
  try {
    const [row] = await db.unsafe(query);
    return row === undefined ? null : Object.values(row)[0];
  } finally {
    await db.close({ timeout: 0 });
  }
}

function postmasterPid(dataDir: string): number {
  return Number(readFileSync(join(clusterOf(dataDir), "postmaster.pid"), "utf8").split("\n")[0]);
}

describe("a running server", () => {
  const directory = temporaryDirectory();
  // Nothing of it is there: neither the data directory nor the one that holds it.
  const dataDir = join(directory.path, "srv/tally");
  let server: EmbeddedDatabase;
  const notices: string[] = [];
  beforeAll(async () => {
    // Real settings: fsync stays on.
    server = await ownServer(dataDir, { settings: {}, notice: (text) => notices.push(text) });
  }, 60_000);
  afterAll(async () => {
    await server.stop();
    directory.remove();
  });

  test("says that it made a database", () => {
    const { uid } = statSync(clusterOf(dataDir));
    const owner = readFileSync("/etc/passwd", "utf8").match(new RegExp(`^([^:]+):[^:]*:${uid}:`, "m"))?.[1];
    const told = `; PostgreSQL refuses to run as root, so ${owner} owns it and runs it`;
    expect(notices).toEqual([`a new database is made in ${dataDir}${process.getuid?.() === 0 ? told : ""}`]);
  });

  for (const [setting, value] of [
    ["server_version", "18.4"],
    ["data_checksums", "on"],
    ["fsync", "on"],
    ["synchronous_commit", "on"],
    ["full_page_writes", "on"],
    ["wal_level", "replica"],
    ["server_encoding", "UTF8"],
    ["listen_addresses", ""],
    ["max_connections", "30"],
    ["TimeZone", "UTC"],
  ] as const) {
    test(`${setting} is ${value === "" ? "nothing" : value}`, async () => {
      expect(await ask(server, `SELECT current_setting('${setting}')`)).toBe(value);
    });
  }

  test("does not listen on TCP", () => {
    const { pid } = { pid: postmasterPid(dataDir) };
    const sockets =
      readFileSync(`/proc/${pid}/net/tcp`, "utf8") + readFileSync(`/proc/${pid}/net/tcp6`, "utf8");
    const inodes = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      const link = Bun.spawnSync(["readlink", `/proc/${pid}/fd/${fd}`]).stdout.toString();
      return /socket:\[(\d+)\]/.exec(link)?.slice(1) ?? [];
    });
    expect(inodes.length).toBeGreaterThan(0);
    for (const inode of inodes) expect(sockets).not.toContain(` ${inode} `);
  });

  test("its socket lies in a directory of mode 0700, and the data too", () => {
    expect(statSync(server.target.socketDirectory).mode & 0o777).toBe(0o700);
    expect(statSync(clusterOf(dataDir)).mode & 0o777).toBe(0o700);
  });

  test("its directory is closed to others; one above it that had to be made is open, so that its own user gets through", () => {
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(directory.path, "srv")).mode & 0o777).toBe(0o777 & ~process.umask());
  });

  test("does not run as root", () => {
    const status = readFileSync(`/proc/${postmasterPid(dataDir)}/status`, "utf8");
    const uid = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
    expect(uid).toBe(
      process.getuid?.() === 0 ? statSync(clusterOf(dataDir)).uid : (process.getuid?.() ?? -1),
    );
    expect(uid).not.toBe(0);
  });

  test("keeps failing statements and their values out of its log", async () => {
    await expect(ask(server, "SELECT 'geheim'::int")).rejects.toThrow("invalid input syntax");
    expect(readFileSync(join(dataDir, "postgres.log"), "utf8")).not.toContain("geheim");
  });
});

describe("its life", () => {
  const directory = temporaryDirectory();
  afterAll(() => directory.remove());

  test("what was committed is there at the second start, and after a kill -9 of the whole server", async () => {
    let server = await ownServer(directory.path, { settings: {} });
    await ask(server, "CREATE TABLE kept (n int)");
    await ask(server, "INSERT INTO kept VALUES (1)");
    await server.stop();
    expect(existsSync(join(clusterOf(directory.path), "postmaster.pid"))).toBe(false);
    server = await ownServer(directory.path);
    await ask(server, "INSERT INTO kept VALUES (2)");
    process.kill(postmasterPid(directory.path), "SIGKILL");
    await server.exited;
    await server.stop();
    server = await ownServer(directory.path);
    expect(await ask(server, "SELECT sum(n)::int FROM kept")).toBe(3);
    await server.stop();
  }, 60_000);

  test("stopping cuts connections that are open, and is harmless twice", async () => {
    const server = await ownServer(directory.path);
    const db = openPool(server.target, { maxConnections: 1 });
    const sleeping = db`SELECT pg_sleep(30)`.then(
      () => "slept",
      () => "cut",
    );
    await Bun.sleep(100);
    const from = performance.now();
    await server.stop();
    expect(performance.now() - from).toBeLessThan(10_000);
    expect(await sleeping).toBe("cut");
    await server.stop();
    await db.close({ timeout: 0 });
  }, 60_000);

  test("a server that a killed Tally left behind is stopped, and its data is there", async () => {
    const script = `
      import { openEmbedded } from "${import.meta.dir}/../../src/database/embedded/embedded.ts";
      await openEmbedded({ dataDir: process.argv[1], maxConnections: 10, role: "serve" });
      console.log("up");
      await Bun.sleep(60_000);`;
    // Without setpriv in reach of root there is no server; so the kernel's message is undone by stopping the
    // server first: SIGSTOP keeps it from acting on SIGINT until it is continued.
    const tally = Bun.spawn([process.execPath, "-e", script, directory.path], { stdout: "pipe" });
    for await (const _ of tally.stdout) break;
    const orphan = postmasterPid(directory.path);
    process.kill(orphan, "SIGSTOP");
    tally.kill("SIGKILL");
    await tally.exited;
    expect(isPostgresOn(orphan, clusterOf(directory.path))).toBe(true);
    setTimeout(() => process.kill(orphan, "SIGCONT"), 500);
    const server = await ownServer(directory.path);
    expect(isAlive(orphan)).toBe(false);
    expect(await ask(server, "SELECT sum(n)::int FROM kept")).toBe(3);
    await server.stop();
  }, 60_000);

  test("a pid file whose number another program has now is no obstacle", async () => {
    const innocent = Bun.spawn(["sleep", "60"]);
    writeFileSync(join(clusterOf(directory.path), "postmaster.pid"), `${innocent.pid}\n`);
    const server = await ownServer(directory.path);
    expect(await ask(server, "SELECT 1")).toBe(1);
    await server.stop();
    expect(isAlive(innocent.pid)).toBe(true);
    innocent.kill();
  }, 60_000);

  test("nor is one whose number is that of a killed server that nobody has reaped", async () => {
    // The shell turns into sleep, which never asks what became of the child that the shell had.
    const parent = Bun.spawn(["sh", "-c", "sleep 0.3 & echo $!; exec sleep 60"], { stdout: "pipe" });
    let zombie = 0;
    for await (const chunk of parent.stdout) {
      zombie = Number(new TextDecoder().decode(chunk));
      break;
    }
    while (isAlive(zombie)) await Bun.sleep(10);
    expect(existsSync(`/proc/${zombie}`)).toBe(true);
    writeFileSync(join(clusterOf(directory.path), "postmaster.pid"), `${zombie}\n`);
    writeFileSync(join(directory.path, "run/.s.PGSQL.5432.lock"), `${zombie}\n`);
    const server = await ownServer(directory.path);
    expect(await ask(server, "SELECT 1")).toBe(1);
    await server.stop();
    parent.kill();
  }, 60_000);

  test("a backend that works on after its server was killed is ended before the next start", async () => {
    const first = await ownServer(directory.path);
    const db = openPool(first.target, { maxConnections: 2 });
    const busy = db`SELECT pg_backend_pid(), count(*) FROM generate_series(1, 100000000000)`.catch(
      () => "cut",
    );
    let backend = 0;
    while (backend === 0) {
      const [found]: { pid: number }[] = await db`
        SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate_series%' AND pid <> pg_backend_pid()`;
      backend = found?.pid ?? 0;
    }
    process.kill(postmasterPid(directory.path), "SIGKILL");
    await first.exited;
    expect(isAlive(backend)).toBe(true);
    await first.stop();
    const second = await ownServer(directory.path);
    expect(isAlive(backend)).toBe(false);
    expect(await busy).toBe("cut");
    expect(await ask(second, "SELECT sum(n)::int FROM kept")).toBe(3);
    await second.stop();
    await db.close({ timeout: 0 });
  }, 60_000);

  test("what an interrupted start or an older version left is cleaned up", async () => {
    rmSync(clusterOf(directory.path), { recursive: true });
    mkdirSync(join(directory.path, ".initdb-abc/database"), { recursive: true });
    mkdirSync(join(directory.path, ".unpacking-abc/tree"), { recursive: true });
    mkdirSync(join(directory.path, "postgres-17.1/bin"), { recursive: true });
    const server = await ownServer(directory.path);
    await server.stop();
    expect(readdirSync(directory.path).filter((name) => name.startsWith("."))).toEqual([]);
    expect(existsSync(join(directory.path, "postgres-17.1"))).toBe(false);
  }, 60_000);

  test("a data directory whose path is too long for a socket gets one elsewhere", async () => {
    const long = join(directory.path, "x".repeat(100));
    const server = await ownServer(long);
    expect(server.target.socketDirectory).not.toContain(long);
    expect(statSync(server.target.socketDirectory).mode & 0o777).toBe(0o700);
    expect(await ask(server, "SELECT 1")).toBe(1);
    const beside = await ownServer(long, { role: "command", ...quick }).catch(
      (error: Error) => error.message,
    );
    expect(beside).toContain(`another Tally (pid ${process.pid}) has ${long}`);
    await server.stop();
    rmSync(server.target.socketDirectory, { recursive: true });
  }, 60_000);
});

/** Gives up at once where a directory is taken. */
const quick = { signal: AbortSignal.abort() };

describe("what is refused, and left as it is", () => {
  const directory = temporaryDirectory();
  const cluster = clusterOf(directory.path);
  afterAll(() => directory.remove());

  async function refusal(): Promise<string> {
    return await ownServer(directory.path).then(
      () => "started",
      (error: Error) => error.message,
    );
  }

  test("a half initialised database", async () => {
    mkdirSync(join(cluster, "base"), { recursive: true });
    expect(await refusal()).toBe(
      `${cluster} is half initialised or no database at all; it is left as it is: move it away, or restore it`,
    );
    expect(readdirSync(cluster)).toEqual(["base"]);
  });

  test("another major version's", async () => {
    mkdirSync(join(cluster, "global"));
    writeFileSync(join(cluster, "global/pg_control"), "");
    writeFileSync(join(cluster, "PG_VERSION"), "17\n");
    expect(await refusal()).toBe(
      `${cluster} is PostgreSQL 17's, and this Tally brings PostgreSQL 18; it is left as it is: ` +
        "dump it with the Tally that made it and restore it into a new directory",
    );
    expect(readdirSync(cluster).sort()).toEqual(["PG_VERSION", "base", "global"]);
  });

  test("a damaged one, with PostgreSQL's own words", async () => {
    writeFileSync(join(cluster, "PG_VERSION"), "18\n");
    expect(await refusal()).toMatch(/^the embedded PostgreSQL did not start: .*postgresql\.conf/);
  });

  test.if(process.getuid?.() === 0)("a directory that the server's user can't reach", async () => {
    const closed = join(directory.path, "closed");
    mkdirSync(closed);
    chmodSync(closed, 0o700);
    const message = await ownServer(join(closed, "data")).catch((error: Error) => error.message);
    expect(message).toMatch(
      /^PostgreSQL refuses to run as root, and (nobody|tally), as whom it would run, can't enter /,
    );
    expect(message).toEndWith(
      `${closed}: set TALLY_DATA_DIR to a directory below /var/lib, or run Tally as another user`,
    );
  });

  test("a path that is a file", async () => {
    const path = join(directory.path, "file");
    writeFileSync(path, "");
    const message = await ownServer(path).catch((error: Error) => error.message);
    expect(message).toStartWith(`the data directory ${path} can't be used (`);
  });
});

describe("the lock", () => {
  const directory = temporaryDirectory();
  afterAll(() => directory.remove());
  const holder = { pid: process.pid, role: "serve", socketDirectory: "/run/x" } as const;

  test("has one holder, who is named, and is free again afterwards", () => {
    const lock = takeLock(directory.path, holder, null);
    expect(takeLock(directory.path, holder, null)).toBeNull();
    expect(readHolder(directory.path)).toEqual(holder);
    expect(readdirSync(directory.path).sort()).toEqual(["holder.json", "tally.lock"]);
    lock?.release();
    expect(readHolder(directory.path)).toBeNull();
    const again = takeLock(directory.path, holder, null);
    expect(again).not.toBeNull();
    again?.release();
    expect(readdirSync(directory.path)).toEqual(["tally.lock"]);
  });

  test("goes with its process, however that ends", async () => {
    const script = `
      import { takeLock } from "${import.meta.dir}/../../src/database/embedded/lock.ts";
      const lock = takeLock(process.argv[1], { pid: process.pid, role: "serve", socketDirectory: "/run/x" }, null);
      console.log(lock === null ? "no" : "held");
      await Bun.sleep(60_000);
      lock.release();`;
    const other = Bun.spawn([process.execPath, "-e", script, directory.path], { stdout: "pipe" });
    for await (const _ of other.stdout) break;
    expect(takeLock(directory.path, holder, null)).toBeNull();
    expect(readHolder(directory.path)?.pid).toBe(other.pid);
    other.kill("SIGKILL");
    await other.exited;
    const lock = takeLock(directory.path, holder, null);
    expect(lock).not.toBeNull();
    lock?.release();
  });

  test("is one process's, however many try at once", async () => {
    const script = `
      import { takeLock } from "${import.meta.dir}/../../src/database/embedded/lock.ts";
      const lock = takeLock(process.argv[1], { pid: process.pid, role: "command", socketDirectory: "/run/x" }, null);
      console.log(lock === null ? "no" : "held");
      await new Response(Bun.stdin.stream()).text();
      lock?.release();`;
    const tries = Array.from({ length: 6 }, () =>
      Bun.spawn([process.execPath, "-e", script, directory.path], { stdin: "pipe", stdout: "pipe" }),
    );
    const answers = await Promise.all(
      tries.map(async (run) => {
        for await (const chunk of run.stdout) return new TextDecoder().decode(chunk).trim();
        return "nothing";
      }),
    );
    for (const run of tries) run.stdin.end();
    await Promise.all(tries.map((run) => run.exited));
    expect(answers.sort()).toEqual(["held", "no", "no", "no", "no", "no"]);
  }, 30_000);
});
