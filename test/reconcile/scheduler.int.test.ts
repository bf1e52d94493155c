/** Every cloud by the clock: alone, and shared among processes. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { instantFromMicros } from "../../src/event/instant.ts";
import type { ConfiguredCloud } from "../../src/reconcile/adapter.ts";
import { withCloudLock } from "../../src/reconcile/cloud-lock.ts";
import { type Scheduler, startScheduler } from "../../src/reconcile/scheduler.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { runServices } from "./runs.ts";
import { instance, scriptedCloud } from "./scripted-adapter.ts";

let database: TestDatabase;
const schedulers: Scheduler[] = [];
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(async () => {
  await Promise.all(schedulers.splice(0).map((scheduler) => scheduler.stop(5)));
  await database.db.unsafe("TRUNCATE sync_runs");
});
afterAll(() => database.drop());

function start(clouds: readonly ConfiguredCloud[], intervalSeconds = 600) {
  const services = runServices(database.db, { intervalSeconds });
  const scheduler = startScheduler({ ...services, now: () => instantFromMicros(`${Date.now()}000`) }, clouds);
  schedulers.push(scheduler);
  return { scheduler, services };
}

interface Run {
  readonly cloud: string;
  readonly status: string;
  /** Milliseconds. */
  readonly started: number;
  readonly finished: number | null;
  readonly errors: string[];
}

async function runs(): Promise<Run[]> {
  const found: (Omit<Run, "errors"> & { readonly errors: string })[] = await database.db`
    SELECT cloud, status, extract(epoch FROM started_at)::float8 * 1000 AS started,
           extract(epoch FROM finished_at)::float8 * 1000 AS finished, coalesce(stats -> 'errors', '[]')::text AS errors
    FROM sync_runs ORDER BY started_at`;
  return found.map((run) => ({ ...run, errors: JSON.parse(run.errors) }));
}

/** Waits for what the runs shall come to; the test's own timeout bounds it. */
async function until(holds: (found: readonly Run[]) => boolean): Promise<Run[]> {
  for (;;) {
    const found = await runs();
    if (holds(found)) return found;
    await Bun.sleep(20);
  }
}

const completed = (found: readonly Run[], cloud: string) =>
  found.filter((run) => run.cloud === cloud && run.status === "completed");

/** No two runs of one cloud overlap, and none begins before its interval is over. */
function expectApart(found: readonly Run[], intervalMs: number): void {
  const last = new Map<string, Run>();
  for (const run of found) {
    const before = last.get(run.cloud);
    if (before !== undefined) {
      expect(run.started - before.started, run.cloud).toBeGreaterThanOrEqual(intervalMs);
      expect(before.finished ?? Number.POSITIVE_INFINITY, run.cloud).toBeLessThanOrEqual(run.started + 1);
    }
    last.set(run.cloud, run);
  }
}

describe("one process", () => {
  test("runs what was never run at once, and again whenever its interval is over", async () => {
    const often = scriptedCloud("often", [], 0.3);
    const seldom = scriptedCloud("seldom", [], null);
    const onRequest = scriptedCloud("on-request", [], 0);
    start([often.cloud, seldom.cloud, onRequest.cloud]);
    const found = await until((all) => completed(all, "often").length >= 3);
    expectApart(found, 300);
    expect(completed(found, "seldom")).toHaveLength(1);
    expect(onRequest.asked).toEqual([]);
  });

  test("of which the settings say that it runs on request only, runs only what says otherwise", async () => {
    const own = scriptedCloud("own", [], 0.1);
    const other = scriptedCloud("other", [], null);
    start([own.cloud, other.cloud], 0);
    const found = await until((all) => completed(all, "own").length >= 2);
    expect(completed(found, "other")).toEqual([]);
  });

  test("leaves alone what another one ran a moment ago", async () => {
    await database.db`
      INSERT INTO sync_runs (started_at, finished_at, cloud, platform, status)
      VALUES (now() - interval '1 second', now(), 'eu1', 'openstack', 'failed')`;
    const { cloud } = scriptedCloud("eu1", [], 1.3);
    start([cloud]);
    expectApart(await until((all) => all.length >= 2), 1_300);
  });

  test("never overlaps a run of its own that takes longer than the interval", async () => {
    const { cloud, script } = scriptedCloud("eu1", [], 0.05);
    script.beforeListing = () => Bun.sleep(150);
    start([cloud]);
    expectApart(await until((all) => completed(all, "eu1").length >= 3), 150);
  });

  test("comes back to a cloud that somebody else holds", async () => {
    const { cloud } = scriptedCloud("eu1", [], 0.2);
    await withCloudLock(database.db, "eu1", 10_000, async () => {
      start([cloud]);
      await Bun.sleep(100);
      expect(await runs()).toEqual([]);
    });
    await until((all) => completed(all, "eu1").length >= 1);
  });

  test("goes on after a run that failed", async () => {
    const { cloud, script } = scriptedCloud("eu1", [], 0.1);
    script.refuses = new Error("down");
    start([cloud]);
    await until((all) => all.length >= 2 && all.every((run) => run.status !== "completed"));
    script.refuses = null;
    await until((all) => completed(all, "eu1").length >= 1);
  });

  test("stops: what is under way is cancelled and says so, and nothing is begun any more", async () => {
    const { cloud, script } = scriptedCloud("eu1", [instance("a")], 0.05);
    const listing = Promise.withResolvers<void>();
    script.beforeListing = () => {
      listing.resolve();
      return new Promise(() => {});
    };
    const { scheduler } = start([cloud]);
    await listing.promise;
    await scheduler.stop(5);
    const found = await runs();
    expect(found).toMatchObject([{ status: "failed", errors: ["Tally is stopping"] }]);
    await Bun.sleep(100);
    expect(await runs()).toEqual(found);
  });
});

describe("two processes on one database, twenty clouds", () => {
  const INTERVAL_S = 1.5;
  const NAMES = Array.from({ length: 20 }, (_, i) => `cloud-${i}`);

  function spawn(hangsOn: string | null) {
    const script = fileURLToPath(new URL("scheduler-process.ts", import.meta.url));
    const words = [script, database.url, String(NAMES.length), String(INTERVAL_S)];
    const child = Bun.spawn([process.execPath, ...words, ...(hangsOn === null ? [] : [hangsOn])], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const lines: string[] = [];
    const heard: (() => void)[] = [];
    void (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of child.stdout) {
        lines.push(...decoder.decode(chunk, { stream: true }).split("\n").filter(Boolean));
        for (const tell of heard.splice(0)) tell();
      }
    })();
    const hear = async (line: string) => {
      while (!lines.includes(line)) await new Promise<void>((resolve) => heard.push(resolve));
    };
    return { child, lines, hear };
  }

  test("share them, each run by one at a time; one that is killed leaves its share to the other", async () => {
    const hanging = spawn("cloud-7");
    let other: ReturnType<typeof spawn> | null = null;
    try {
      await hanging.hear("hangs cloud-7");
      other = spawn(null);
      const rest = NAMES.filter((name) => name !== "cloud-7");
      const shared = await until(
        (all) =>
          rest.every((name) => completed(all, name).length >= 2) &&
          hanging.lines.length > 1 &&
          (other?.lines.length ?? 0) > 1,
      );
      expectApart(shared, INTERVAL_S * 1_000);
      expect(shared.filter(({ cloud }) => cloud === "cloud-7")).toMatchObject([{ status: "running" }]);
      expect(other.lines).not.toContain("runs cloud-7");

      hanging.child.kill("SIGKILL");
      await hanging.child.exited;
      const killed = Date.now();
      const carried = await until((all) =>
        NAMES.every((name) => completed(all, name).some(({ started }) => started > killed)),
      );
      expectApart(carried, INTERVAL_S * 1_000);
      expect(carried.find(({ cloud }) => cloud === "cloud-7")).toMatchObject({
        status: "failed",
        errors: ["the process that ran it ended before the run did"],
      });
    } finally {
      hanging.child.kill("SIGKILL");
      other?.child.kill("SIGTERM");
      await other?.child.exited;
    }
  }, 60_000);
});
