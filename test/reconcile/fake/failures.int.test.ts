/** Each way in which a cloud can fail: what the run records, what it leaves alone, and that the next one makes it good. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { FaultRule } from "../../../scripts/fake-openstack/faults.ts";
import type { SyncOutcome } from "../../../src/reconcile/outcome.ts";
import { type Scene, startScene, TYPES, typesDeleted } from "./scene.ts";

let scene: Scene;

beforeAll(async () => {
  scene = await startScene({ resources: 60, even: true, pageLimit: 5 });
  expect((await scene.run()).stats.created).toBe(60);
}, 60_000);

afterAll(async () => {
  await scene.stop();
});

/** The cloud is well again: one run, and the record is the truth. */
async function repaired(): Promise<void> {
  scene.heal();
  const { status, stats } = await scene.run();
  expect(stats.errors).toEqual([]);
  expect(status).toBe("completed");
  expect(await scene.untrue()).toEqual([]);
}

function fails(rule: FaultRule): void {
  scene.cloud.faults.add(rule);
}

/** A failed run that lost no row of the types that it couldn't read to their end, and found all other losses. */
function expectFailed(outcome: SyncOutcome, incomplete: readonly string[], says: RegExp): void {
  expect(outcome.status).toBe("failed");
  expect(outcome.stats.errors.join("\n")).toMatch(says);
  expect(typesDeleted(outcome)).toEqual(TYPES.filter((type) => !incomplete.includes(type)));
}

const LISTING = {
  instance: { service: "nova", containing: "/servers/detail?limit=" },
  volume: { service: "cinder", containing: "/volumes/detail" },
  floating_ip: { service: "neutron", containing: "/floatingips" },
  image: { service: "glance", containing: "/images" },
  loadbalancer: { service: "octavia", containing: "/loadbalancers" },
} as const;

describe("a listing that can't be read to its end", () => {
  const cases: readonly (readonly [string, keyof typeof LISTING, Omit<FaultRule, "service">, RegExp])[] = [
    [
      "401, even to a new token",
      "floating_ip",
      { fault: { kind: "status", status: 401 } },
      /floating_ip: .*401/,
    ],
    ["403", "loadbalancer", { fault: { kind: "status", status: 403 } }, /loadbalancer: .*403/],
    ["404", "image", { fault: { kind: "status", status: 404 } }, /image: .*404/],
    ["429 for ever", "floating_ip", { fault: { kind: "status", status: 429 } }, /floating_ip: .*429/],
    [
      "429 with an hour to wait",
      "image",
      { fault: { kind: "status", status: 429, retryAfter: 3_600 } },
      /image: .*429.*3600 s/,
    ],
    ["500", "instance", { fault: { kind: "status", status: 500 } }, /instance: .*500/],
    [
      "500 to the listing of what ended, the living ones being read to their end",
      "instance",
      { containing: "deleted=true", fault: { kind: "status", status: 500 } },
      /instance: .*500/,
    ],
    [
      "403 to the hidden images, the others being read to their end",
      "image",
      { containing: "os_hidden=true", fault: { kind: "status", status: 403 } },
      /image: .*403/,
    ],
    ["503 for ever", "volume", { fault: { kind: "status", status: 503 } }, /volume: .*503/],
    [
      "503 from the second page on",
      "volume",
      { skip: 1, fault: { kind: "status", status: 503 } },
      /volume: .*503/,
    ],
    ["a body cut off", "image", { fault: { kind: "cut" } }, /image: .*broke/],
    ["a second page cut off", "instance", { skip: 1, fault: { kind: "cut" } }, /instance: .*broke/],
    ["a web page instead of JSON", "floating_ip", { fault: { kind: "html" } }, /floating_ip: .*text\/html/],
    ["next without an end", "floating_ip", { fault: { kind: "endless-next" } }, /floating_ip: .*again/],
    ["next without an end in nova", "instance", { fault: { kind: "endless-next" } }, /instance: .*again/],
    ["next that leads to its own page", "volume", { fault: { kind: "same-next" } }, /volume: .*circle/],
    [
      "a page repeated for ever",
      "loadbalancer",
      { fault: { kind: "repeated-page" } },
      /loadbalancer: .*again/,
    ],
    [
      "images of a status that nobody knows",
      "image",
      { fault: { kind: "unknown-status" } },
      /image .*status/,
    ],
  ];
  for (const [name, type, rule, says] of cases) {
    test(name, async () => {
      scene.stir();
      fails({ ...LISTING[type], ...rule });
      expectFailed(await scene.run(), [type], says);
      await repaired();
    });
  }
});
