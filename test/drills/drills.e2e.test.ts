/** The short version of each drill that breaks the executable itself, and its `tally verify` on what is left. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { drillNamed } from "../../scripts/drills/all.ts";
import { randomFrom } from "../../scripts/drills/rig/random.ts";
import { packPostgres } from "../../scripts/pack-postgres.ts";
import { unpackPostgres } from "../../src/database/embedded/distribution.ts";
import { place, run } from "../executable/tally.ts";
import { seedOfRun } from "../ingest/history-generator.ts";

const SLOW = 180_000;
const at = place();
beforeAll(async () => {
  await packPostgres();
  await unpackPostgres(at.cwd);
}, SLOW);
afterAll(at.remove);

/**
 * Tally's own checker on the data directory that a drill left behind.
 * @param stored how many events the drill found in it
 */
async function mustVerify(directory: string, stored: unknown): Promise<void> {
  const { code, stdout, stderr } = await run(at, {
    args: ["verify"],
    env: { TALLY_DATA_DIR: join(directory, "tally") },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [, resources, events] = /^checked: ([\d,]+) resources, ([\d,]+) events, /.exec(stdout) ?? [];
  expect(numberOf(events)).toBe(Number(stored));
  // One batch is about at most sixty resources, and each goes on ten further than the one before.
  expect(numberOf(resources)).toBeGreaterThan(100);
}

function numberOf(text: string | undefined): number {
  return Number(text?.replaceAll(",", ""));
}

describe("short drills", () => {
  for (const name of ["kill-tally", "kill-database", "kill-both", "disk-full", "hostile-clients"]) {
    const { about, rounds, run: drill, unable } = drillNamed(name);
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
          const figures = await drill(rig, plan);
          // The disk that was filled is gone.
          if (name !== "disk-full") await mustVerify(own, figures["events stored"]);
        } catch (error) {
          console.error(`TEST_SEED=${seed}`);
          throw error;
        }
      },
      SLOW,
    );
  }
});
