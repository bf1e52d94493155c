/** Microversions: which are asked for, and how sizes are learnt from a nova that is too old for them. */
import { afterEach, expect, test } from "bun:test";
import { lines, observe } from "./observing.ts";
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

/** A listing of these alone. */
const only = (collection: string, ...items: readonly unknown[]): Reply => {
  return () => Response.json({ [collection]: items });
};

// Before microversion 2.47, a server only names its flavor.
const OLD_NOVA: Readonly<Record<string, Reply>> = {
  "GET nova/v2.1/": () => Response.json({ version: { id: "v2.1", version: "2.42", min_version: "2.1" } }),
  [SERVERS]: "nova/servers-detail-all-no-microversion",
  "GET nova/v2.1/flavors/detail?is_public=None": "nova/flavors-detail-no-microversion",
};

test("an older nova's flavors are looked up by id, private ones too, in one listing", async () => {
  const older = recorded(OLD_NOVA);
  const byId = lines(await observe(older.env), "instance");
  expect(older.asked.filter((what) => what.includes("flavors"))).toEqual([
    "GET nova/v2.1/flavors/detail?is_public=None",
  ]);
  expect(
    older.headers.every(
      (headers) =>
        !headers.has("openstack-api-version") || headers.get("openstack-api-version")?.startsWith("volume"),
    ),
  ).toBe(true);
  await older.stop();
  const embedded = recorded({});
  expect(byId).toEqual(lines(await observe(embedded.env), "instance"));
});

test("an older nova's flavors come in pages, too", async () => {
  const older = recorded({
    ...OLD_NOVA,
    "GET nova/v2.1/flavors/detail?is_public=None": "nova/flavors-detail-limit3-p01",
  });
  const told = await observe(older.env);
  expect(told.incomplete).toEqual([]);
  expect(lines(told, "instance")).toHaveLength(8);
});

test("an older nova's flavor that was deleted is a size that nobody knows, and the type incomplete", async () => {
  const servers = JSON.parse(recording("nova/servers-detail-all-no-microversion").body).servers;
  const gone = { ...servers[0], id: "orphan", flavor: { id: "dcadf51f-b375-4834-bb51-d240a59252ff" } };
  const told = await observe(recorded({ ...OLD_NOVA, [SERVERS]: only("servers", gone, servers[1]) }).env);
  expect(told.incomplete).toEqual(["instance: instance orphan has a flavor that is gone"]);
  expect(told.resources.find((one) => one.resourceId === "orphan")).toMatchObject({
    size: null,
    state: "active",
  });
});

test("an older nova whose flavors can't be listed makes the type incomplete", async () => {
  const told = await observe(
    recorded({
      ...OLD_NOVA,
      "GET nova/v2.1/flavors/detail?is_public=None": () => new Response("", { status: 500 }),
    }).env,
  );
  expect(told.incomplete).toEqual([expect.stringMatching(/^instance: .*flavors\/detail: answered 500$/)]);
});

test("microversions are asked for where the service has them: 2.47 of nova, 3.45 of cinder", async () => {
  const { env, asked, headers } = recorded({});
  await observe(env);
  const version = (what: string) => headers[asked.indexOf(what)]?.get("openstack-api-version");
  expect(version(SERVERS)).toBe("compute 2.47");
  expect(version(VOLUMES)).toBe("volume 3.45");
});

test("a nova that begins with a later microversion is asked for that one", async () => {
  const { env, asked, headers } = recorded({
    "GET nova/v2.1/": () => Response.json({ version: { id: "v2.1", version: "2.99", min_version: "2.60" } }),
  });
  await observe(env);
  expect(headers[asked.indexOf(SERVERS)]?.get("openstack-api-version")).toBe("compute 2.60");
});
