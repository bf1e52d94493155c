/** What a listing does when it moves, loops, shrinks or breaks off while it is read. */
import { afterEach, expect, test } from "bun:test";
import { lines, observe } from "./observing.ts";
import { answered, type Replay, type Reply, recording, replay } from "./replay.ts";

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
const SECOND_OF_FLOATING_IPS =
  "GET neutron/v2.0/floatingips?limit=2&marker=429fc604-e8f9-4011-8068-24dc9f833944&sort_dir=asc&sort_key=id";

/** Answers the first of them first, and the last one for ever. */
function inTurn(...replies: readonly Reply[]): Reply {
  let turn = 0;
  return (request) => {
    const reply = replies[Math.min(turn++, replies.length - 1)] ?? "";
    return typeof reply === "string" ? answered(reply, "") : reply(request);
  };
}

/** A page of floating IPs, of which only what is read is there. */
function page(ids: readonly string[], next: string | null, more: object = {}): Reply {
  const floatingips = ids.map((id) => ({ id, project_id: "p", floating_ip_address: "203.0.113.1" }));
  const links =
    next === null ? [] : [{ rel: "next", href: `http://cloud.example:9696/v2.0/floatingips?${next}` }];
  return () => Response.json({ floatingips, floatingips_links: links, ...more });
}

const ids = (told: Awaited<ReturnType<typeof observe>>, type: string) => [
  ...new Set(lines(told, type).map((line) => line.split(" ", 1)[0])),
];

test("links lead to the catalog's address, whatever host they name", async () => {
  const { env, asked } = recorded({
    [FLOATING_IPS]: () =>
      Response.json({
        floatingips: [{ id: "a", project_id: "p", floating_ip_address: "203.0.113.1" }],
        floatingips_links: [{ rel: "next", href: "https://10.0.0.1/behind/the/proxy/floatingips?marker=a" }],
      }),
    "GET neutron/v2.0/floatingips?marker=a": page(["b"], null),
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  expect(ids(told, "floating_ip")).toEqual(["a", "b"]);
  expect(asked).toContain("GET neutron/v2.0/floatingips?marker=a");
});

test("what was asked for stays asked for, even where a link forgets it", async () => {
  const [first] = JSON.parse(recording("nova/servers-detail-all-2.47-limit2-p01").body).servers;
  const { env, asked } = recorded({
    [SERVERS]: () =>
      Response.json({ servers: [first], servers_links: [{ rel: "next", href: "/servers/detail?marker=m" }] }),
    [`${SERVERS}&marker=m`]: "nova/servers-detail-all-2.47-limit2-p02",
  });
  await observe(env);
  expect(asked).toContain(`${SERVERS}&marker=m`);
});

test("neutron answers a marker that is gone with page one again: the listing starts over", async () => {
  const { env, asked } = recorded({
    [FLOATING_IPS]: "neutron/floatingips-limit2-p01",
    [SECOND_OF_FLOATING_IPS]: inTurn(
      "neutron/floatingips-marker-of-a-released-address",
      "neutron/floatingips-limit2-p02",
    ),
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  expect(ids(told, "floating_ip")).toHaveLength(7);
  expect(asked.filter((what) => what === FLOATING_IPS)).toHaveLength(2);
});

test("a page that comes again for ever makes the type incomplete, and ends", async () => {
  const { env, asked } = recorded({
    [FLOATING_IPS]: "neutron/floatingips-limit2-p01",
    [SECOND_OF_FLOATING_IPS]: "neutron/floatingips-unknown-marker-not-refused",
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([
    expect.stringMatching(
      /^floating_ip: GET .*\/floatingips: a page came again, and again after starting over 3 times$/,
    ),
  ]);
  expect(ids(told, "floating_ip")).toEqual(["384e621f", "429fc604"]);
  expect(ids(told, "image")).not.toEqual([]);
  expect(asked.filter((what) => what === FLOATING_IPS)).toHaveLength(4);
});

for (const [service, refusal, first, next, rest, whole] of [
  [
    "nova",
    "nova/error-bad-marker",
    "nova/servers-detail-all-2.47-limit2-p01",
    "GET nova/v2.1/servers/detail?all_tenants=1&limit=2&marker=408c3c40-a577-470b-b2d1-2256228aa5e9",
    "nova/servers-detail-all-2.47-limit2-p02",
    { request: SERVERS, type: "instance", count: 8 },
  ],
  [
    "cinder",
    "cinder/error-marker-of-a-deleted-volume",
    "cinder/volumes-detail-all-limit2-p01",
    "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&limit=2&marker=3f4042ac-e55c-4f39-acfc-f323e1b1de7c",
    "cinder/volumes-detail-all-limit2-p02",
    { request: "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1", type: "volume", count: 7 },
  ],
  [
    "octavia",
    "octavia/error-unknown-marker",
    "octavia/loadbalancers-limit1-p01",
    "GET octavia/v2/lbaas/loadbalancers?limit=1&marker=6ce0aac9-6f2f-4ae7-a7f2-8708e96a2f2d",
    "octavia/loadbalancers-limit1-p02",
    { request: "GET octavia/v2/lbaas/loadbalancers", type: "loadbalancer", count: 2 },
  ],
] as const) {
  const uncounted: Record<string, Reply> = {
    ...(service === "cinder" ? { "GET cinder/v3/": () => Response.json({ versions: [] }) } : {}),
    [whole.request]: first,
  };

  test(`${service} refuses a marker that is gone: the listing starts over`, async () => {
    const { env } = recorded({ ...uncounted, [next]: inTurn(refusal, rest) });
    const told = await observe(env);
    expect(told.incomplete).toEqual([]);
    expect(ids(told, whole.type)).toHaveLength(whole.count);
  });

  test(`${service} refuses every marker: the type is incomplete`, async () => {
    const { env } = recorded({ ...uncounted, [next]: refusal });
    const told = await observe(env);
    expect(told.incomplete).toEqual([
      expect.stringMatching(new RegExp(`^${whole.type}: .*its marker was refused \\(40[04]\\), and again`)),
    ]);
  });
}

test("one item less after starting over is the one that is gone", async () => {
  const { env } = recorded({
    [FLOATING_IPS]: inTurn(page(["a", "b"], "marker=b"), page(["a"], null)),
    "GET neutron/v2.0/floatingips?marker=b": () => new Response("{}", { status: 404 }),
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  // It was there when the run began.
  expect(ids(told, "floating_ip")).toEqual(["a", "b"]);
});

test("a listing that is much shorter after starting over is read until two readings agree", async () => {
  const { env, asked } = recorded({
    [FLOATING_IPS]: inTurn(
      page(["a", "b", "c", "d"], "marker=d"),
      page(["a"], null),
      page(["a", "b", "c"], null),
    ),
    "GET neutron/v2.0/floatingips?marker=d": () => new Response("{}", { status: 404 }),
  });
  expect((await observe(env)).incomplete).toEqual([]);
  expect(asked.filter((what) => what === FLOATING_IPS)).toHaveLength(3);
});

test("a next link that was followed already ends the listing, incomplete", async () => {
  const { env, asked } = recorded({
    [FLOATING_IPS]: page(["a"], "marker=1"),
    "GET neutron/v2.0/floatingips?marker=1": page(["b"], "marker=2"),
    "GET neutron/v2.0/floatingips?marker=2": page(["c"], "marker=1"),
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([expect.stringContaining("its pages link in a circle")]);
  expect(ids(told, "floating_ip")).toEqual(["a", "b", "c"]);
  expect(asked.filter((what) => what.startsWith(FLOATING_IPS))).toHaveLength(3);
});

test("empty pages that link on and on end the listing, incomplete", async () => {
  let turn = 0;
  const endless: Reply = (request) => {
    const reply = page([], `marker=${++turn}`);
    return typeof reply === "string" ? answered(reply, "") : reply(request);
  };
  const markers = Array.from({ length: 50 }, (_, at) => [
    `GET neutron/v2.0/floatingips?marker=${at}`,
    endless,
  ]);
  const { env } = recorded({ [FLOATING_IPS]: endless, ...Object.fromEntries(markers) });
  expect((await observe(env)).incomplete).toEqual([
    expect.stringContaining("its pages are empty and don't end"),
  ]);
  expect(turn).toBeLessThan(20);
});

test("an item that moves to a later page is no page that came again", async () => {
  const { env } = recorded({
    [FLOATING_IPS]: page(["a", "b"], "marker=b"),
    "GET neutron/v2.0/floatingips?marker=b": page(["b", "c"], null),
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  expect(ids(told, "floating_ip")).toEqual(["a", "b", "c"]);
});

/** A page of volumes that tells how many there are in all. */
function counted(count: number, ids: readonly string[], next: string | null): Reply {
  const volumes = ids.map((id) => ({
    id,
    status: "available",
    size: 1,
    volume_type: "ssd",
    "os-vol-tenant-attr:tenant_id": "p",
  }));
  const links = next === null ? {} : { volumes_links: [{ rel: "next", href: `/v3/volumes/detail?${next}` }] };
  return () => Response.json({ volumes, count, ...links });
}

test("a listing whose count shrinks while it is read starts over", async () => {
  const { env } = recorded({
    [VOLUMES]: inTurn(counted(3, ["a", "b"], "marker=b"), counted(2, ["a", "c"], null)),
    "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&marker=b&with_count=True": counted(2, ["c"], null),
  });
  const told = await observe(env);
  expect(told.incomplete).toEqual([]);
  expect(ids(told, "volume")).toEqual(["a", "b", "c"]);
});

test("a listing whose count shrinks each time is incomplete", async () => {
  const { env } = recorded({
    [VOLUMES]: counted(9, ["a", "b"], "marker=b"),
    "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&marker=b&with_count=True": counted(3, ["c"], null),
  });
  expect((await observe(env)).incomplete).toEqual([
    expect.stringContaining("it shrank from 9 to 3 while it was read, and again"),
  ]);
});

test("a listing that gives less than it told of is incomplete", async () => {
  const { env } = recorded({ [VOLUMES]: counted(9, ["a", "b"], null) });
  expect((await observe(env)).incomplete).toEqual([
    expect.stringContaining("it told of 9 and gave 2, and again"),
  ]);
});

test("volumes that are made meanwhile are no fault", async () => {
  const { env } = recorded({
    [VOLUMES]: counted(2, ["a"], "marker=a"),
    "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&marker=a&with_count=True": counted(3, ["b"], null),
  });
  expect((await observe(env)).incomplete).toEqual([]);
});

const JSON_TYPE = { headers: { "content-type": "application/json" } };

for (const [what, reply, reason] of [
  ["HTML", () => new Response("<html>", { headers: { "content-type": "text/html" } }), "text/html, not JSON"],
  [
    "JSON that breaks off",
    () => new Response('{"floatingips": [{"id"', JSON_TYPE),
    "JSON that breaks off, or none",
  ],
  ["a list", () => Response.json([]), "JSON that is no object"],
  ["another object", () => Response.json({ networks: [] }), "no list of floatingips"],
  ["a list of texts", () => Response.json({ floatingips: ["a"] }), "something among its floatingips"],
  [
    "a link without an address",
    () => Response.json({ floatingips: [], floatingips_links: [{ rel: "next" }] }),
    "a next link without an address",
  ],
  [
    "no success",
    () => Response.json({ NeutronError: { message: "boom" } }, { status: 500 }),
    "answered 500: boom",
  ],
  ["a redirect", () => Response.redirect("http://elsewhere.example/", 302), "answered 302"],
] as const) {
  test(`an answer that is ${what} makes the type incomplete`, async () => {
    const { env } = recorded({ [FLOATING_IPS]: reply });
    const told = await observe(env);
    expect(told.incomplete).toEqual([expect.stringContaining(reason)]);
    expect(told.incomplete[0]).toStartWith("floating_ip: ");
    expect(ids(told, "instance")).toHaveLength(8);
  });
}
