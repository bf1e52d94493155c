/** Every recorded listing, against what was really done to the cloud that it was recorded from. */
import { afterEach, expect, test } from "bun:test";
import { formatInstant } from "../../../src/event/instant.ts";
import { openStackAdapter } from "../../../src/reconcile/openstack/adapter.ts";
import { at, HASTY, lines, observe } from "./observing.ts";
import { type Replay, type ReplayOptions, recording, replay } from "./replay.ts";

let cloud: Replay | null = null;
afterEach(async () => {
  await cloud?.stop();
  cloud = null;
});

function recorded(options: ReplayOptions = {}): Replay {
  cloud = replay(options);
  return cloud;
}

const SERVERS = "GET nova/v2.1/servers/detail?all_tenants=1";
const VOLUMES = "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&with_count=True";
const IMAGES = "GET glance/v2/images?member_status=all&visibility=all";
const HIDDEN_IMAGES = "GET glance/v2/images?member_status=all&os_hidden=true&visibility=all";
const FLOATING_IPS = "GET neutron/v2.0/floatingips";
const LOAD_BALANCERS = "GET octavia/v2/lbaas/loadbalancers";

const TINY = '{"vcpus":1,"ram_gb":0.5,"disk_gb":1,"flavor":"m1.tiny"}';
const SMALL = '{"vcpus":1,"ram_gb":2,"disk_gb":20,"flavor":"m1.small"}';
const MEDIUM = '{"vcpus":2,"ram_gb":4,"disk_gb":40,"flavor":"m1.medium"}';
const LARGE = '{"vcpus":4,"ram_gb":8,"disk_gb":80,"flavor":"m1.large"}';
const ODD = '{"vcpus":1,"ram_gb":1.5,"disk_gb":0,"flavor":"r1.odd"}';
const SPECIAL = '{"vcpus":6,"ram_gb":12,"disk_gb":100,"flavor":"acme.special"}';
// Two flavors of one name: the first, with ten of its forty gigabytes ephemeral, was deleted on 12 November.
const LEGACY_OF_OLD = '{"vcpus":2,"ram_gb":3,"disk_gb":40,"flavor":"c1.legacy"}';
const LEGACY_OF_NEW = '{"vcpus":4,"ram_gb":6,"disk_gb":60,"flavor":"c1.legacy"}';

const SERVERS_NOW = [
  `257fe5d3 acme active ${SPECIAL} created 2026-10-28T10:00:18Z`,
  `32b0d769 zürich active ${TINY} created 2026-10-29T09:00:17Z`,
  `35b967c0 acme shutoff ${MEDIUM} created 2026-11-27T09:00:02Z`,
  `408c3c40 acme error ${ODD} created 2026-11-28T09:00:02Z`,
  `9555b446 zürich active ${SMALL} created 2026-11-30T20:00:02Z`,
  `a26b8d8e acme active ${LEGACY_OF_NEW} created 2026-11-13T08:30:20Z`,
  `aa5d1057 acme active ${LARGE} created 2026-10-28T10:05:00Z`,
  `e83373f9 partners active ${TINY} created 2026-10-30T12:00:20Z`,
];

const VOLUMES_NOW = [
  `3f4042ac acme available {"size_gb":4,"type":"ssd"} created 2026-11-16T09:20:00Z`,
  `45674053 partners available {"size_gb":2,"type":"ssd"} created 2026-10-30T12:05:03Z`,
  `588402fa umbra available {"size_gb":3,"type":"ssd"} created 2026-10-30T11:05:04Z`,
  `5b711d88 zürich available {"size_gb":7,"type":"ssd"} created 2026-11-14T15:00:02Z`,
  `66e52749 acme in-use {"size_gb":3,"type":"shared-ssd"} created 2026-11-16T09:40:00Z`,
  `8583d822 acme available {"size_gb":9,"type":"__DEFAULT__"} created 2026-11-10T09:10:39Z`,
  `db990eb6 zürich available {"size_gb":6,"type":"__DEFAULT__"} created 2026-10-29T09:10:02Z`,
];

// 262144 / 1024³, and so on: bytes to gigabytes, to the last digit.
const IMAGES_NOW = [
  '048c9e9a acme active {"size_gb":0.0000019073486328125} created 2026-12-01T06:20:00Z',
  '0797db8d admin active {"size_gb":0.000244140625} created 2026-10-26T10:00:01Z',
  '44586d3e zürich active {"size_gb":0.000003814697265625} created 2026-11-18T11:00:00Z',
  '510a90f7 zürich active {"size_gb":0.00006103515625} created 2026-11-05T12:00:06Z',
  'a585b0e5 admin active {"size_gb":0.0001220703125} created 2026-10-26T10:10:00Z',
];

/** When each floating IP was allocated, by the notification of it: the API's time is up to a second older. */
const FLOATING_IPS_NOW: Readonly<Record<string, string>> = {
  "384e621f acme": "2026-11-08T13:00:10.546Z",
  "429fc604 umbra": "2026-10-30T11:06:04.561Z",
  "4c221c73 zürich": "2026-10-29T09:20:03.665Z",
  "6201df6a zürich": "2026-12-01T01:40:02.226Z",
  "74d81ba5 acme": "2026-11-21T12:10:01.178Z",
  "a4973916 zürich": "2026-11-20T10:00:01.402Z",
  "ea0f76b4 partners": "2026-10-30T12:06:04.427Z",
};

const LOAD_BALANCERS_NOW = [
  '3b4dd82e acme active {"listeners":0,"pools":0} created 2026-11-29T11:00:01Z',
  '6ce0aac9 zürich active {"listeners":0,"pools":0} created 2026-11-05T11:00:02Z',
];

test("all five services, as they were on the first of December at 15:00", async () => {
  const told = await observe(recorded().env);
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "instance")).toEqual(SERVERS_NOW);
  expect(lines(told, "volume")).toEqual(VOLUMES_NOW);
  expect(lines(told, "image")).toEqual(IMAGES_NOW);
  expect(lines(told, "loadbalancer")).toEqual(LOAD_BALANCERS_NOW);
  const allocated = lines(told, "floating_ip").map((line) => {
    const [, who = "", created = ""] = /^(.*) active \{"ip_version":4\} created (.*)$/.exec(line) ?? [];
    const age = at(FLOATING_IPS_NOW[who] ?? "0001-01-01T00:00:00Z") - at(created);
    return `${who} ${age >= 0n && age < 2_000_000n ? "as told" : created}`;
  });
  expect(allocated).toEqual(Object.keys(FLOATING_IPS_NOW).map((who) => `${who} as told`));
});

test("page by page, with a last page that is empty, partly filled or full", async () => {
  const { env, asked } = recorded({
    replies: {
      [SERVERS]: "nova/servers-detail-all-2.47-limit2-p01",
      [FLOATING_IPS]: "neutron/floatingips-limit2-p01",
      [IMAGES]: "glance/images-limit2-p01",
      [HIDDEN_IMAGES]: "glance/images-hidden",
      [LOAD_BALANCERS]: "octavia/loadbalancers-limit1-p01",
      // This recording's pages are asked for under its own order; what else was asked for stays in the query.
      ...pagesOfImages(),
    },
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "instance")).toEqual(SERVERS_NOW);
  expect(lines(told, "floating_ip")).toHaveLength(7);
  // The hidden one is not among the pages.
  expect(lines(told, "image")).toEqual(IMAGES_NOW.filter((line) => !line.startsWith("44586d3e")));
  expect(lines(told, "loadbalancer")).toEqual(LOAD_BALANCERS_NOW);
  expect(asked.filter((what) => what.includes("marker="))).toHaveLength(4 + 3 + 3 + 2);
});

function pagesOfImages(): Record<string, string> {
  const pages = ["glance/images-limit2-p02", "glance/images-limit2-p03", "glance/images-limit2-p04"];
  return Object.fromEntries(
    pages.map((name) => {
      const query = new URL(recording(name).path, "http://cloud.example").searchParams;
      query.set("member_status", "all");
      query.set("visibility", "all");
      query.sort();
      return [`GET glance/v2/images?${query}`, name];
    }),
  );
}

test("volumes page by page, where cinder doesn't count them", async () => {
  const { env } = recorded({
    replies: {
      "GET cinder/v3/": () => Response.json({ versions: [{ id: "v3.0", status: "CURRENT" }] }),
      "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1": "cinder/volumes-detail-all-limit2-p01",
    },
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "volume")).toEqual(VOLUMES_NOW);
});

test("on the fifteenth of November: the old flavor of a reused name, a retyped volume, data in an image", async () => {
  const { env } = recorded({
    replies: {
      [SERVERS]: "nova/mid-month-servers-detail-all",
      [VOLUMES]: "cinder/mid-month-volumes-detail-all",
      [FLOATING_IPS]: "neutron/mid-month-floatingips",
      [IMAGES]: "glance/mid-month-images",
      [HIDDEN_IMAGES]: "glance/images-hidden",
      [LOAD_BALANCERS]: "octavia/mid-month-loadbalancers",
    },
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "instance")).toEqual([
    `08a5378c acme active ${ODD} created 2026-11-10T09:00:25Z`,
    `257fe5d3 acme active ${MEDIUM} created 2026-10-28T10:00:18Z`,
    `32b0d769 zürich active ${TINY} created 2026-10-29T09:00:17Z`,
    `455b553e umbra active ${LEGACY_OF_OLD} created 2026-10-30T11:00:11Z`,
    `571e28be acme active ${MEDIUM} created 2026-11-02T16:00:12Z`,
    `621b14ba acme active ${TINY} created 2026-11-01T00:00:21Z`,
    `a26b8d8e acme active ${LEGACY_OF_NEW} created 2026-11-13T08:30:20Z`,
    `aa5d1057 acme active ${LARGE} created 2026-10-28T10:05:00Z`,
    `e458554a acme active ${LEGACY_OF_OLD} created 2026-11-03T08:00:09Z`,
    `e83373f9 partners active ${TINY} created 2026-10-30T12:00:20Z`,
    `ec484c86 acme active ${ODD} created 2026-11-10T09:10:09Z`,
  ]);
  expect(lines(told, "volume")).toEqual([
    '45674053 partners available {"size_gb":2,"type":"ssd"} created 2026-10-30T12:05:03Z',
    '588402fa umbra available {"size_gb":3,"type":"ssd"} created 2026-10-30T11:05:04Z',
    '5b711d88 zürich available {"size_gb":7,"type":"ssd"} created 2026-11-14T15:00:02Z',
    '8583d822 acme in-use {"size_gb":9,"type":"__DEFAULT__"} created 2026-11-10T09:10:39Z',
    '90cac7bf acme in-use {"size_gb":8,"type":"__DEFAULT__"} created 2026-11-10T09:00:44Z',
    'a202ddf4 acme available {"size_gb":15,"type":"archive"} created 2026-10-28T10:10:04Z',
    'baa477cb acme available {"size_gb":1,"type":"ssd"} created 2026-11-01T00:00:38Z',
    'db990eb6 zürich available {"size_gb":5,"type":"__DEFAULT__"} created 2026-10-29T09:10:02Z',
  ]);
  expect(lines(told, "image")).toEqual([
    '0797db8d admin active {"size_gb":0.000244140625} created 2026-10-26T10:00:01Z',
    // 123457 bytes: the form that collectors write, too.
    '0a95d522 acme active {"size_gb":0.00011497829109430313} created 2026-11-02T17:00:04Z',
    '510a90f7 acme active {"size_gb":0.00006103515625} created 2026-11-05T12:00:06Z',
    'a585b0e5 admin active {"size_gb":0.0001220703125} created 2026-10-26T10:10:00Z',
  ]);
  expect(lines(told, "floating_ip").map((line) => line.split(" ", 1)[0])).toEqual([
    "384e621f",
    "429fc604",
    "4c221c73",
    "750692a9",
    "ea0f76b4",
  ]);
  expect(lines(told, "loadbalancer")).toEqual([
    '6ce0aac9 zürich active {"listeners":0,"pools":0} created 2026-11-05T11:00:02Z',
    'f6169201 acme active {"listeners":1,"pools":1} created 2026-11-03T09:00:02Z',
  ]);
});

test("at the end of the month", async () => {
  const { env } = recorded({
    replies: {
      [SERVERS]: "nova/month-end-servers-detail-all",
      [VOLUMES]: "cinder/month-end-volumes-detail-all",
      [FLOATING_IPS]: "neutron/month-end-floatingips",
      [IMAGES]: "glance/month-end-images",
      [LOAD_BALANCERS]: "octavia/month-end-loadbalancers",
      "GET cinder/v3/PROJECT/types?is_public=None": "cinder/month-end-types",
    },
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  // The second web-1 was stopped and resized only on the first of December.
  expect(lines(told, "instance")).toEqual(
    SERVERS_NOW.map((line) =>
      line.startsWith("35b967c0") ? `35b967c0 acme active ${SMALL} created 2026-11-27T09:00:02Z` : line,
    ),
  );
  // So was `multi` attached.
  expect(lines(told, "volume")).toEqual(VOLUMES_NOW.map((line) => line.replace("in-use", "available")));
  expect(lines(told, "image")).toEqual(IMAGES_NOW.filter((line) => !line.startsWith("048c9e9a")));
  expect(lines(told, "floating_ip")).toHaveLength(6);
  expect(lines(told, "loadbalancer")).toEqual(LOAD_BALANCERS_NOW);
});

test.each(["member", "reader"])(
  "what a %s is shown is read like everything: nothing in it says that it is narrowed",
  async (who) => {
    const { env } = recorded({
      replies: {
        [VOLUMES]: `cinder/volumes-detail-all-${who}-narrowed`,
        [FLOATING_IPS]: `neutron/floatingips-${who}-narrowed`,
        [IMAGES]: `glance/images-${who}-narrowed`,
        [HIDDEN_IMAGES]: "glance/images-hidden",
      },
    });
    const told = await observe(env);
    expect(told.incomplete).toEqual([]);
    const acme = (all: readonly string[]) => all.filter((line) => line.includes(" acme "));
    expect(lines(told, "volume")).toEqual(acme(VOLUMES_NOW));
    expect(lines(told, "floating_ip")).toHaveLength(
      acme(Object.keys(FLOATING_IPS_NOW).map((key) => `${key} `)).length,
    );
    // Public images are everybody's to see.
    expect(lines(told, "image")).toEqual(IMAGES_NOW.filter((line) => / acme | admin /.test(line)));
  },
);

test("a newer microversion makes no difference", async () => {
  const told = await observe(recorded({ replies: { [SERVERS]: "nova/servers-detail-all-2.93" } }).env);
  expect(lines(told, "instance")).toEqual(SERVERS_NOW);
});

test("servers that ended are dated by terminated_at, which `updated` moves away from", async () => {
  const since = "2026-11-16T09:00:00.000001Z";
  const { env } = recorded({
    replies: {
      [SERVERS]: () => Response.json({ servers: [] }),
      [`GET nova/v2.1/servers/detail?${new URLSearchParams({ all_tenants: "1", "changes-since": since, deleted: "true" })}`]:
        "nova/servers-detail-all-deleted-true-changes-since",
    },
  });
  const told = await observe(env, at(since));
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "instance")).toEqual([
    "0107320d acme ended 2026-12-01T03:40:02Z",
    "08a5378c acme ended 2026-11-23T08:00:02Z",
    "1255c449 zürich ended 2026-12-01T08:00:10Z",
    "1a15cce1 zürich ended 2026-11-18T07:20:00Z",
    "36963af9 zürich ended 2026-12-01T02:30:02Z",
    "455b553e umbra ended 2026-11-25T10:00:03Z",
    "571e28be acme ended 2026-11-17T20:00:03Z",
    "621b14ba acme ended 2026-12-01T00:00:01Z",
    "7eadbf83 zürich ended 2026-11-18T06:00:02Z",
    "a6cc9fdc acme ended 2026-12-01T04:50:01Z",
    "b982b675 acme ended 2026-11-22T10:00:02Z",
    "c8c82ab0 acme ended 2026-12-01T04:10:00Z",
    "e458554a acme ended 2026-11-28T12:00:02Z",
    "ec484c86 acme ended 2026-11-23T08:10:01Z",
  ]);
  const batch = told.resources.find(({ resourceId }) => resourceId.startsWith("e458554a"));
  expect(batch).toMatchObject({ state: null, size: null, inTransition: false, changedAt: null });
});

test("those that ended come in pages, too", async () => {
  const since = "2026-11-28T00:00:00Z";
  const first = new URLSearchParams({ all_tenants: "1", "changes-since": since, deleted: "true" });
  const { env } = recorded({
    replies: {
      [SERVERS]: () => Response.json({ servers: [] }),
      [`GET nova/v2.1/servers/detail?${first}`]:
        "nova/servers-detail-all-deleted-true-changes-since-limit2-p01",
    },
  });
  expect(lines(await observe(env, at(since)), "instance").map((line) => line.slice(0, 8))).toEqual([
    "0107320d",
    "1255c449",
    "36963af9",
    "455b553e",
    "621b14ba",
    "a6cc9fdc",
    "c8c82ab0",
    "e458554a",
  ]);
});

test("a soft-deleted server is in the listing of the ended only, and is observed as it is", async () => {
  const since = "2026-12-01T18:00:00Z";
  const query = new URLSearchParams({ all_tenants: "1", "changes-since": since, deleted: "true" });
  const { env } = recorded({
    replies: {
      [SERVERS]: "nova/soft-deleted-server-servers-detail-all",
      [`GET nova/v2.1/servers/detail?${query}`]: "nova/soft-deleted-server-servers-detail-all-deleted-true",
    },
  });
  expect(lines(await observe(env, at(since)), "instance")).toEqual([
    `7241f891 acme soft-delete ${MEDIUM} created 2026-12-01T16:00:03Z`,
  ]);
});

test("a first run asks for none that ended", async () => {
  const { env, asked } = recorded();
  await observe(env, null);
  expect(asked.filter((what) => what.includes("deleted="))).toEqual([]);
});

test("names outside of ASCII arrive as they are", async () => {
  const told = await observe(recorded().env);
  const named = (id: string) => told.resources.find((one) => one.resourceId.startsWith(id))?.provider.name;
  expect(named("32b0d769")).toBe('研究-Knoten-1 ☃ "x"');
  expect(named("257fe5d3")).toBe('web-1 "prod" <&> ☃');
  expect(named("44586d3e")).toBe("community ☃");
  expect(named("6ce0aac9")).toBe("lb-研究");
});

test("when each changed is told, whatever form its service writes times in", async () => {
  const told = await observe(recorded().env);
  const changed = (id: string) => {
    const { changedAt = null } = told.resources.find((one) => one.resourceId.startsWith(id)) ?? {};
    return changedAt === null ? null : formatInstant(changedAt);
  };
  expect(changed("9555b446")).toBe("2026-11-30T20:00:06Z"); // nova: 2026-11-30T20:00:06Z
  expect(changed("66e52749")).toBe("2026-12-01T01:20:01Z"); // cinder: 2026-12-01T01:20:01.000000
  expect(changed("429fc604")).toBe("2026-11-25T10:00:02Z"); // neutron: 2026-11-25T10:00:02Z
  expect(changed("0797db8d")).toBe("2026-10-26T10:05:00Z"); // glance: 2026-10-26T10:05:00Z
  expect(changed("6ce0aac9")).toBe("2026-12-01T06:40:01Z"); // octavia: 2026-12-01T06:40:01
});

test("the names of volume types, private ones too, in one page or in several", async () => {
  const expected = [
    ["09d83b35-c2c8-4553-9554-801da771a925", "ssd"],
    ["6201dfa2-8811-4d58-8335-27f91a371d62", "nowhere"],
    ["8c4bb727-7016-4294-9964-bbe843d356f1", "archive"],
    ["ace5cf2a-f45f-4067-b34b-a5e38536492e", "shared-ssd"],
    ["b9798d38-86ab-4174-9f32-e8d75760af79", "__DEFAULT__"],
  ].map(([value = "", name = ""]) => ({ resourceType: "volume", member: "type", value, name }));
  for (const types of ["cinder/types-is-public-none", "cinder/types-limit2-p01"]) {
    const { env } = recorded({ replies: { "GET cinder/v3/PROJECT/types?is_public=None": types } });
    const adapter = openStackAdapter({ osCloud: "zed", includeOctavia: false }, env, HASTY);
    const session = await adapter.open({ signal: new AbortController().signal });
    const names = await session.sizeNames();
    expect([...names].sort((a, b) => (a.value < b.value ? -1 : 1))).toEqual(expected);
    await cloud?.stop();
    cloud = null;
  }
});

test("nothing but GETs, apart from the login", async () => {
  const { env, asked } = recorded();
  await observe(env, at("2026-11-28T00:00:00Z"));
  expect(asked.filter((what) => !what.startsWith("GET "))).toEqual(["POST keystone/v3/auth/tokens"]);
});
