/** What intervals have to be, held against intervals that are not. */
import { expect, test } from "bun:test";
import type { Instant } from "../../src/event/instant.ts";
import { parseInstant } from "../../src/event/instant.ts";
import { compareFoldOrder, type FoldEvent, Folding, fold, type Interval } from "../../src/timeline/fold.ts";
import { LifeCheck } from "../../src/verify/lives.ts";
import { foldEvent, generateHistory, randomFrom, seedOfRun } from "../ingest/history-generator.ts";

function at(hour: number): Instant {
  const instant = parseInstant(`2026-03-01T${String(hour).padStart(2, "0")}:00:00Z`);
  if (typeof instant === "string") throw new Error(instant);
  return instant;
}

function event(hour: number, eventType: string): FoldEvent {
  return {
    timestamp: at(hour),
    receivedAt: at(hour),
    eventId: `e${hour}`,
    eventType,
    platform: "openstack",
    projectId: "p",
    state: "active",
    size: "{}",
  };
}

function interval(from: number, to: number | null): Interval {
  return { from: at(from), to: to === null ? null : at(to), state: "active", size: "{}", projectId: "p" };
}

/** A life from 1 to 5 o'clock, and one from 7 on. */
const TWO_LIVES = [event(1, "x.create"), event(3, "x.update"), event(5, "x.delete"), event(7, "x.create")];

function faults(events: readonly FoldEvent[], intervals: readonly Interval[]): string[] {
  const check = new LifeCheck();
  for (const one of events) check.take(one);
  for (const one of intervals) check.cover(one);
  return check.finish();
}

test("lives that are covered", () => {
  expect(faults(TWO_LIVES, [interval(1, 3), interval(3, 5), interval(7, null)])).toEqual([]);
});

test("a gap within a life", () => {
  expect(faults(TWO_LIVES, [interval(1, 2), interval(3, 5), interval(7, null)])).toEqual([
    "nothing covers 2026-03-01T02:00:00Z to 2026-03-01T03:00:00Z",
  ]);
});

test("intervals that overlap, or stand in the wrong order", () => {
  expect(faults(TWO_LIVES, [interval(1, 4), interval(3, 5), interval(7, null)])).toEqual([
    "its interval [2026-03-01T03:00:00Z, 2026-03-01T05:00:00Z) begins before 2026-03-01T04:00:00Z",
  ]);
  expect(faults(TWO_LIVES, [interval(3, 5), interval(1, 3), interval(7, null)])).not.toEqual([]);
});

test("an interval that is negative or empty", () => {
  expect(faults(TWO_LIVES, [interval(3, 1), interval(1, 5), interval(7, null)])).toEqual([
    "its interval [2026-03-01T03:00:00Z, 2026-03-01T01:00:00Z) ends before or where it begins",
  ]);
  expect(faults(TWO_LIVES, [interval(1, 5), interval(7, 7), interval(7, null)])).toHaveLength(1);
});

test("an interval that bills the dead", () => {
  expect(faults(TWO_LIVES, [interval(1, 6), interval(7, null)])).toEqual([
    "its interval [2026-03-01T01:00:00Z, 2026-03-01T06:00:00Z) goes on after the delete at 2026-03-01T05:00:00Z",
  ]);
  expect(faults([event(1, "x.delete")], [interval(1, null)])).toEqual([
    "its interval [2026-03-01T01:00:00Z, open) lies in none of its lives",
  ]);
});

test("a life that is not billed, or not to its end", () => {
  expect(faults(TWO_LIVES, [interval(7, null)])).toHaveLength(1);
  expect(faults(TWO_LIVES, [interval(1, 4), interval(7, null)])).toEqual([
    "nothing covers 2026-03-01T04:00:00Z to 2026-03-01T05:00:00Z",
  ]);
  expect(faults(TWO_LIVES, [interval(1, 5)])).toEqual(["nothing covers 2026-03-01T07:00:00Z to now"]);
});

test("stragglers and second deletes begin and end nothing", () => {
  const events = [event(1, "x.create"), event(2, "x.delete"), event(3, "x.power_off"), event(4, "x.delete")];
  expect(faults(events, [interval(1, 2)])).toEqual([]);
});

test("a life that ends in the instant it begins has nothing to cover", () => {
  expect(
    faults([event(1, "x.create"), event(1, "x.delete"), event(1, "x.create")], [interval(1, null)]),
  ).toEqual([]);
});

test("whatever the fold makes of 500 seeded histories, whole or taken piece by piece", () => {
  const seed = seedOfRun();
  const random = randomFrom(seed);
  try {
    for (let n = 0; n < 500; n++) {
      const history = generateHistory(random, `r${n}`).map((one, i) => foldEvent(one, BigInt(i) as Instant));
      const sorted = [...history].sort(compareFoldOrder);
      const folding = new Folding();
      const check = new LifeCheck();
      const taken: Interval[] = [];
      const take = (intervals: readonly Interval[]) => {
        for (const one of intervals) {
          taken.push(one);
          check.cover(one);
        }
      };
      for (const one of sorted) {
        folding.take(one);
        check.take(one);
        if (random() < 0.3) take(folding.takeSettled());
      }
      take(folding.folded.intervals);
      expect(check.finish()).toEqual([]);
      expect(taken).toEqual([...fold(history).intervals]);
    }
  } catch (error) {
    console.error(`TEST_SEED=${seed}`);
    throw error;
  }
});
