import { describe, expect, test } from "bun:test";
import { formatInstant, type Instant, parseInstant } from "../../src/event/instant.ts";
import { type FoldEvent, fold } from "../../src/timeline/fold.ts";

function at(text: string): Instant {
  const instant = parseInstant(text.length === 16 ? `${text}:00Z` : text);
  if (typeof instant === "string") throw new Error(`${text}: ${instant}`);
  return instant;
}

let sent = 0n;
/** An event that arrived after all that were made before it. */
function event(type: string, when: string, rest: Partial<FoldEvent> = {}): FoldEvent {
  sent += 1n;
  return {
    timestamp: at(when),
    receivedAt: (at("2026-06-01T00:00") + sent) as Instant,
    eventId: `e${sent}`,
    eventType: type,
    platform: "openstack",
    projectId: "p1",
    state: type.endsWith("delete") ? null : "active",
    size: null,
    ...rest,
  };
}

const SMALL = '{"vcpus":2}';
const BIG = '{"vcpus":4}';

/** Intervals as short texts: from – to | state | size | project. */
function told(history: readonly FoldEvent[]): string[] {
  return fold(history).intervals.map(
    ({ from, to, state, size, projectId }) =>
      `${formatInstant(from)} – ${to === null ? "" : formatInstant(to)} | ${state} | ${size} | ${projectId}`,
  );
}

describe("a life", () => {
  const history = () => [
    event("instance.create", "2026-03-01T08:00", { size: SMALL }),
    event("instance.resize", "2026-03-02T08:00", { size: BIG }),
    event("instance.delete", "2026-03-03T08:00"),
  ];

  test("create → resize → delete gives two closed intervals", () => {
    expect(told(history())).toEqual([
      `2026-03-01T08:00:00Z – 2026-03-02T08:00:00Z | active | ${SMALL} | p1`,
      `2026-03-02T08:00:00Z – 2026-03-03T08:00:00Z | active | ${BIG} | p1`,
    ]);
  });

  test("its row tells the end, the last size, and the newest event", () => {
    const events = history();
    const { row, warnings } = fold(events);
    expect(row).toMatchObject({
      state: "deleted",
      size: BIG,
      createdAt: at("2026-03-01T08:00"),
      deletedAt: at("2026-03-03T08:00"),
      firstEventAt: at("2026-03-01T08:00"),
      lastEventAt: at("2026-03-03T08:00"),
      lastEventType: "instance.delete",
      lastEventId: events[2]?.eventId,
    });
    expect(warnings).toEqual([]);
  });

  test("arrival order does not matter where timestamps differ", () => {
    const [a, b, c] = history();
    if (a === undefined || b === undefined || c === undefined) throw new Error("three events");
    expect(told([c, b, a])).toEqual(told([a, b, c]));
  });

  test("a create_snapshot is an update, a create on a living resource folds like one", () => {
    const { row, intervals } = fold([
      event("volume.create.end", "2026-03-01T08:00", { size: SMALL }),
      event("volume.create_snapshot.end", "2026-03-01T09:00"),
      event("volume.create.end", "2026-03-01T10:00", { size: BIG }),
    ]);
    expect(row?.createdAt).toBe(at("2026-03-01T08:00"));
    expect(intervals.map(({ from }) => formatInstant(from))).toEqual([
      "2026-03-01T08:00:00Z",
      "2026-03-01T10:00:00Z",
    ]);
  });

  test("an empty history folds into nothing", () => {
    expect(fold([])).toEqual({ row: null, intervals: [], warnings: [] });
  });
});

describe("intervals close only on a change of state, size or project", () => {
  test("an equal size in other words changes nothing", () => {
    expect(
      told([
        event("v.create", "2026-03-01T08:00", { size: '{"a": 1, "b": [2]}' }),
        event("v.update", "2026-03-01T09:00", { size: '{"b":[2.0],"a":1.0}' }),
      ]),
    ).toEqual(['2026-03-01T08:00:00Z –  | active | {"a": 1, "b": [2]} | p1']);
  });

  test("a digit past what a double can tell apart is a change", () => {
    expect(
      told([
        event("v.create", "2026-03-01T08:00", { size: '{"b":12345678901234567890}' }),
        event("v.update", "2026-03-01T09:00", { size: '{"b":12345678901234567891}' }),
      ]),
    ).toHaveLength(2);
  });

  test("another platform is none", () => {
    const { row, intervals } = fold([
      event("v.create", "2026-03-01T08:00", { size: SMALL }),
      event("v.update", "2026-03-01T09:00", { platform: "other" }),
    ]);
    expect(intervals).toHaveLength(1);
    expect(row?.platform).toBe("other");
  });

  test("a transfer is", () => {
    expect(
      told([
        event("v.create", "2026-03-01T08:00", { size: SMALL }),
        event("v.transfer.accept.end", "2026-03-01T09:00", { projectId: "p2" }),
      ]),
    ).toEqual([
      `2026-03-01T08:00:00Z – 2026-03-01T09:00:00Z | active | ${SMALL} | p1`,
      `2026-03-01T09:00:00Z –  | active | ${SMALL} | p2`,
    ]);
  });
});

describe("changes at one instant", () => {
  test("leave no interval between them; the last one sent counts", () => {
    expect(
      told([
        event("v.create", "2026-03-01T08:00", { size: SMALL }),
        event("v.update", "2026-03-01T09:00", { state: "busy" }),
        event("v.update", "2026-03-01T09:00", { state: "idle" }),
      ]),
    ).toEqual([
      `2026-03-01T08:00:00Z – 2026-03-01T09:00:00Z | active | ${SMALL} | p1`,
      `2026-03-01T09:00:00Z –  | idle | ${SMALL} | p1`,
    ]);
  });

  test("that undo each other leave one interval", () => {
    expect(
      told([
        event("v.create", "2026-03-01T08:00", { size: SMALL }),
        event("v.update", "2026-03-01T09:00", { state: "busy" }),
        event("v.update", "2026-03-01T09:00", { state: "active" }),
        event("v.delete", "2026-03-01T10:00"),
      ]),
    ).toEqual([`2026-03-01T08:00:00Z – 2026-03-01T10:00:00Z | active | ${SMALL} | p1`]);
  });

  test("created and deleted at one instant: no interval at all", () => {
    const { row, intervals } = fold([
      event("v.create", "2026-03-01T08:00", { size: SMALL }),
      event("v.delete", "2026-03-01T08:00"),
    ]);
    expect(intervals).toEqual([]);
    expect(row).toMatchObject({
      state: "deleted",
      createdAt: at("2026-03-01T08:00"),
      deletedAt: at("2026-03-01T08:00"),
    });
  });

  test("are ordered by arrival, then by the bytes of their ids", () => {
    const same = { receivedAt: at("2026-06-01T00:00"), timestamp: at("2026-03-01T09:00") };
    // U+FFFF is EF BF BF in UTF-8, U+10000 is F0 90 80 80: bytes order them so, UTF-16 units the other way round.
    const first = event("v.update", "2026-03-01T09:00", { ...same, eventId: "\uffff", state: "first" });
    const second = event("v.update", "2026-03-01T09:00", { ...same, eventId: "\u{10000}", state: "second" });
    expect(fold([second, first]).row?.state).toBe("second");
    const earlier = event("v.update", "2026-03-01T09:00", {
      receivedAt: (same.receivedAt - 1n) as Instant,
      state: "earlier",
    });
    expect(fold([earlier, second, first]).row?.state).toBe("second");
  });

  test("a life that begins when another ends is a life of its own", () => {
    expect(
      told([
        event("v.create", "2026-03-01T08:00", { size: SMALL }),
        event("v.delete", "2026-03-01T09:00"),
        event("v.create", "2026-03-01T09:00", { size: SMALL }),
      ]),
    ).toEqual([
      `2026-03-01T08:00:00Z – 2026-03-01T09:00:00Z | active | ${SMALL} | p1`,
      `2026-03-01T09:00:00Z –  | active | ${SMALL} | p1`,
    ]);
  });
});

describe("after a delete", () => {
  const life = () => [
    event("i.create", "2026-03-01T08:00", { size: SMALL }),
    event("i.delete", "2026-03-02T08:00"),
  ];

  test("a straggler opens nothing, leaves state and deletion, and is warned of once", () => {
    const { row, intervals, warnings } = fold([
      ...life(),
      event("i.power_off", "2026-03-02T08:01", { state: "shutoff" }),
      event("i.power_off", "2026-03-02T08:02", { state: "shutoff" }),
    ]);
    expect(intervals).toHaveLength(1);
    expect(row).toMatchObject({
      state: "deleted",
      deletedAt: at("2026-03-02T08:00"),
      lastEventAt: at("2026-03-02T08:02"),
      lastEventType: "i.power_off",
    });
    expect(warnings).toEqual(["event_after_delete"]);
  });

  test("a second delete moves nothing", () => {
    const { row, warnings } = fold([...life(), event("i.delete", "2026-03-05T08:00")]);
    expect(row?.deletedAt).toBe(at("2026-03-02T08:00"));
    expect(warnings).toEqual([]);
  });

  test("a create opens a new life and keeps the first creation", () => {
    const history = [...life(), event("i.create", "2026-03-04T08:00", { size: BIG })];
    expect(told(history)).toEqual([
      `2026-03-01T08:00:00Z – 2026-03-02T08:00:00Z | active | ${SMALL} | p1`,
      `2026-03-04T08:00:00Z –  | active | ${BIG} | p1`,
    ]);
    expect(fold(history).row).toMatchObject({
      state: "active",
      createdAt: at("2026-03-01T08:00"),
      deletedAt: null,
    });
  });
});

describe("histories that do not open with a create", () => {
  test("start at their first event, with a warning", () => {
    const history = [event("i.power_off", "2026-03-01T08:00", { state: "shutoff" })];
    expect(told(history)).toEqual(["2026-03-01T08:00:00Z –  | shutoff | {} | p1"]);
    const { row, warnings } = fold(history);
    expect(row).toMatchObject({ createdAt: null, firstEventAt: at("2026-03-01T08:00"), size: "{}" });
    expect(warnings).toEqual(["history_starts_without_create"]);
  });

  test("a create that comes later is the creation", () => {
    const { row } = fold([
      event("i.power_off", "2026-03-01T08:00", { state: "shutoff" }),
      event("i.create", "2026-03-01T09:00", { size: SMALL }),
    ]);
    expect(row).toMatchObject({ createdAt: at("2026-03-01T09:00"), firstEventAt: at("2026-03-01T08:00") });
  });

  test("deletes only: no interval, state deleted", () => {
    const { row, intervals, warnings } = fold([
      event("i.delete", "2026-03-01T08:00"),
      event("i.delete", "2026-03-02T08:00"),
    ]);
    expect(intervals).toEqual([]);
    expect(row).toMatchObject({ state: "deleted", createdAt: null, deletedAt: at("2026-03-01T08:00") });
    expect(warnings).toEqual(["history_starts_without_create"]);
  });

  test("a delete, then an update: still nothing lives", () => {
    const { intervals, warnings } = fold([
      event("i.delete", "2026-03-01T08:00"),
      event("i.update", "2026-03-02T08:00"),
    ]);
    expect(intervals).toEqual([]);
    expect(warnings).toEqual(["history_starts_without_create", "event_after_delete"]);
  });
});

test("the month example: in March 14,400 + 14,400 + 15,840 minutes", () => {
  const { intervals } = fold([
    event("instance.create", "2026-02-10T08:00", { size: BIG }),
    event("instance.power_off", "2026-03-11T00:00", { state: "shutoff" }),
    event("instance.power_on", "2026-03-21T00:00"),
  ]);
  const from = at("2026-03-01T00:00");
  const to = at("2026-04-01T00:00");
  const minutes = intervals.map((interval) => {
    // biome-ignore lint/complexity/useMathMinMax: Math.max takes no bigint
    const start = interval.from > from ? interval.from : from;
    const end = interval.to === null || interval.to > to ? to : interval.to;
    return [interval.state, Number(end - start) / 60e6];
  });
  expect(minutes).toEqual([
    ["active", 14_400],
    ["shutoff", 14_400],
    ["active", 15_840],
  ]);
});
