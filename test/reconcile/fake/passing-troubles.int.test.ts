/** Troubles of a cloud that a run gets over by itself, or that concern no listing. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { FaultRule } from "../../../scripts/fake-openstack/faults.ts";
import { later } from "../../../scripts/fake-openstack/furnishing.ts";
import type { SyncOutcome } from "../../../src/reconcile/outcome.ts";
import { type TestServer, testServer } from "../../support/server.ts";
import { CLOUD, type Scene, startScene, TYPES, typesDeleted } from "./scene.ts";

let scene: Scene;

beforeAll(async () => {
  scene = await startScene({ resources: 60, even: true, pageLimit: 5 });
  // No token ends by itself while hours of the cloud's time go by.
  scene.cloud.services.keystone.tokenSeconds = 30 * 86_400;
  expect((await scene.run()).stats.created).toBe(60);
}, 60_000);

afterAll(async () => {
  await scene.stop();
});

async function expectTrue(outcome: SyncOutcome): Promise<void> {
  expect(outcome.stats.errors).toEqual([]);
  expect(outcome.status).toBe("completed");
  expect(await scene.untrue()).toEqual([]);
}

async function repaired(): Promise<void> {
  scene.heal();
  await expectTrue(await scene.run());
}

describe("a run gets over", () => {
  const cases: readonly (readonly [string, FaultRule])[] = [
    ["429 twice", { service: "neutron", fault: { kind: "status", status: 429, retryAfter: 0 }, times: 2 }],
    [
      "503 twice, in the middle",
      { service: "cinder", fault: { kind: "status", status: 503 }, skip: 3, times: 2 },
    ],
    ["a connection that breaks once", { service: "glance", fault: { kind: "cut" }, times: 1 }],
    ["next links that name another host", { service: "nova", fault: { kind: "other-host" } }],
    ["next links that name another host, in glance", { service: "glance", fault: { kind: "other-host" } }],
    ["a page that comes twice", { service: "neutron", fault: { kind: "repeated-page" }, times: 2 }],
    ["items that move to the next page", { service: "octavia", fault: { kind: "moved-item" } }],
  ];
  for (const [name, rule] of cases) {
    test(name, async () => {
      scene.stir();
      scene.cloud.faults.add(rule);
      await expectTrue(await scene.run());
      scene.heal();
      const { corrections } = await scene.run();
      expect(corrections).toEqual([]);
    });
  }

  test("a token that expires in the middle, with one more login", async () => {
    scene.stir();
    scene.cloud.faults.add({ service: "neutron", fault: { kind: "expired-token" }, skip: 1, times: 1 });
    const { issued } = scene.cloud.services.keystone;
    await expectTrue(await scene.run());
    expect(scene.cloud.services.keystone.issued).toBe(issued + 1);
    scene.heal();
  });

  test("Retry-After, which it waits for", async () => {
    const fault = { kind: "status", status: 429, retryAfter: 1 } as const;
    scene.cloud.faults.add({ service: "octavia", fault, times: 1 });
    const begun = performance.now();
    await expectTrue(await scene.run());
    expect(performance.now() - begun).toBeGreaterThan(1_000);
    scene.heal();
  });

  // The marker of a page is gone when the next one is asked for: 400, 404, the first page again, or nothing at all.
  for (const [service, listing, type] of [
    ["nova", "/servers/detail", "instance"],
    ["cinder", "/volumes/detail", "volume"],
    ["neutron", "/floatingips", "floating_ip"],
    ["glance", "/images", "image"],
    ["octavia", "/loadbalancers", "loadbalancer"],
  ] as const) {
    test(`an item that is deleted between two pages, in ${service}`, async () => {
      let marker: string | null = null;
      scene.cloud.meanwhile = ({ target }) => {
        const asked = /[?&]marker=([^&]+)/.exec(target)?.[1];
        if (marker !== null || asked === undefined || !target.includes(listing)) return;
        marker = asked;
        scene.cloud.living.remove(type, asked);
      };
      const outcome = await scene.run();
      scene.heal();
      expect(outcome.stats.errors).toEqual([]);
      expect(outcome.status).toBe("completed");
      expect(marker).not.toBeNull();
      // It stood on the page before: this run may or may not know that it is gone.
      await expectTrue(await scene.run());
    });
  }
});

test("a service that is down: its resources stay, and so do the size names", async () => {
  scene.stir();
  await scene.cloud.services.stop("cinder");
  const outcome = await scene.run();
  expect(outcome.status).toBe("failed");
  expect(outcome.stats.errors.join("\n")).toMatch(/volume: .*refused/);
  expect(outcome.stats.errors.join("\n")).toMatch(/size names: .*refused/);
  expect(typesDeleted(outcome)).toEqual(TYPES.filter((type) => type !== "volume"));
  const names: { count: number }[] = await scene.db.db`
    SELECT count(*)::int AS count FROM size_names WHERE cloud = ${CLOUD}`;
  expect(names).toEqual([{ count: 3 }]);
  await repaired();
});

test("a catalog without cinder", async () => {
  scene.stir();
  scene.cloud.services.absent.add("cinder");
  // The token of the run before is refused, and the one that takes its place brings another catalog.
  scene.cloud.services.keystone.revokeAll();
  const outcome = await scene.run();
  expect(outcome.status).toBe("failed");
  expect(outcome.stats.errors.join("\n")).toMatch(
    /volume: .*catalog has no public endpoint of block-storage/,
  );
  expect(typesDeleted(outcome)).toEqual(TYPES.filter((type) => type !== "volume"));
  await repaired();
});

test("nova fails before it is known how far the account sees: no absence counts", async () => {
  scene.stir();
  scene.cloud.faults.add({ service: "nova", fault: { kind: "status", status: 500 } });
  const outcome = await scene.run();
  expect(outcome.status).toBe("failed");
  expect(outcome.stats.errors).toHaveLength(TYPES.length);
  expect(typesDeleted(outcome)).toEqual([]);
  // What was seen counts all the same.
  expect(outcome.stats.created).toBe(TYPES.length - 1);
  await repaired();
});

describe("nothing is observed, nothing is booked", () => {
  async function expectNothing(outcome: SyncOutcome, says: RegExp): Promise<void> {
    expect(outcome.status).toBe("failed");
    expect(outcome.stats.errors).toEqual([expect.stringMatching(says)]);
    expect(outcome.corrections).toEqual([]);
    await repaired();
  }

  test("Keystone is down", async () => {
    scene.stir();
    scene.cloud.services.keystone.revokeAll();
    await scene.cloud.services.stop("keystone");
    scene.useAccount("credential");
    await expectNothing(await scene.run(), /can't log in: .*refused/);
  });

  test("Keystone refuses the login", async () => {
    scene.stir();
    scene.useAccount("collector");
    scene.cloud.faults.add({ service: "keystone", fault: { kind: "status", status: 401 } });
    await expectNothing(await scene.run(), /fake-1 in .*clouds.yaml: Keystone .* refused the login \(401\)/);
  });

  test("the account may not list the servers of all projects", async () => {
    scene.stir();
    scene.useAccount("reader");
    const outcome = await scene.run();
    scene.useAccount("collector");
    await expectNothing(outcome, /fake-1 in .*: the account may not list the servers of all projects/);
  });

  test("a listing takes longer than the run may", async () => {
    const slow = await startScene({ resources: 20, sync: { budgetSeconds: 1 } });
    slow.cloud.faults.add({ service: "neutron", fault: { kind: "slow", ms: 30_000 } });
    const begun = performance.now();
    const outcome = await slow.run();
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect(outcome.status).toBe("failed");
    expect(outcome.stats.errors).toEqual(["the run's budget of 1 s is spent"]);
    expect(await slow.living()).toEqual({});
    slow.heal();
    expect((await slow.run()).stats.created).toBe(20);
    await slow.stop();
  });
});

describe("a clock ten minutes off", () => {
  test("ahead of Tally's: what it dates in the future waits, and nothing is lost", async () => {
    scene.stir();
    const { now } = scene.cloud.world;
    const outcome = await scene.run({ at: later(now, -600) });
    expect(outcome.stats.errors).toEqual([]);
    // What is told with a date waits; what is gone without one is booked at the run's own time.
    expect(outcome.stats.deferred.recent).toBeGreaterThan(0);
    expect(outcome.stats.created).toBe(0);
    await repaired();
  });

  test("behind Tally's: what ended is found all the same", async () => {
    scene.stir();
    const outcome = await scene.run({ at: later(scene.cloud.world.now, 600) });
    expect(typesDeleted(outcome)).toEqual([...TYPES]);
    await expectTrue(outcome);
    scene.heal();
  });
});

describe("a server in a state that nobody knows", () => {
  test("is booked as the cloud says it", async () => {
    scene.heal();
    scene.cloud.faults.add({ service: "nova", fault: { kind: "unknown-status" } });
    const outcome = await scene.run();
    expect(outcome.status).toBe("completed");
    expect(outcome.stats.updated).toBeGreaterThan(0);
    const states: { state: string }[] = await scene.db.db`
      SELECT DISTINCT state FROM current_resources
       WHERE cloud = ${CLOUD} AND resource_type = 'instance' AND state = 'quantum'`;
    expect(states).toHaveLength(1);
    await repaired();
  });
});

describe("a caller who hangs up", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await testServer({ db: scene.db, clouds: [scene.configured] });
  }, 60_000);
  afterAll(async () => {
    await server.stop();
  });

  test("cancels the run: it has booked nothing", async () => {
    scene.stir();
    const caller = new AbortController();
    scene.cloud.faults.add({ service: "octavia", fault: { kind: "slow", ms: 30_000 } });
    scene.cloud.meanwhile = ({ service }) => {
      if (service === "octavia") caller.abort();
    };
    const { internal } = server.credentials;
    const call = server.request(`/internal/sync/${CLOUD}`, {
      method: "POST",
      token: internal,
      signal: caller.signal,
    });
    expect(await call.catch((error: unknown) => String(error))).toContain("AbortError");
    const last = async () => {
      const found: { status: string; stats: string }[] = await scene.db.db`
        SELECT status, stats::text AS stats FROM sync_runs WHERE cloud = ${CLOUD} ORDER BY started_at DESC LIMIT 1`;
      return found[0];
    };
    while ((await last())?.status === "running") await Bun.sleep(10);
    const run = await last();
    expect(run?.status).toBe("failed");
    expect(JSON.parse(run?.stats ?? "{}")).toMatchObject({
      created: 0,
      updated: 0,
      deleted: 0,
      errors: [expect.stringContaining("caller")],
    });
    await repaired();
  });
});
