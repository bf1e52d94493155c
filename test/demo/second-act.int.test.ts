import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PLAIN } from "../../src/commands/table.ts";
import { type RecordedCloud, startRecordedCloud } from "../../src/demo/recorded-cloud.ts";
import { QUIET, secondAct } from "../../src/demo/second-act.ts";
import { tour } from "../../src/demo/tour.ts";
import { type TestServer, testServer } from "../support/server.ts";

const directory = mkdtempSync(join(tmpdir(), "tally-second-act-"));
let cloud: RecordedCloud;
let server: TestServer;
let printed = "";

beforeAll(async () => {
  cloud = startRecordedCloud(directory, QUIET);
  const sync = {
    cloudsConfig: null,
    allowAt: true,
    budgetSeconds: 45,
    settleSeconds: 60,
    intervalSeconds: 0,
    maxAbsentPercent: 20,
  };
  server = await testServer({ clouds: [cloud.configured], settings: { sync } });
  const access = {
    url: server.url,
    ingestToken: await server.credentials.ingest("openstack", "os-zed-1"),
    adminToken: server.credentials.admin,
  };
  await tour(access, QUIET, PLAIN, () => {});
  await secondAct(
    { access, internalToken: server.credentials.internal, world: cloud.world },
    PLAIN,
    (text) => {
      printed += `${text}\n`;
    },
  );
}, 60_000);

afterAll(async () => {
  await server.stop();
  await cloud.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** The lines from the one that begins with `first`, `count` of them. */
function lines(first: string, count: number): string[] {
  const all = printed.split("\n");
  const at = all.findIndex((line) => line.startsWith(first));
  return all.slice(at, at + count);
}

// The recording leaves 8 volumes behind, and its cloud holds what it left: only the names of types are new.
test("the first run brings the names of the volume types, and nothing else", () => {
  expect(printed).toContain("corrected 8 volumes by them: all else was as recorded.");
});

test("what was missed is found, each with its date", () => {
  expect(lines("sync.", 5)).toEqual([
    "sync.create  instance     0d5c2a7e…  it is not in the record       2026-12-02 06:30:00",
    "sync.delete  floating_ip  74d81ba5…  the cloud no longer lists it  2026-12-02 07:00:00",
    "sync.update  instance     9555b446…  size differs                  2026-12-02 07:00:00",
    "sync.delete  instance     a26b8d8e…  the platform reports its end  2026-12-02 06:40:00",
    "sync.update  volume       5b711d88…  size differs                  2026-12-02 07:00:00",
  ]);
});

test("it is booked once", () => {
  expect(printed).toContain(
    "Booked: 1 created, 2 updated, 2 deleted. The run ten minutes later: 0, 0 and 0.",
  );
});

test("the resized server is billed by its new size from the run on", () => {
  expect(lines("2026-12-02 07:00:00  (open)", 1)).toEqual([
    "2026-12-02 07:00:00  (open)                 10 min  active  2 vCPU, 4 GB RAM, 40 GB disk, flavor m1.medium",
  ]);
});
