/**
 * Clocks that jump by a day, forwards and back, while events come in, on a database and in a process whose time zones
 * are not UTC. What the clock touches is received_at, which orders events of one timestamp: rows must be what a replay
 * gives all the same.
 */
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseInstant } from "../../src/event/instant.ts";
import type { Drill, Plan, Rig } from "./drill.ts";
import { must } from "./drill.ts";
import type { Clients } from "./rig/clients.ts";
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

/** How far Tally's clock is from ours, in seconds, by the line that it logs of a request. */
async function tallyOffset({ tally }: Stage): Promise<number> {
  const logged = tally.log.length;
  await tally.readiness();
  const [, at = ""] = /"timestamp":"([^"]+)"/.exec(tally.log.slice(logged)) ?? [];
  return (Date.parse(at) - Date.now()) / 1000;
}

/** @throws {Error} unless the clock is where it was set */
function mustMatch(whose: string, seconds: number, offset: string): void {
  const expected = { "+1d": 86_400, "-1d": -86_400 }[offset] ?? 0;
  must(
    Math.abs(seconds - expected) < HALF_A_DAY_S,
    `the clock of ${whose} was set to ${offset}, and is off by ${seconds} s`,
  );
}

/** The timestamps of a batch by the ids of its events, as they were sent. */
function timestampsSent(clients: Clients, number: number): Map<string, string> {
  const items: { event_id: string; timestamp: string }[] = JSON.parse(clients.workload.batch(number).body);
  return new Map(items.map(({ event_id, timestamp }) => [event_id, timestamp]));
}

/** Instants are stored as they were sent, and answered in UTC, whatever the time zones. */
async function mustKeepInstants({ tally, clients, admin }: Stage): Promise<void> {
  const reader = await tally.readToken();
  const answer = await fetch(`${tally.url}/api/v1/events?limit=100`, {
    headers: { authorization: `Bearer ${reader}` },
  });
  const text = await answer.text();
  const { items }: { items: { event_id: string; timestamp: string }[] } = JSON.parse(text);
  must(items.length === 100, `not a page of events: ${text.slice(0, 300)}`);
  for (const { event_id: id, timestamp } of items) {
    must(timestamp.endsWith("Z"), `not an instant in UTC: ${timestamp}`);
    const sent = timestampsSent(clients, Number(id.split(":")[1])).get(id) ?? "";
    must(
      parseInstant(timestamp) === parseInstant(sent),
      `event ${id} was sent with ${sent}, and is answered with ${timestamp}`,
    );
    const [row]: { micros: string }[] = await admin`
      SELECT (extract(epoch FROM timestamp) * 1000000)::bigint::text AS micros FROM events WHERE event_id = ${id}`;
    must(
      row?.micros === String(parseInstant(sent)),
      `event ${id} was sent with ${sent}, and is stored at ${row?.micros} µs`,
    );
  }
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
    let before = "+0";
    for (let round = 1; round <= plan.rounds; round++) {
      for (const offset of JUMPS) {
        // One clock and then the other: for a moment they are a day apart.
        set(databaseClock, offset);
        await working(stage.clients);
        mustMatch("the database", await databaseOffset(stage), offset);
        mustMatch("Tally", await tallyOffset(stage), before);
        set(tallyClock, offset);
        await working(stage.clients);
        mustMatch("Tally", await tallyOffset(stage), offset);
        before = offset;
      }
    }
    must((await stage.tally.readiness()) === 200, "it is not ready afterwards");
    await mustKeepInstants(stage);
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
