import { afterEach, expect, test } from "bun:test";
import { liveThrough, overdrawn } from "../../../scripts/fake-openstack/month.ts";
import { type Scene, startScene } from "./scene.ts";

let scene: Scene | null = null;
afterEach(async () => {
  await scene?.stop();
  scene = null;
});

const INTERVAL = 600;

// `bun run month` lives through all of it; here it is a part, with a seed of its own each time.
for (const settleSeconds of [0, 60]) {
  test(`500 resources, a tenth of the events lost, runs every ten minutes, settle window ${settleSeconds} s`, async () => {
    const seed = Number(process.env.TALLY_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`seed ${seed} (TALLY_TEST_SEED)`);
    scene = await startScene({ seed, resources: 500, changesPerDay: 8, sync: { settleSeconds } });
    const lived = await liveThrough(scene.cloud, scene.configured, scene.services, {
      seed,
      hours: 6,
      intervalSeconds: INTERVAL,
      losses: { lost: 0.1, doubled: 0.05, late: 0.3, latest: 3_600 },
    });
    expect(lived.failures).toEqual([]);
    expect(lived.verdict.wrong).toEqual([]);
    expect(overdrawn(lived, INTERVAL + settleSeconds)).toEqual([]);
    expect(lived.events.lost).toBeGreaterThan(50);
  });
}
