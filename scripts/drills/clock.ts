/**
 * Clocks that jump by a day, forwards and back, while events come in, on a database and in a process whose time zones
 * are not UTC. What the clock touches is received_at, which orders events of one timestamp: rows must be what a replay
 * gives all the same.
 */
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Drill, Plan, Rig } from "./drill.ts";
import { must } from "./drill.ts";
import { onStage, type Stage, working } from "./rig/outage.ts";

const ARCHITECTURE = process.arch === "arm64" ? "aarch64" : "x86_64";
const LIBRARY = `/usr/lib/${ARCHITECTURE}-linux-gnu/faketime/libfaketime.so.1`;
const JUMPS = ["+1d", "+0", "-1d", "+0", "-1d", "+1d"];
/** A jump is a day; whatever is far less than half of one is no jump. */
const HALF_A_DAY_S = 43_200;

function set(file: string, offset: string): void {
  writeFileSync(`${file}.new`, `${offset}\n`, { mode: 0o644 });
  renameSync(`${file}.new`, file);
}

/** How far the database's clock is from ours, in seconds. */
async function databaseOffset({ admin }: Stage): Promise<number> {
  const [row]: { at: number }[] = await admin`SELECT extract(epoch FROM clock_timestamp())::float8 AS at`;
  return (row?.at ?? 0) - Date.now() / 1000;
}

function matches(offset: string, seconds: number): boolean {
  const expected = { "+1d": 86_400, "-1d": -86_400 }[offset] ?? 0;
  return Math.abs(seconds - expected) < HALF_A_DAY_S;
}

async function run(rig: Rig, plan: Plan) {
  const databaseClock = join(rig.place, "clock-of-the-database");
  const tallyClock = join(rig.place, "clock-of-tally");
  const faked = (file: string) => ({
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    // Timers run by the monotonic clock, which no jump touches.
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    // To fake a file's times, libfaketime 0.9.10 takes a lock that all processes of a server share. A backend that is
    // ended in there leaves it taken, and the server waits for it for ever (lock_for_stat in its source).
    NO_FAKE_STAT: "1",
  });
  for (const file of [databaseClock, tallyClock]) set(file, "+0");
  const options = {
    env: { ...faked(tallyClock), TZ: "America/St_Johns" },
    postgres: { env: faked(databaseClock), settings: { timezone: "Asia/Kathmandu" } },
  };
  const { acknowledged, stored, unavailable } = await onStage(rig, plan, options, async (stage) => {
    for (let round = 1; round <= plan.rounds; round++) {
      for (const offset of JUMPS) {
        // One clock and then the other: for a moment they are a day apart.
        for (const file of [databaseClock, tallyClock]) {
          set(file, offset);
          await working(stage.clients);
        }
        const seconds = await databaseOffset(stage);
        must(
          matches(offset, seconds),
          `the database's clock did not jump by ${offset}: it is off by ${seconds} s`,
        );
      }
    }
    must((await stage.tally.readiness()) === 200, "it is not ready afterwards");
    // Instants are answered in UTC, whatever the time zones.
    const reader = await stage.tally.readToken();
    const answer = await fetch(`${stage.tally.url}/api/v1/events?limit=1`, {
      headers: { authorization: `Bearer ${reader}` },
    });
    const text = await answer.text();
    must(/"timestamp": ?"2026-03-[^"]*Z"/.test(text), `not an instant in UTC: ${text.slice(0, 300)}`);
    set(databaseClock, "+0");
    set(tallyClock, "+0");
  });
  return {
    jumps: plan.rounds * JUMPS.length * 2,
    // PostgreSQL's timeouts run by the wall clock: a jump forwards may end a statement that had just begun.
    "answers 503": unavailable,
    "events acknowledged": acknowledged,
    "events stored": stored,
  };
}

export const clock: Drill = {
  name: "clock",
  about: "clocks of database and process jump by a day, both ways; time zones other than UTC",
  rounds: { short: 1, long: 20 },
  unable: () => (existsSync(LIBRARY) ? null : "libfaketime is not there (Debian: apt install libfaketime)"),
  run,
};
