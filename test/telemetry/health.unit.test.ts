/** Readiness and health, on a clock that the test moves. */
import { describe, expect, test } from "bun:test";
import { createHealth, type Finding } from "../../src/telemetry/health.ts";

/** Health over a database whose state the test sets. */
function rig(options: { timeoutMs?: number; thresholdSeconds?: number } = {}) {
  const rig = {
    now: 0,
    probes: 0,
    changes: [] as Finding[],
    answer: async (): Promise<Finding> => null,
  };
  const health = createHealth({
    probe: () => {
      rig.probes++;
      return rig.answer();
    },
    thresholdSeconds: options.thresholdSeconds ?? 600,
    monotonicMs: () => rig.now,
    changed: (finding) => rig.changes.push(finding),
    timeoutMs: options.timeoutMs ?? 2_500,
  });
  return { rig, health };
}
const down = async (): Promise<Finding> => {
  throw new Error("connection refused to 10.0.0.5");
};

describe("readiness", () => {
  test("is what the probe found", async () => {
    const { rig: r, health } = rig();
    expect(await health.readiness()).toBeNull();
    r.now = 1_000;
    r.answer = async () => "the database is read-only";
    expect(await health.readiness()).toBe("the database is read-only");
  });

  test("tells nothing of why the database can't be reached", async () => {
    const { rig: r, health } = rig();
    r.answer = down;
    expect(await health.readiness()).toBe("the database can't be reached");
  });

  test("is asked for once a second at most, however many ask", async () => {
    const { rig: r, health } = rig();
    await Promise.all(Array.from({ length: 50 }, () => health.readiness()));
    r.now = 999;
    await health.readiness();
    expect(r.probes).toBe(1);
    r.now = 1_000;
    await health.readiness();
    expect(r.probes).toBe(2);
  });

  test("says within its time that a database doesn't answer, and holds one connection for it", async () => {
    const { rig: r, health } = rig({ timeoutMs: 20 });
    let release: (finding: Finding) => void = () => {};
    r.answer = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    for (let i = 0; i < 5; i++) {
      expect(await health.readiness()).toBe("the database does not answer");
      r.now += 5_000;
    }
    expect(r.probes).toBe(1);
    release(null);
    await Bun.sleep(1);
    expect(await health.readiness()).toBeNull();
  });

  test("tells changes, and the first finding", async () => {
    const { rig: r, health } = rig();
    for (const answer of [async () => null, async () => null, down, down, async () => null]) {
      r.answer = answer;
      r.now += 2_000;
      await health.readiness();
    }
    expect(r.changes).toEqual([null, "the database can't be reached", null]);
  });
});

describe("health", () => {
  test("fails only once readiness has failed for longer than the threshold", async () => {
    const { rig: r, health } = rig({ thresholdSeconds: 600 });
    expect(health.health()).toBeNull();
    r.now = 10_000;
    r.answer = down;
    await health.readiness();
    expect(health.health()).toBeNull();
    r.now = 10_000 + 600_000;
    await health.readiness();
    expect(health.health()).toBeNull();
    r.now += 1;
    expect(health.health()).toBe("not ready for 600 seconds: the database can't be reached");
  });

  test("counts from the first failure, whatever the reasons are since", async () => {
    const { rig: r, health } = rig({ thresholdSeconds: 10 });
    r.answer = down;
    await health.readiness();
    r.now = 6_000;
    r.answer = async () => "the database is read-only";
    await health.readiness();
    r.now = 11_000;
    expect(health.health()).toBe("not ready for 11 seconds: the database is read-only");
  });

  test("is back at once with readiness, and counts anew", async () => {
    const { rig: r, health } = rig({ thresholdSeconds: 10 });
    r.answer = down;
    await health.readiness();
    r.now = 20_000;
    expect(health.health()).not.toBeNull();
    r.answer = async () => null;
    await health.readiness();
    expect(health.health()).toBeNull();
    r.now = 30_000;
    r.answer = down;
    await health.readiness();
    r.now = 39_000;
    expect(health.health()).toBeNull();
  });

  test("needs nobody to ask for readiness", async () => {
    const { rig: r, health } = rig({ thresholdSeconds: 1 });
    r.answer = down;
    const end = health.watch(5);
    await Bun.sleep(30);
    r.now = 5_000;
    expect(health.health()).not.toBeNull();
    end();
    await Bun.sleep(5);
    const { probes } = r;
    r.now = 60_000;
    await Bun.sleep(30);
    expect(r.probes).toBe(probes);
  });
});
