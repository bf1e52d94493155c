/** The short version of each drill that breaks the executable itself, and `tally verify` on what is left. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { drillNamed } from "../../scripts/drills/all.ts";
import { randomFrom } from "../../scripts/drills/rig/random.ts";
import { packPostgres } from "../../scripts/pack-postgres.ts";
import { unpackPostgres } from "../../src/database/embedded/distribution.ts";
import { place, tally } from "../executable/tally.ts";
import { seedOfRun } from "../ingest/history-generator.ts";

const SLOW = 180_000;
const at = place();
beforeAll(async () => {
  await packPostgres();
  await unpackPostgres(at.cwd);
}, SLOW);
afterAll(at.remove);

describe("short drills", () => {
  for (const name of ["kill-tally", "kill-database", "kill-both", "disk-full", "hostile-clients"]) {
    const { about, rounds, run, unable } = drillNamed(name);
    const why = unable?.() ?? null;
    if (why !== null) console.warn(`the drill ${name} is not run: ${why}`);
    test.if(why === null)(
      `${name}: ${about}`,
      async () => {
        const own = join(at.cwd, name);
        mkdirSync(own, { mode: 0o755 });
        const seed = seedOfRun();
        try {
          const plan = { rounds: rounds.short, long: false, random: randomFrom(seed) };
          const rig = { command: [at.executable], place: own, shared: at.cwd, durable: false, say: () => {} };
          await run(rig, plan);
        } catch (error) {
          console.error(`TEST_SEED=${seed}`);
          throw error;
        }
      },
      SLOW,
    );
  }
});

test(
  "tally verify says what it looked at",
  async () => {
    expect(await tally(at, "verify")).toEqual({
      code: 0,
      stdout: "checked: 0 resources, 0 events, 0 projects, 0 audit entries\n",
      stderr: expect.stringContaining("a new database is made"),
    });
  },
  SLOW,
);
