/** TALLY_REPORTING_CLOUDS_CONFIG's file: what is read, and how its faults name the entry. */
import { expect, test } from "bun:test";
import { CloudsFileError, readCloudSettings, readCloudsFile } from "../../../src/reconcile/clouds-file.ts";

const GOOD = `clouds:
  - cloud: os-prod-eu1
    platform: openstack
    adapter: openstack
    interval_s: 600
    adapter_config:
      os_cloud: prod
      include_octavia: true
  - cloud: os-stage
    platform: openstack
    adapter: openstack
    adapter_config:
      os_cloud: stage
      request_timeout_s: 120
`;

function faultsOf(text: string): string {
  try {
    readCloudSettings("clouds.yml", text);
  } catch (error) {
    expect(error).toBeInstanceOf(CloudsFileError);
    return String(error instanceof Error ? error.message : error);
  }
  return "none";
}

test("clouds, their intervals and their adapters' settings", () => {
  expect(readCloudSettings("clouds.yml", GOOD)).toEqual([
    {
      cloud: "os-prod-eu1",
      platform: "openstack",
      intervalSeconds: 600,
      config: { osCloud: "prod", includeOctavia: true, requestTimeoutSeconds: null },
    },
    {
      cloud: "os-stage",
      platform: "openstack",
      intervalSeconds: null,
      config: { osCloud: "stage", includeOctavia: false, requestTimeoutSeconds: 120 },
    },
  ]);
});

test("each cloud gets an adapter that knows its types; no cloud is asked", () => {
  const [prod, stage] = readCloudsFile("clouds.yml", GOOD, {});
  expect(prod).toMatchObject({ cloud: "os-prod-eu1", platform: "openstack", intervalSeconds: 600 });
  expect(prod?.adapter.resourceTypes).toEqual(["instance", "volume", "floating_ip", "image", "loadbalancer"]);
  expect(stage?.adapter.resourceTypes).toEqual(["instance", "volume", "floating_ip", "image"]);
});

test("an empty list is no cloud", () => {
  expect(readCloudSettings("clouds.yml", "clouds: []\n")).toEqual([]);
});

for (const [what, from, to, fault] of [
  ["a cloud that is missing", "cloud: os-stage", "interval_s: 60", "clouds[1]: `cloud` is missing"],
  ["a cloud that is there twice", "os-stage", "os-prod-eu1", "os-prod-eu1: the cloud is there twice"],
  ["a cloud of virtual projects", "cloud: os-stage", "cloud: meta", "meta: is the name of virtual projects"],
  ["a missing platform", "    platform: openstack\n", "", "os-prod-eu1: `platform` is missing"],
  ["a missing adapter", "    adapter: openstack\n", "", "os-prod-eu1: `adapter` is missing"],
  [
    "an unknown adapter",
    "adapter: openstack",
    "adapter: vsphere",
    "os-prod-eu1: `adapter` must be one of openstack, not vsphere",
  ],
  [
    "an adapter of another platform",
    "platform: openstack",
    "platform: vmware",
    "os-prod-eu1: the adapter openstack reads platform openstack, not vmware",
  ],
  ["an unknown key", "interval_s", "intervall", "os-prod-eu1: unknown key `intervall`"],
  [
    "an unknown key of the adapter",
    "include_octavia",
    "octavia",
    "os-prod-eu1: unknown key `adapter_config.octavia`",
  ],
  ["an unknown key beside the clouds", "clouds:\n", "cloud: x\nclouds:\n", "unknown key `cloud`"],
  [
    "an interval that is none",
    "600",
    "ten",
    "os-prod-eu1: `interval_s` must be a whole number from 0 to 86400",
  ],
  [
    "an interval that is too long",
    "600",
    "86401",
    "os-prod-eu1: `interval_s` must be a whole number from 0 to 86400",
  ],
  [
    "no entry of clouds.yaml",
    "os_cloud: prod\n",
    "os_cloud:\n",
    "os-prod-eu1: `adapter_config.os_cloud` is missing",
  ],
  [
    "a flag that is none",
    "octavia: true",
    "octavia: 1.5",
    "os-prod-eu1: `adapter_config.include_octavia` must be true or false",
  ],
  [
    "a timeout that is none",
    "request_timeout_s: 120",
    "request_timeout_s: 0",
    "os-stage: `adapter_config.request_timeout_s` must be a whole number from 1 to 3600",
  ],
] as const) {
  test(`${what} is refused and named`, () => {
    expect(faultsOf(GOOD.replace(from, to))).toStartWith(`clouds.yml: ${fault}`);
  });
}

test("what is no YAML, and what is no list of entries", () => {
  expect(faultsOf("clouds: [a")).toMatch(/^clouds\.yml: line 1 is not YAML/);
  expect(faultsOf("- a\n")).toBe("clouds.yml: must be a mapping with the member `clouds`");
  expect(faultsOf("clouds: a\n")).toBe("clouds.yml: `clouds` must be a list");
  expect(faultsOf("clouds: [a]\n")).toBe("clouds.yml: clouds[0]: must be a mapping");
});

test("all faults are told at once", () => {
  const text = GOOD.replace("platform: openstack", "colour: red").replace("os_cloud: stage", "x: y");
  expect(faultsOf(text)).toBe(
    "clouds.yml: os-prod-eu1: unknown key `colour`; os-prod-eu1: `platform` is missing; " +
      "os-stage: unknown key `adapter_config.x`; os-stage: `adapter_config.os_cloud` is missing: the entry of clouds.yaml",
  );
});
