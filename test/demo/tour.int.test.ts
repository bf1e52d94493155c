import { afterAll, beforeAll, expect, test } from "bun:test";
import { PLAIN } from "../../src/commands/table.ts";
import { tour } from "../../src/demo/tour.ts";
import { parseInstant } from "../../src/event/instant.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
let printed = "";

beforeAll(async () => {
  server = await testServer();
  const now = parseInstant("2026-12-02T00:00:00Z");
  if (typeof now === "string") throw new Error(now);
  const access = {
    url: server.url,
    ingestToken: await server.credentials.ingest("openstack", "os-zed-1"),
    adminToken: server.credentials.admin,
  };
  await tour(access, now, PLAIN, (text) => {
    printed += `${text}\n`;
  });
}, 60_000);

afterAll(async () => {
  await server.stop();
});

/** The lines from the one that holds `first`, `count` of them. */
function lines(first: string, count: number): string[] {
  const all = printed.split("\n");
  const at = all.findIndex((line) => line.includes(first));
  return all.slice(at, at + count);
}

test("the recording is stored once and then known", () => {
  expect(lines("Posted", 4)).toEqual([
    "Posted          Accepted  Duplicates  Rejected",
    "──────────────  ────────  ──────────  ────────",
    "the recording        138           0         0",
    "the same again         0         138         0",
  ]);
});

// Counted from the recording: what each resource's last event says, stragglers aside.
test("the inventory by type and state", () => {
  expect(lines("Type ", 14)).toEqual([
    "Type          State      Resources",
    "────────────  ─────────  ─────────",
    "floating_ip   active             7",
    "              deleted            2",
    "image         active             5",
    "              deleted            4",
    "instance      active             6",
    "              deleted           18",
    "              shutoff            1",
    "loadbalancer  active             2",
    "              deleted            2",
    "volume        available          8",
    "              deleted            8",
    "all                             63",
  ]);
});

test("the volume's two owners", () => {
  expect(
    lines("A volume that was handed", 9).map((line) =>
      line
        .split("  ")
        .map((cell) => cell.trim())
        .filter((cell) => cell !== ""),
    ),
  ).toEqual([
    ["A volume that was handed to another project"],
    ["volume 5b711d88-5fee-44c0-89c2-5937294169b3 of acme-prod and Zürich-研究, 4 events"],
    [],
    ["From (UTC)", "To", "Lasted", "State", "Size", "Project"],
    Array(6).fill(expect.stringMatching(/^─+$/)),
    [
      "2026-11-14 15:00:02",
      "2026-11-15 10:00:02",
      "18 h 59 min",
      "available",
      "7 GB, type 09d83b35…",
      "acme-prod",
    ],
    [
      "2026-11-15 10:00:02",
      "2026-12-01 01:50:00",
      "15 d 15 h",
      "available",
      "7 GB, type 09d83b35…",
      "Zürich-研究",
    ],
    [
      "2026-12-01 01:50:00",
      "2026-12-01 02:30:02",
      "40 min 1 s",
      "in-use",
      "7 GB, type 09d83b35…",
      "Zürich-研究",
    ],
    ["2026-12-01 02:30:02", "(open)", "21 h 29 min", "available", "7 GB, type 09d83b35…", "Zürich-研究"],
  ]);
});

test("the deleted server's end", () => {
  expect(lines("A server that was shelved", 9).at(-1)).toBe(
    "Deleted 2026-11-17 20:00:05. Nothing is billed after that.",
  );
});
