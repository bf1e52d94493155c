/**
 * The short version of each drill that can do without the built executable; `bun run drills` is the long one. Tally
 * runs from its sources, in processes of its own.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DRILLS, drillNamed } from "../../scripts/drills/all.ts";
import { randomFrom } from "../../scripts/drills/rig/random.ts";
import { temporaryDirectory } from "../database/own-server.ts";
import { seedOfRun } from "../ingest/history-generator.ts";

const SLOW = 120_000;
/** Those that need the executable, and are run with it by drills.e2e.test.ts. */
const OF_THE_EXECUTABLE = ["kill-tally", "kill-database", "kill-both", "disk-full", "hostile-clients"];

const directory = temporaryDirectory();
afterAll(directory.remove);

describe("short drills", () => {
  for (const { name, about, rounds, run, unable } of DRILLS) {
    if (OF_THE_EXECUTABLE.includes(name)) continue;
    const why = unable?.() ?? null;
    if (why !== null) console.warn(`the drill ${name} is not run: ${why}`);
    test.if(why === null)(
      `${name}: ${about}`,
      async () => {
        const place = join(directory.path, name);
        mkdirSync(place, { mode: 0o755 });
        const command = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
        const seed = seedOfRun();
        try {
          const plan = { rounds: rounds.short, long: false, random: randomFrom(seed) };
          await run({ command, place, shared: directory.path, durable: false, say: () => {} }, plan);
        } catch (error) {
          console.error(`TEST_SEED=${seed}`);
          throw error;
        }
      },
      SLOW,
    );
  }
});

test("a drill that isn't there is told with those that are", () => {
  expect(() => drillNamed("flood")).toThrow("there is no drill flood: there are kill-tally, ");
});
