/** Where a cloud's services are: names, regions, interfaces and addresses in the catalog of a token. */
import { afterEach, expect, test } from "bun:test";
import { lines, observe, refusalOf } from "./observing.ts";
import { type Replay, type ReplayOptions, replay, tokenWith, usualCloudsYaml } from "./replay.ts";

let cloud: Replay | null = null;
afterEach(async () => {
  await cloud?.stop();
  cloud = null;
});

function recorded(options: ReplayOptions = {}): Replay {
  cloud = replay(options);
  return cloud;
}

const LOGIN = "POST keystone/v3/auth/tokens";

test("a catalog without cinder makes the volumes incomplete", async () => {
  const without = tokenWith((token) => {
    token.catalog = catalogOf(token).filter(({ type }) => type !== "volumev3");
  });
  const seen = await observe(recorded({ replies: { [LOGIN]: without } }).env);
  expect(seen.incomplete).toEqual([
    "volume: the catalog has no public endpoint of block-storage in region RegionOne",
  ]);
});

for (const alias of ["block-storage", "block-store"]) {
  test(`cinder may be called ${alias}`, async () => {
    const renamed = tokenWith((token) => {
      for (const service of catalogOf(token)) if (service.type === "volumev3") service.type = alias;
    });
    const seen = await observe(recorded({ replies: { [LOGIN]: renamed } }).env);
    expect(lines(seen, "volume")).toHaveLength(7);
  });
}

interface Service {
  type: string;
  endpoints: { interface: string; region: string; region_id: string; url: string }[];
}

/** The catalog of a token, to be changed. */
function catalogOf(token: Record<string, unknown>): Service[] {
  const catalog = token.catalog;
  if (!Array.isArray(catalog)) throw new Error("the recording has no catalog");
  return catalog;
}

/** Only here do the internal addresses lead to the services; and a second region leads nowhere. */
const twoRegions = tokenWith((token) => {
  for (const service of catalogOf(token)) {
    for (const endpoint of service.endpoints) {
      if (endpoint.interface !== "internal") endpoint.url = "http://127.0.0.1:1/wrong";
    }
    service.endpoints.unshift(
      ...service.endpoints.map((endpoint) => ({
        ...endpoint,
        url: "http://127.0.0.1:1/wrong",
        region: "RegionTwo",
        region_id: "RegionTwo",
      })),
    );
  }
});

test("region and interface choose among the endpoints; OS_REGION_NAME and OS_INTERFACE override them", async () => {
  const inFile = recorded({
    replies: { [LOGIN]: twoRegions },
    cloudsYaml: (url) => `${usualCloudsYaml(url)}    interface: internal\n`,
  });
  expect((await observe(inFile.env)).incomplete).toEqual([]);
  await inFile.stop();

  const inEnv = recorded({
    replies: { [LOGIN]: twoRegions },
    cloudsYaml: (url) => `${usualCloudsYaml(url).replace("RegionOne", "RegionTwo")}    interface: admin\n`,
  });
  const env = { ...inEnv.env, OS_REGION_NAME: "RegionOne", OS_INTERFACE: "internal" };
  expect((await observe(env)).incomplete).toEqual([]);
});

test("several regions and no region_name: the run is refused rather than one guessed", async () => {
  const { env } = recorded({
    replies: { [LOGIN]: twoRegions },
    cloudsYaml: (url) => usualCloudsYaml(url).replace("    region_name: RegionOne\n", ""),
  });
  expect(await refusalOf(observe(env))).toContain(
    "the cloud has the regions RegionOne, RegionTwo: set region_name",
  );
});

test("a Keystone in a region of its own makes no second region", async () => {
  const apart = tokenWith((token) => {
    for (const { type, endpoints } of catalogOf(token)) {
      if (type === "identity") for (const endpoint of endpoints) endpoint.region_id = "global";
    }
  });
  const { env } = recorded({
    replies: { [LOGIN]: apart },
    cloudsYaml: (url) => usualCloudsYaml(url).replace("    region_name: RegionOne\n", ""),
  });
  expect((await observe(env)).incomplete).toEqual([]);
});

test("a region that the catalog doesn't have is refused with those that it has", async () => {
  const { env } = recorded();
  expect(await refusalOf(observe({ ...env, OS_REGION_NAME: "RegionNine" }))).toContain(
    "no public endpoints in region RegionNine; it has: RegionOne",
  );
});

test("addresses without a version, or with a slash at the end, lead to the same", async () => {
  const bare = tokenWith((token, origin) => {
    for (const { type, endpoints } of catalogOf(token)) {
      for (const endpoint of endpoints) {
        if (type === "compute") endpoint.url = `${origin}/nova`;
        else if (type === "volumev3") endpoint.url = `${origin}/cinder/`;
        else if (type === "network") endpoint.url = `${origin}/neutron/v2.0/`;
        else if (type === "image") endpoint.url = `${origin}/glance/v2/`;
        else if (type === "load-balancer") endpoint.url = `${origin}/octavia/v2`;
      }
    }
  });
  expect((await observe(recorded({ replies: { [LOGIN]: bare } }).env)).incomplete).toEqual([]);
});
