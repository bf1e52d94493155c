import { describe, expect, test } from "bun:test";
import type { Life } from "../../src/demo/answers.ts";
import { humanDuration } from "../../src/demo/duration.ts";
import { curlLines, ingestTable, intervalTable, inventoryTable, lifeReport } from "../../src/demo/report.ts";
import { SAMPLE_EVENTS, TELLING_LIVES } from "../../src/demo/sample.ts";
import { type Instant, parseInstant } from "../../src/event/instant.ts";

const second = 1_000_000n;

function at(text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant === "string") throw new Error(instant);
  return instant;
}

describe("humanDuration", () => {
  test.each([
    [0n, "0 s"],
    [999_999n, "0 s"],
    [59n * second, "59 s"],
    [60n * second, "1 min"],
    [2_387n * second, "39 min 47 s"],
    [7_200n * second, "2 h"],
    [7_259n * second, "2 h"],
    [86_399n * second, "23 h 59 min"],
    [428_403n * second, "4 d 23 h"],
    [864_000n * second + 59n, "10 d"],
  ])("%s µs is %s", (micros, text) => {
    expect(humanDuration(micros)).toBe(text);
  });
});

test("the recording holds 138 events and the lives that are told of", () => {
  expect(SAMPLE_EVENTS).toHaveLength(138);
  for (const { resourceId } of TELLING_LIVES) {
    expect(SAMPLE_EVENTS.some((event) => event.includes(resourceId))).toBeTrue();
  }
});

test("ingestTable tells each post's fate", () => {
  const rejected = [{ event_id: "a", reason: "scope" }];
  expect(
    ingestTable([
      { what: "the recording", result: { accepted: 138, duplicates: 0, rejected: [] } },
      { what: "the same again", result: { accepted: 0, duplicates: 137, rejected } },
    ]),
  ).toBe(
    [
      "Posted          Accepted  Duplicates  Rejected",
      "──────────────  ────────  ──────────  ────────",
      "the recording        138           0         0",
      "the same again         0         137         1",
    ].join("\n"),
  );
});

test("inventoryTable counts by type and state, and in all", () => {
  const of = (resource_type: string, state: string) => ({ resource_type, state });
  expect(
    inventoryTable([
      of("volume", "in-use"),
      of("instance", "deleted"),
      of("volume", "available"),
      of("volume", "in-use"),
    ]),
  ).toBe(
    [
      "Type      State      Resources",
      "────────  ─────────  ─────────",
      "instance  deleted            1",
      "volume    available          1",
      "          in-use             2",
      "all                          4",
    ].join("\n"),
  );
});

const life: Life = {
  resource: { deleted_at: "2026-11-03T00:00:05.25Z" },
  events: [{}, {}, {}],
  intervals: [
    {
      from: "2026-11-02T09:00:34.278313Z",
      to: "2026-11-02T11:00:34.278313Z",
      state: "active",
      size: { flavor: "m1.small", vcpus: 1, ram_gb: 2, disk_gb: 20 },
      project_id: "1bc556d8a78249379a07b5a94c533e7a",
    },
    {
      from: "2026-11-02T11:00:34.278313Z",
      to: null,
      state: "available",
      size: { size_gb: 7, type: "09d83b35-c2c8-4553-9554-801da771a925" },
      project_id: "7fedb5827e4840fa9762598eeae19a44",
    },
  ],
  warnings: ["event_after_delete"],
};
const projects = new Map([["1bc556d8a78249379a07b5a94c533e7a", "acme"]]);

test("intervalTable tells how long each interval lasted, an open one until now", () => {
  expect(intervalTable(life, projects, at("2026-11-02T11:40:34.278313Z"))).toBe(
    [
      "From (UTC)           To                   Lasted  State      Size                                           Project",
      "───────────────────  ───────────────────  ──────  ─────────  ─────────────────────────────────────────────  ─────────",
      "2026-11-02 09:00:34  2026-11-02 11:00:34     2 h  active     1 vCPU, 2 GB RAM, 20 GB disk, flavor m1.small  acme",
      "2026-11-02 11:00:34  (open)               40 min  available  7 GB, type 09d83b35…                           7fedb582…",
    ].join("\n"),
  );
});

test("an interval that begins after now has lasted for nothing yet", () => {
  expect(intervalTable(life, projects, at("2026-11-01T00:00:00Z")).split("\n")[3]).toContain(
    "  0 s  available",
  );
});

test("where one project owned it all along, it has no column", () => {
  const [first] = life.intervals;
  if (first === undefined) throw new Error("no interval");
  expect(
    intervalTable({ ...life, intervals: [first] }, projects, at("2026-11-03T00:00:00Z")).split("\n")[2],
  ).toBe(
    "2026-11-02 09:00:34  2026-11-02 11:00:34     2 h  active  1 vCPU, 2 GB RAM, 20 GB disk, flavor m1.small",
  );
});

test("lifeReport names the resource, the delete and the warnings", () => {
  const telling = { resourceType: "instance", resourceId: "i-1", title: "A life" };
  const lines = lifeReport(telling, life, projects, at("2026-11-03T00:00:00Z")).split("\n");
  expect(lines.slice(0, 3)).toEqual(["A life", "instance i-1 of acme and 7fedb582…, 3 events", ""]);
  expect(lines.slice(-2)).toEqual([
    "Deleted 2026-11-03 00:00:05. Nothing is billed after that.",
    "Warning: event_after_delete",
  ]);
});

test("curl lines come back from a shell as the words they were made of", () => {
  const access = { url: "http://127.0.0.1:1", ingestToken: "tly_i_1", adminToken: "tly_a_1" };
  const telling = { resourceType: "instance", resourceId: "it's a/server", title: "" };
  const lines = curlLines(access, "internal-1", `{"id":"it's"}`, telling).map(({ line }) => line);
  const words = lines.map((line) => {
    const { stdout } = Bun.spawnSync(["sh", "-c", `curl() { printf '%s\\n' "$@"; }\n${line}`]);
    return stdout.toString().trimEnd().split("\n");
  });
  expect(words).toEqual([
    [
      "-sS",
      "-H",
      "Authorization: Bearer tly_a_1",
      "http://127.0.0.1:1/api/v1/resources?resource_type=instance",
    ],
    [
      "-sS",
      "-H",
      "Authorization: Bearer tly_a_1",
      "http://127.0.0.1:1/api/v1/resources/os-zed-1/instance/it's%20a%2Fserver/lifecycle",
    ],
    [
      "-sS",
      "-H",
      "Authorization: Bearer tly_i_1",
      "-H",
      "Content-Type: application/json",
      "-d",
      `{"id":"it's"}`,
      "http://127.0.0.1:1/api/v1/events",
    ],
    [
      "-sS",
      "-X",
      "POST",
      "-H",
      "Authorization: Bearer internal-1",
      "http://127.0.0.1:1/internal/sync/os-zed-1",
    ],
    ["-sS", "http://127.0.0.1:1/metrics"],
  ]);
});
