/** tally clouds check, over the recorded cloud. */
import { afterEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderCheck } from "../../../src/commands/clouds.ts";
import { PLAIN } from "../../../src/commands/table.ts";
import { checkOpenStack } from "../../../src/reconcile/openstack/check.ts";
import { at } from "./observing.ts";
import { PASSWORD, type Replay, type Reply, replay, TOKEN } from "./replay.ts";

let cloud: Replay | null = null;
afterEach(async () => {
  await cloud?.stop();
  cloud = null;
});

const SINCE = "2026-11-16T09:00:00.000001Z";
const ENDED = `GET nova/v2.1/servers/detail?${new URLSearchParams({ all_tenants: "1", "changes-since": SINCE, deleted: "true" })}`;

function recorded(replies: Readonly<Record<string, Reply>> = {}): Replay {
  cloud = replay({ replies: { [ENDED]: "nova/servers-detail-all-deleted-true-changes-since", ...replies } });
  return cloud;
}

function check({ env }: Replay) {
  const config = { osCloud: "zed", includeOctavia: true };
  return checkOpenStack(config, env, at(SINCE), new AbortController().signal);
}

test("a good account: every type counted and timed, versions agreed on, nothing changed", async () => {
  const replayed = recorded();
  const found = await check(replayed);
  expect(found.problems).toEqual([]);
  expect(
    found.types.map(({ resourceType, living, projects, ended, version }) => [
      resourceType,
      living,
      projects,
      ended,
      version,
    ]),
  ).toEqual([
    ["instance", 8, 3, 14, "2.47 of 2.1 to 2.93"],
    ["volume", 7, 4, null, "3.45 of 3.0 to 3.70"],
    ["floating_ip", 7, 4, null, null],
    ["image", 5, 3, null, null],
    ["loadbalancer", 2, 2, null, null],
  ]);
  expect(found.volumeTypes).toEqual(["shared-ssd", "archive", "nowhere", "ssd", "__DEFAULT__"]);
  expect(replayed.asked.filter((what) => !what.startsWith("GET "))).toEqual(["POST keystone/v3/auth/tokens"]);

  const text = renderCheck("os-zed-1", found, PLAIN);
  expect(text).toContain(`entry zed of ${replayed.directory}/clouds.yaml`);
  expect(text).toContain("sees the servers of all projects");
  expect(text).toMatch(/instance +http:\S+\/nova\/v2\.1 +2\.47 of 2\.1 to 2\.93 +8 +3 +14 +\d+\.\d\d/);
  expect(text).toContain("os-zed-1: the account is good enough");
  expect(text).not.toContain(TOKEN);
});

test("an account that sees too little: the reason, in words", async () => {
  const first = "GET nova/v2.1/servers/detail?all_tenants=1&limit=1";
  const found = await check(recorded({ [first]: "nova/servers-detail-all-member-refused" }));
  expect(found.types).toEqual([]);
  expect(found.problems).toEqual([expect.stringContaining("may not list the servers of all projects")]);
  expect(renderCheck("os-zed-1", found, PLAIN)).toContain(
    "os-zed-1: the account is not good enough\n  - zed in ",
  );
});

test("a type that can't be read to its end is a problem, and the others are counted", async () => {
  const refused = "octavia/loadbalancers-without-octavia-role-refused";
  const found = await check(recorded({ "GET octavia/v2/lbaas/loadbalancers": refused }));
  expect(found.problems).toEqual([expect.stringMatching(/^loadbalancer: .*answered 403/)]);
  expect(found.types.map(({ living }) => living)).toEqual([8, 7, 7, 5, 0]);
  expect(renderCheck("os-zed-1", found, PLAIN)).toMatch(/loadbalancer .* incomplete/);
});

test("a type of which only the account's own is seen is pointed at", async () => {
  // The one resource lies in the project that the collector logs in to.
  const own = "8761b0356043449c9d75cbcaf4d1c5d8";
  const volumes = [
    { id: "v", status: "available", size: 1, volume_type: "ssd", "os-vol-tenant-attr:tenant_id": own },
  ];
  const request = "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&with_count=True";
  const found = await check(recorded({ [request]: () => Response.json({ volumes, count: 1 }) }));
  expect(found.problems).toEqual([]);
  expect(renderCheck("os-zed-1", found, PLAIN)).toContain(
    "Of volume only the account's own project is seen.",
  );
});

test("the command checks the clouds of the file, or one of them, and ends with 1 where one isn't good enough", async () => {
  // What ended in the last day is asked for by the clock, so by no recorded query.
  const replayed = replay({ otherwise: () => Response.json({ servers: [] }) });
  cloud = replayed;
  const file = join(replayed.directory, "tally-clouds.yaml");
  const entry = (name: string, osCloud: string) =>
    `  - {cloud: ${name}, platform: openstack, adapter: openstack, adapter_config: {os_cloud: ${osCloud}}}\n`;
  writeFileSync(file, `clouds:\n${entry("good", "zed")}${entry("bad", "nowhere")}`);
  const tally = async (...words: string[]) => {
    const started = Bun.spawn([process.execPath, "src/main.ts", "clouds", "check", ...words], {
      env: { PATH: process.env.PATH, ...replayed.env, TALLY_REPORTING_CLOUDS_CONFIG: file },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([started.stdout.text(), started.stderr.text()]);
    return { code: await started.exited, out, err };
  };
  const [both, one, unknown] = await Promise.all([tally(), tally("good"), tally("other")]);
  expect(both.code).toBe(1);
  expect(both.err).toBe("tally: not good enough: bad (see above)\n");
  expect(both.out).toContain("bad: the account is not good enough\n  - nowhere in ");
  expect(both.out).toContain("there is no such entry under `clouds`");
  expect(both.out + both.err).not.toContain(PASSWORD);
  expect([one.code, one.err]).toEqual([0, ""]);
  expect(one.out).toContain("good: the account is good enough");
  expect(unknown.code).toBe(1);
  expect(unknown.err).toContain("has no cloud other; it has: good, bad");
});
