/** One history, one project's window. */
import { describe, expect, test } from "bun:test";
import { type Instant, parseInstant } from "../../src/event/instant.ts";
import { activityIn } from "../../src/projects/activity.ts";
import { compareFoldOrder, type FoldEvent, fold } from "../../src/timeline/fold.ts";
import { foldEvent, generateHistory, randomFrom, seedOfRun } from "../ingest/history-generator.ts";

function instant(text: string): Instant {
  const value = parseInstant(text);
  if (typeof value === "string") throw new Error(value);
  return value;
}
const day = (n: number, time = "00:00:00") => instant(`2026-03-${String(n).padStart(2, "0")}T${time}Z`);
const DAY = 86_400_000_000n;
const MARCH = { from: day(1), to: instant("2026-04-01T00:00:00Z") };
const LATER = instant("2026-06-01T00:00:00Z");

/** `create p 5`: what happened, by whose event, on which day. */
function history(...texts: string[]): FoldEvent[] {
  return texts.map((text, at) => {
    const [kind = "", projectId = "", on = ""] = text.split(" ");
    return {
      timestamp: day(Number(on)),
      receivedAt: instant(`2026-05-01T00:00:${String(at).padStart(2, "0")}Z`),
      eventId: `e${at}`,
      eventType: `thing.${kind}`,
      platform: "openstack",
      projectId,
      state: kind === "stop" ? "off" : "on",
      size: null,
    };
  });
}

const cases: [string, FoldEvent[], { created: number; deleted: number; days: bigint }][] = [
  ["created and deleted", history("create p 5", "delete p 8"), { created: 1, deleted: 1, days: 3n }],
  [
    "a repeated create counts once",
    history("create p 5", "create p 6", "create p 7"),
    { created: 1, deleted: 0, days: 27n },
  ],
  [
    "a second delete counts for nothing",
    history("create p 5", "delete p 8", "delete p 9"),
    { created: 1, deleted: 1, days: 3n },
  ],
  [
    "two lives are two",
    history("create p 1", "delete p 2", "create p 3", "delete p 5"),
    { created: 2, deleted: 2, days: 3n },
  ],
  [
    "a create after the first sight of a life is its first",
    history("update p 4", "create p 5", "create p 6"),
    { created: 1, deleted: 0, days: 28n },
  ],
  ["a life that nothing created", history("update p 4", "delete p 5"), { created: 0, deleted: 1, days: 1n }],
  [
    "nothing but deletes: one end, no time",
    history("delete p 4", "delete p 5"),
    { created: 0, deleted: 1, days: 0n },
  ],
  [
    "a straggler bills nothing",
    history("create p 4", "delete p 5", "update p 6"),
    { created: 1, deleted: 1, days: 1n },
  ],
  [
    "handed on: the time moves, the counts don't",
    history("create p 1", "update q 11"),
    { created: 1, deleted: 0, days: 10n },
  ],
  [
    "taken over, with a create that repeats: no count",
    history("create q 1", "create p 11"),
    { created: 0, deleted: 0, days: 21n },
  ],
  [
    "taken over and deleted",
    history("create q 1", "update p 11", "delete p 21"),
    { created: 0, deleted: 1, days: 10n },
  ],
  [
    "there and back",
    history("create p 1", "update q 2", "update p 4", "delete p 5"),
    { created: 1, deleted: 1, days: 2n },
  ],
  ["deleted by another's event", history("create p 1", "delete q 3"), { created: 1, deleted: 0, days: 2n }],
  ["born and dead at once", history("create p 3", "delete p 3"), { created: 1, deleted: 1, days: 0n }],
  [
    "states split intervals, not time",
    history("create p 1", "stop p 2", "start p 3", "delete p 5"),
    { created: 1, deleted: 1, days: 4n },
  ],
  ["nobody's", history("create q 1", "delete q 3"), { created: 0, deleted: 0, days: 0n }],
  ["nothing", [], { created: 0, deleted: 0, days: 0n }],
];

describe("in March", () => {
  test.each(cases)("%s", (_, events, { created, deleted, days }) => {
    expect(activityIn(events, "p", MARCH, LATER)).toEqual({ created, deleted, owned: days * DAY });
  });
});

describe("the window", () => {
  const lived = history("create p 5", "delete p 8");
  test.each([
    ["holds its first instant, not its last: an event at from", day(5), day(6), [1, 0, DAY]],
    ["an event at to", day(4), day(5), [0, 0, 0n]],
    ["a delete at from", day(8), day(9), [0, 1, 0n]],
    ["a delete at to", day(7), day(8), [0, 0, DAY]],
    ["the middle", day(6), day(7), [0, 0, DAY]],
    ["a microsecond", (day(7) - 1n) as Instant, day(7), [0, 0, 1n]],
    ["before", day(1), day(4), [0, 0, 0n]],
    ["after", day(9), day(12), [0, 0, 0n]],
    ["empty", day(6), day(6), [0, 0, 0n]],
    ["inverted", day(9), day(4), [0, 0, 0n]],
  ] as [string, Instant, Instant, [number, number, bigint]][])(
    "%s",
    (_, from, to, [created, deleted, owned]) => {
      expect(activityIn(lived, "p", { from, to }, LATER)).toEqual({ created, deleted, owned });
    },
  );
});

describe("what is open ends now", () => {
  const open = history("create p 5");
  test.each([
    ["before the window's end", day(15), 10n],
    ["after it", LATER, 27n],
    ["before the window", day(1), 0n],
    ["before it began", day(4), 0n],
  ])("%s", (_, now, days) => {
    expect(activityIn(open, "p", MARCH, now).owned).toBe(days * DAY);
  });
});

test("the time is that of the intervals, and needs neither states nor sizes", () => {
  const seed = seedOfRun();
  const random = randomFrom(seed);
  for (let n = 0; n < 5_000; n++) {
    const events = generateHistory(random, "r")
      .map((generated, at) => foldEvent(generated, (LATER + BigInt(at)) as Instant))
      .sort(compareFoldOrder);
    const bare = events.map((event) => ({ ...event, state: null, size: null }));
    let expected = 0n;
    for (const { projectId, from, to } of fold(events).intervals) {
      if (projectId === "p1") expected += (to ?? LATER) - from;
    }
    const activity = activityIn(bare, "p1", { from: day(1), to: LATER }, LATER);
    expect(activity.owned, `TEST_SEED=${seed}, history ${n}`).toBe(expected);
    // Both owners together count each first create and each end of a life once.
    const other = activityIn(bare, "p2", { from: day(1), to: LATER }, LATER);
    const row = fold(events).row;
    const dead = row !== null && row.deletedAt !== null ? 1 : 0;
    expect(activity.deleted + other.deleted, `TEST_SEED=${seed}, history ${n}`).toBeGreaterThanOrEqual(dead);
  }
});
