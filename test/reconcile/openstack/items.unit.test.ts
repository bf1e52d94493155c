/** Single items of listings: states, sizes and times as collectors tell them, and items that can't be read. */
import { afterEach, expect, test } from "bun:test";
import { at, lines, observe } from "./observing.ts";
import { type Replay, type Reply, recording, replay } from "./replay.ts";

let cloud: Replay | null = null;
afterEach(async () => {
  await cloud?.stop();
  cloud = null;
});

function recorded(replies: Readonly<Record<string, Reply>>): Replay {
  cloud = replay({ replies });
  return cloud;
}

const SERVERS = "GET nova/v2.1/servers/detail?all_tenants=1";
const VOLUMES = "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&with_count=True";
const FLOATING_IPS = "GET neutron/v2.0/floatingips";
const IMAGES = "GET glance/v2/images?member_status=all&visibility=all";
const LOAD_BALANCERS = "GET octavia/v2/lbaas/loadbalancers";

/** A recorded listing's first item, changed. */
function item(name: string, collection: string, change: Readonly<Record<string, unknown>>) {
  return { ...JSON.parse(recording(name).body)[collection][0], id: "x", ...change };
}
const server = (change: object) => item("nova/servers-detail-all-2.47", "servers", { ...change });
const volume = (change: object) => item("cinder/volumes-detail-all", "volumes", { ...change });
const image = (change: object) => item("glance/images-visibility-all", "images", { ...change });
const floatingIp = (change: object) => item("neutron/floatingips-admin", "floatingips", { ...change });
const loadBalancer = (change: object) => item("octavia/loadbalancers-admin", "loadbalancers", { ...change });

/** A listing of these alone. */
const only = (collection: string, ...items: readonly unknown[]): Reply => {
  return () => Response.json({ [collection]: items });
};

test.each([
  ["active", "active"],
  ["building", "building"],
  ["paused", "paused"],
  ["suspended", "suspended"],
  ["stopped", "shutoff"],
  ["rescued", "rescued"],
  ["resized", "resized"],
  ["shelved", "shelved"],
  ["shelved_offloaded", "shelved"],
  ["error", "error"],
  ["never-heard-of", "never-heard-of"],
])("a server that nova calls %s is %s", async (vmState, state) => {
  const change = { "OS-EXT-STS:vm_state": vmState };
  const told = await observe(recorded({ [SERVERS]: only("servers", server(change)) }).env);
  expect(told.resources.find((one) => one.resourceType === "instance")?.state).toBe(state);
});

test("a server is in transition while it builds, and while nova is at work on it", async () => {
  const servers = [
    server({ id: "quiet" }),
    server({ id: "building", "OS-EXT-STS:vm_state": "building" }),
    server({ id: "busy", "OS-EXT-STS:task_state": "resize_prep" }),
  ];
  const told = await observe(recorded({ [SERVERS]: only("servers", ...servers) }).env);
  const moving = told.resources.filter((one) => one.resourceType === "instance" && one.inTransition);
  expect(moving.map((one) => one.resourceId).sort()).toEqual(["building", "busy"]);
});

test("a volume is in transition while cinder is at work on it, and keeps cinder's word for it", async () => {
  const moving = [
    "creating",
    "deleting",
    "managing",
    "attaching",
    "detaching",
    "reserved",
    "restoring-backup",
    "backing-up",
    "downloading",
    "uploading",
    "retyping",
    "extending",
  ];
  const resting = ["available", "in-use", "error", "error_deleting", "awaiting-transfer", "maintenance"];
  const volumes = [...moving, ...resting].map((status) => volume({ id: status, status }));
  const told = await observe(recorded({ [VOLUMES]: only("volumes", ...volumes) }).env);
  const seen = told.resources.filter((one) => one.resourceType === "volume");
  expect(seen.map((one) => one.state)).toEqual([...moving, ...resting]);
  expect(seen.filter((one) => one.inTransition).map((one) => one.state)).toEqual(moving);
});

test("a volume without a type has the one that cinder gives such volumes today", async () => {
  const told = await observe(recorded({ [VOLUMES]: only("volumes", volume({ volume_type: null })) }).env);
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "volume")[0]).toContain('{"size_gb":3,"type":"__DEFAULT__"}');
});

test("floating IPs are active, DOWN or not, of version 4 or 6", async () => {
  const told = await observe(
    recorded({
      [FLOATING_IPS]: only(
        "floatingips",
        floatingIp({ id: "down", status: "DOWN" }),
        floatingIp({ id: "six", status: "ERROR", floating_ip_address: "2001:db8::1" }),
        floatingIp({ id: "tenant", project_id: undefined, tenant_id: "t" }),
      ),
    }).env,
  );
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "floating_ip").map((line) => line.split(" created ", 1)[0])).toEqual([
    'down acme active {"ip_version":4}',
    'six acme active {"ip_version":6}',
    'tenant t active {"ip_version":4}',
  ]);
});

test("images without data are not observed, deactivated ones are active", async () => {
  const without = ["queued", "saving", "uploading", "importing", "killed", "deleted", "pending_delete"];
  const images = [
    ...without.map((status) => image({ id: status, status, size: null, owner: null })),
    image({ id: "off", status: "deactivated", size: 3 * 1024 ** 3 }),
  ];
  const told = await observe(recorded({ [IMAGES]: only("images", ...images), ...NO_HIDDEN }).env);
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "image").map((line) => line.split(" created ", 1)[0])).toEqual([
    'off acme active {"size_gb":3}',
  ]);
});

const NO_HIDDEN = {
  "GET glance/v2/images?member_status=all&os_hidden=true&visibility=all": "glance/images-hidden",
};

test("an image without an owner makes the type incomplete, and the others are observed", async () => {
  const images = [image({ id: "a", owner: null }), image({ id: "b", owner: null }), image({ id: "c" })];
  const told = await observe(recorded({ [IMAGES]: only("images", ...images), ...NO_HIDDEN }).env);
  expect(told.incomplete).toEqual(["image: image a (and 1 more) has no owner"]);
  expect(lines(told, "image").map((line) => line.slice(0, 2))).toEqual(["c "]);
});

test("an image of a status that nobody has heard of makes the type incomplete", async () => {
  const told = await observe(
    recorded({ [IMAGES]: only("images", image({ status: "melting" })), ...NO_HIDDEN }).env,
  );
  expect(told.incomplete).toEqual(["image: image x has a status that is not known here"]);
});

test("a load balancer is active, in transition while octavia is at work, and gone when DELETED", async () => {
  const balancers = ["ACTIVE", "ERROR", "PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE", "DELETED"].map(
    (status) => loadBalancer({ id: status, provisioning_status: status, listeners: [{}, {}], pools: [{}] }),
  );
  const told = await observe(recorded({ [LOAD_BALANCERS]: only("loadbalancers", ...balancers) }).env);
  const seen = told.resources.filter((one) => one.resourceType === "loadbalancer");
  expect(seen.map((one) => [one.resourceId, one.state, one.size, one.inTransition])).toEqual([
    ["ACTIVE", "active", '{"listeners":2,"pools":1}', false],
    ["ERROR", "active", '{"listeners":2,"pools":1}', false],
    ["PENDING_CREATE", "active", '{"listeners":2,"pools":1}', true],
    ["PENDING_UPDATE", "active", '{"listeners":2,"pools":1}', true],
    ["PENDING_DELETE", "active", '{"listeners":2,"pools":1}', true],
  ]);
});

test.each([
  ["instance", SERVERS, "servers", server({ tenant_id: "" }), "has no tenant_id"],
  ["instance", SERVERS, "servers", server({ "OS-EXT-STS:vm_state": null }), "has no OS-EXT-STS:vm_state"],
  [
    "volume",
    VOLUMES,
    "volumes",
    volume({ "os-vol-tenant-attr:tenant_id": null }),
    "has no os-vol-tenant-attr:tenant_id",
  ],
  [
    "floating_ip",
    FLOATING_IPS,
    "floatingips",
    floatingIp({ project_id: "", tenant_id: "" }),
    "has no project_id",
  ],
  [
    "loadbalancer",
    LOAD_BALANCERS,
    "loadbalancers",
    loadBalancer({ provisioning_status: 1 }),
    "has no provisioning_status",
  ],
])(
  "%s that lacks what a row needs is left out, and the type incomplete",
  async (type, what, collection, one, fault) => {
    const told = await observe(recorded({ [what]: only(collection, one) }).env);
    expect(told.incomplete).toEqual([`${type}: ${type} x ${fault}`]);
    expect(lines(told, type)).toEqual([]);
  },
);

test.each([
  ["instance", SERVERS, "servers", server({ flavor: { ram: "much" } }), "has a flavor that can't be read"],
  ["instance", SERVERS, "servers", server({ flavor: null }), "has no flavor"],
  ["volume", VOLUMES, "volumes", volume({ size: null }), "has no size"],
  ["image", IMAGES, "images", image({ size: null }), "has no size"],
  ["floating_ip", FLOATING_IPS, "floatingips", floatingIp({ floating_ip_address: null }), "has no address"],
  [
    "loadbalancer",
    LOAD_BALANCERS,
    "loadbalancers",
    loadBalancer({ pools: 3 }),
    "has no lists of listeners and pools",
  ],
])(
  "%s whose size can't be learnt is observed without one, and the type incomplete",
  async (type, what, collection, one, fault) => {
    const told = await observe(recorded({ [what]: only(collection, one), ...NO_HIDDEN }).env);
    expect(told.incomplete).toEqual([`${type}: ${type} x ${fault}`]);
    expect(told.resources.find((seen) => seen.resourceType === type)).toMatchObject({
      resourceId: "x",
      size: null,
    });
  },
);

test("a time that can't be read is a fault, and no time", async () => {
  const told = await observe(recorded({ [SERVERS]: only("servers", server({ updated: "yesterday" })) }).env);
  expect(told.incomplete).toEqual(["instance: instance x has an unreadable updated"]);
  expect(told.resources.find((one) => one.resourceType === "instance")).toMatchObject({ changedAt: null });
});

test("a server that ended, and whose end nova doesn't date, is left to its absence", async () => {
  const since = "2026-11-28T00:00:00Z";
  const query = new URLSearchParams({ all_tenants: "1", "changes-since": since, deleted: "true" });
  const ended = server({ "OS-EXT-STS:vm_state": "deleted", "OS-SRV-USG:terminated_at": null });
  const told = await observe(
    recorded({
      [SERVERS]: only("servers"),
      [`GET nova/v2.1/servers/detail?${query}`]: only("servers", ended),
    }).env,
    at(since),
  );
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "instance")).toEqual([]);
});
