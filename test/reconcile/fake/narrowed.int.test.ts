/** An account that nova shows everything and the other services only its own project. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { OWN_PROJECT } from "../../../scripts/fake-openstack/furnishing.ts";
import { CLOUD, type Scene, startScene } from "./scene.ts";

const NARROWED = ["floating_ip", "image", "loadbalancer", "volume"];

let scene: Scene;

beforeAll(async () => {
  scene = await startScene({ resources: 300, even: true });
  expect((await scene.run()).stats.created).toBe(300);
  scene.useAccount("halfway");
  scene.heal();
}, 60_000);

afterAll(async () => {
  await scene.stop();
});

test("the brake withholds, the run fails and says why, nothing is deleted", async () => {
  const before = await scene.living();
  const outcome = await scene.run();
  expect(outcome.status).toBe("failed");
  expect(outcome.withheld.map(({ resourceType }) => resourceType).sort()).toEqual(NARROWED);
  expect([...outcome.stats.errors].sort()).toEqual(
    NARROWED.map((type) =>
      expect.stringMatching(
        new RegExp(
          `^${type}: \\d+ of 60 living resources are not listed, more than 20 %: \\d+ deletes are withheld`,
        ),
      ),
    ),
  );
  expect(outcome.corrections).toEqual([]);
  expect(await scene.living()).toEqual(before);
});

test("a run that is asked to confirms the mass delete", async () => {
  const { withheld } = await scene.run();
  const counts = new Map(withheld.map(({ resourceType, deletes }) => [resourceType, deletes]));
  const outcome = await scene.run({ confirmMassDelete: true });
  expect(outcome.stats.errors).toEqual([]);
  expect(outcome.status).toBe("completed");
  for (const type of NARROWED) expect(counts.get(type) ?? 0).toBeGreaterThan(10);
  expect(outcome.stats.deleted).toBe([...counts.values()].reduce((sum, count) => sum + count, 0));
  // What is left is the account's own, and in glance what everybody may see.
  const others: { type: string }[] = await scene.db.db`
    SELECT DISTINCT resource_type AS type FROM current_resources
     WHERE cloud = ${CLOUD} AND deleted_at IS NULL AND project_id <> ${OWN_PROJECT.id} ORDER BY 1`;
  expect(others.map(({ type }) => type)).toEqual(["image", "instance"]);
});

test("an account that sees everything again brings them back as new lives", async () => {
  scene.useAccount("collector");
  scene.heal();
  const outcome = await scene.run();
  expect(outcome.stats.errors).toEqual([]);
  expect(outcome.stats.created).toBeGreaterThan(40);
  expect(await scene.untrue()).toEqual([]);
});
