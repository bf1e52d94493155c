/** The difference between a cloud and the record, rule by rule. */
import { describe, expect, test } from "bun:test";
import { formatInstant } from "../../src/event/instant.ts";
import type { ObservedResource } from "../../src/reconcile/adapter.ts";
import { Comparison, type ComparisonRules, type Difference } from "../../src/reconcile/diff.ts";
import type { RecordedResource } from "../../src/reconcile/finding.ts";
import { ObservedResources } from "../../src/reconcile/observed.ts";
import { at, ended, instance, LARGE, SMALL } from "./scripted-adapter.ts";

const NOW = "2026-03-02T12:00:00Z";
const RULES: ComparisonRules = {
  now: at(NOW),
  settleSeconds: 60,
  platform: "openstack",
  completeTypes: new Set(["instance", "volume"]),
  maxAbsentPercent: 20,
  confirmMassDelete: false,
};

/** What the record has of an instance that has lived quietly for a day. */
function row(resourceId: string, changed: Partial<RecordedResource> = {}): RecordedResource {
  return {
    resourceType: "instance",
    resourceId,
    platform: "openstack",
    projectId: "shop",
    state: "active",
    size: SMALL,
    deletedAt: null,
    lastEventAt: at("2026-03-01T00:00:00Z"),
    lastEventId: `last of ${resourceId}`,
    ...changed,
  };
}

function dead(
  resourceId: string,
  deletedAt: string,
  changed: Partial<RecordedResource> = {},
): RecordedResource {
  return row(resourceId, {
    state: "deleted",
    deletedAt: at(deletedAt),
    lastEventAt: at(deletedAt),
    ...changed,
  });
}

/** A cloud against a record. */
function difference(
  seen: readonly ObservedResource[],
  recorded: readonly RecordedResource[],
  changed: Partial<ComparisonRules> = {},
): Difference {
  const observed = new ObservedResources();
  for (const resource of seen) expect(observed.add(resource)).toBeNull();
  const comparison = new Comparison(observed, { ...RULES, ...changed });
  for (const living of recorded) if (living.deletedAt === null) comparison.living(living);
  for (const resource of comparison.takeRest()) {
    const known = recorded.find(
      ({ resourceType, resourceId }) =>
        resourceType === resource.resourceType && resourceId === resource.resourceId,
    );
    comparison.known(resource, known ?? null);
  }
  return comparison.finish();
}

/** `<action> <id> <timestamp>` of each correction. */
function lines({ corrections }: Difference): string[] {
  return corrections.map(
    ({ action, resourceId, timestamp }) => `${action} ${resourceId} ${formatInstant(timestamp)}`,
  );
}

const NO_DEFERRALS = { transitional: 0, recent: 0 };

describe("what is corrected", () => {
  test("nothing, where cloud and record agree", () => {
    expect(difference([instance("a")], [row("a")])).toEqual({
      corrections: [],
      deferred: NO_DEFERRALS,
      withheld: [],
      unknown: [],
    });
  });

  test("lives, and has no row: a create", () => {
    const { corrections } = difference([instance("a", { provider: { name: "web" } })], []);
    expect(corrections).toEqual([
      {
        action: "create",
        timestamp: at("2026-03-01T00:00:00Z"),
        resourceType: "instance",
        resourceId: "a",
        projectId: "shop",
        state: "active",
        size: SMALL,
        provider: '{"name":"web"}',
        reason: "it is not in the record",
        basis: null,
      },
    ]);
  });

  test("lives, and the record has it as deleted: a create", () => {
    const { corrections } = difference([instance("a")], [dead("a", "2026-03-01T09:00:00Z")]);
    expect(corrections).toMatchObject([
      { action: "create", reason: "the record has it as deleted", basis: "last of a" },
    ]);
  });

  test.each([
    ["state", { state: "shutoff" }, "state differs"],
    ["size", { size: LARGE }, "size differs"],
    ["owner", { projectId: "bank" }, "project_id differs"],
    ["all three", { state: "shutoff", size: LARGE, projectId: "bank" }, "state, size, project_id differ"],
  ] as const)("another %s: an update at the poll instant, with all that is known", (_, changed, reason) => {
    const { corrections } = difference([instance("a", changed)], [row("a")]);
    expect(corrections).toEqual([
      {
        action: "update",
        timestamp: at(NOW),
        resourceType: "instance",
        resourceId: "a",
        projectId: "shop",
        state: "active",
        size: SMALL,
        ...changed,
        provider: '{"id":"a"}',
        reason,
        basis: "last of a",
      },
    ]);
  });

  test("reported as ended, and lives in the record: a delete at the reported instant", () => {
    const { corrections } = difference([ended("a", "2026-03-02T03:00:00Z")], [row("a")]);
    expect(corrections).toMatchObject([
      {
        action: "delete",
        timestamp: at("2026-03-02T03:00:00Z"),
        state: null,
        size: null,
        provider: '{"id":"a"}',
        reason: "the platform reports its end",
      },
    ]);
  });

  test("the owner that a report of an end names is the event's", () => {
    const report = { ...ended("a", "2026-03-02T03:00:00Z"), projectId: "bank" };
    expect(difference([report], [row("a")]).corrections).toMatchObject([{ projectId: "bank" }]);
  });

  test("reported as ended, and unknown to the record or dead in it: nothing", () => {
    const seen = [ended("a", "2026-03-02T03:00:00Z"), ended("b", "2026-03-02T03:00:00Z")];
    expect(lines(difference(seen, [dead("b", "2026-03-02T02:00:00Z")]))).toEqual([]);
  });

  test("lives in the record, and a full listing doesn't hold it: a delete at the poll instant", () => {
    expect(difference([], [row("a")]).corrections).toEqual([
      {
        action: "delete",
        timestamp: at(NOW),
        resourceType: "instance",
        resourceId: "a",
        projectId: "shop",
        state: null,
        size: null,
        provider: null,
        reason: "the cloud no longer lists it",
        basis: "last of a",
      },
    ]);
  });

  test("a listing that broke off: what it held counts, what it didn't hold says nothing", () => {
    const seen = [
      instance("changed", { state: "shutoff" }),
      instance("new"),
      ended("told", "2026-03-02T03:00:00Z"),
    ];
    const recorded = [row("changed"), row("told"), row("unseen"), row("gone", { resourceType: "volume" })];
    expect(lines(difference(seen, recorded, { completeTypes: new Set(["volume"]) }))).toEqual([
      "create new 2026-03-01T00:00:00Z",
      "update changed 2026-03-02T12:00:00Z",
      "delete told 2026-03-02T03:00:00Z",
      "delete gone 2026-03-02T12:00:00Z",
    ]);
  });

  test("another platform's row of the same cloud is nobody's absence", () => {
    expect(lines(difference([], [row("a", { platform: "vmware" })]))).toEqual([]);
  });

  test("new rows come first, each by type and id", () => {
    const seen = [instance("n2"), instance("n1"), instance("u", { state: "error" })];
    const recorded = [row("u"), row("d"), row("v", { resourceType: "volume" })];
    expect(lines(difference(seen, recorded)).map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual([
      "create n1",
      "create n2",
      "delete d",
      "update u",
      "delete v",
    ]);
  });
});

describe("sizes are compared as JSON values", () => {
  test.each([
    ["another order of members", '{"flavor":"m1.small","disk_gb":40,"ram_gb":4,"vcpus":2}'],
    ["white space", '{ "vcpus" : 2, "ram_gb":4,\n"disk_gb":40,"flavor":"m1.small"}'],
    ["1 and 1.0", '{"vcpus":2.0,"ram_gb":4.00,"disk_gb":4e1,"flavor":"m1.small"}'],
    ["escapes", '{"vcpus":2,"ram_gb":4,"disk_gb":40,"flavor":"m1.\\u0073mall"}'],
  ])("%s: equal", (_, size) => {
    expect(lines(difference([instance("a", { size })], [row("a")]))).toEqual([]);
  });

  test("numbers past a double are told apart", () => {
    const seen = instance("a", { size: '{"n":12345678901234567890}' });
    expect(lines(difference([seen], [row("a", { size: '{"n":12345678901234567891}' })]))).toHaveLength(1);
    expect(lines(difference([seen], [row("a", { size: '{"n":12345678901234567890}' })]))).toEqual([]);
  });

  test("a further member is a difference", () => {
    expect(
      lines(difference([instance("a", { size: '{"x":1,"y":null}' })], [row("a", { size: '{"x":1}' })])),
    ).toHaveLength(1);
  });

  test("an unknown size isn't compared, and an update leaves it as it is", () => {
    expect(lines(difference([instance("a", { size: null })], [row("a")]))).toEqual([]);
    const { corrections } = difference([instance("a", { size: null, state: "error" })], [row("a")]);
    expect(corrections).toMatchObject([
      { action: "update", state: "error", size: null, reason: "state differs" },
    ]);
  });

  test("a resource of unknown size is not created", () => {
    const found = difference(
      [instance("a", { size: null }), instance("b", { size: null })],
      [dead("b", "2026-03-01T09:00:00Z")],
    );
    expect(found.corrections).toEqual([]);
    expect(found.unknown).toEqual([
      { resourceType: "instance", resourceId: "a", why: "it is not in the record, and its size is unknown" },
      { resourceType: "instance", resourceId: "b", why: "it is not in the record, and its size is unknown" },
    ]);
  });
});

describe("what is put off: transitional", () => {
  test.each([
    ["a create", [instance("a", { inTransition: true })], []],
    ["a new life", [instance("a", { inTransition: true })], [dead("a", "2026-03-01T09:00:00Z")]],
    ["an update", [instance("a", { inTransition: true, state: "building" })], [row("a")]],
  ])("%s", (_, seen, recorded) => {
    const found = difference(seen, recorded);
    expect(found.corrections).toEqual([]);
    expect(found.deferred).toEqual({ transitional: 1, recent: 0 });
  });

  test("no difference is none, in transition or not", () => {
    expect(difference([instance("a", { inTransition: true })], [row("a")]).deferred).toEqual(NO_DEFERRALS);
  });

  test("it holds without a settle window, too", () => {
    const found = difference([instance("a", { inTransition: true })], [], { settleSeconds: 0 });
    expect(found.deferred).toEqual({ transitional: 1, recent: 0 });
  });

  test("a resource that is recent, too, counts as transitional", () => {
    const found = difference([instance("a", { inTransition: true, changedAt: at(NOW) })], []);
    expect(found.deferred).toEqual({ transitional: 1, recent: 0 });
  });

  test("what ended is in no transition", () => {
    const found = difference([{ ...ended("a", "2026-03-02T03:00:00Z"), inTransition: true }], [row("a")]);
    expect(lines(found)).toEqual(["delete a 2026-03-02T03:00:00Z"]);
  });
});

/** Around the window's far edge, in the run, and after it: what is decided of a difference of that age. */
const AGES = [
  ["a minute old", "2026-03-02T11:59:00Z", false],
  ["a microsecond younger than a minute", "2026-03-02T11:59:00.000001Z", true],
  ["of the run's own instant", "2026-03-02T12:00:00Z", true],
  ["after the run", "2026-03-02T12:10:00Z", true],
] as const;

describe("what is put off: recent", () => {
  describe.each(AGES)("%s", (_, instant, deferred) => {
    const when = at(instant);
    test.each([
      ["changed by the platform", [instance("a", { changedAt: when, state: "error" })], [row("a")]],
      ["created by the platform", [instance("a", { createdAt: when, changedAt: null })], []],
      ["created and changed", [instance("a", { createdAt: when })], []],
      ["ended by the platform", [{ ...ended("a", instant), changedAt: null }], [row("a")]],
      ["told by the newest event", [instance("a", { state: "error" })], [row("a", { lastEventAt: when })]],
      ["revived", [instance("a")], [dead("a", "2026-03-01T09:00:00Z", { lastEventAt: when })]],
      ["absent", [], [row("a", { lastEventAt: when })]],
    ])("%s", (_what, seen, recorded) => {
      const found = difference(seen, recorded);
      expect(found.corrections).toHaveLength(deferred ? 0 : 1);
      expect(found.deferred).toEqual({ transitional: 0, recent: deferred ? 1 : 0 });
    });

    test("without a settle window, it isn't", () => {
      const found = difference(
        [instance("a", { changedAt: when, state: "error" })],
        [row("a", { lastEventAt: when })],
        {
          settleSeconds: 0,
        },
      );
      expect(found.corrections).toHaveLength(1);
      expect(found.deferred).toEqual(NO_DEFERRALS);
    });
  });

  test("what the platform changed of the dead dates nothing: the end does", () => {
    const report = { ...ended("a", "2026-03-02T03:00:00Z"), changedAt: at(NOW) };
    expect(lines(difference([report], [row("a")]))).toEqual(["delete a 2026-03-02T03:00:00Z"]);
  });

  test("no difference is none, however young", () => {
    const found = difference([instance("a", { changedAt: at(NOW) })], [row("a", { lastEventAt: at(NOW) })]);
    expect(found.deferred).toEqual(NO_DEFERRALS);
  });
});

describe("when a correction is dated", () => {
  const young = { settleSeconds: 0 };

  test("a create whose instant the platform doesn't tell: the poll instant", () => {
    expect(lines(difference([instance("a", { createdAt: null })], []))).toEqual([`create a ${NOW}`]);
  });

  test.each([
    [
      "told before the earlier life's end: just behind it",
      "2026-03-01T08:00:00Z",
      "2026-03-01T09:00:00.000001Z",
    ],
    [
      "told at the earlier life's very end: just behind it",
      "2026-03-01T09:00:00Z",
      "2026-03-01T09:00:00.000001Z",
    ],
    ["told behind the earlier life: as told", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z"],
  ])("a new life %s", (_, createdAt, dated) => {
    const found = difference(
      [instance("a", { createdAt: at(createdAt) })],
      [dead("a", "2026-03-01T09:00:00Z")],
    );
    expect(lines(found)).toEqual([`create a ${dated}`]);
  });

  test("a new life behind a straggler of the earlier one: behind that, too", () => {
    const trailed = dead("a", "2026-03-01T09:00:00Z", { lastEventAt: at("2026-03-01T09:30:00Z") });
    const found = difference([instance("a", { createdAt: at("2026-03-01T09:10:00Z") })], [trailed]);
    expect(lines(found)).toEqual(["create a 2026-03-01T09:30:00.000001Z"]);
  });

  test("an update behind an event that is dated after the run", () => {
    const found = difference(
      [instance("a", { state: "error" })],
      [row("a", { lastEventAt: at("2026-03-02T12:10:00Z") })],
      young,
    );
    expect(lines(found)).toEqual(["update a 2026-03-02T12:10:00.000001Z"]);
  });

  test("an update at the very instant of the newest event: it folds behind it as it is", () => {
    const found = difference(
      [instance("a", { state: "error" })],
      [row("a", { lastEventAt: at(NOW) })],
      young,
    );
    expect(lines(found)).toEqual([`update a ${NOW}`]);
  });

  test("an absence behind an event that is dated after the run", () => {
    const found = difference([], [row("a", { lastEventAt: at("2026-03-02T12:10:00Z") })], young);
    expect(lines(found)).toEqual(["delete a 2026-03-02T12:10:00.000001Z"]);
  });

  test("an end that is told to be before the row's newest event: just behind that", () => {
    const found = difference([ended("a", "2026-02-28T00:00:00Z")], [row("a")]);
    expect(lines(found)).toEqual(["delete a 2026-03-01T00:00:00.000001Z"]);
  });

  test("an end that is told to be after the run: as told", () => {
    const found = difference([ended("a", "2026-03-02T12:10:00Z")], [row("a")], young);
    expect(lines(found)).toEqual(["delete a 2026-03-02T12:10:00Z"]);
  });
});

/** `count` living instances. */
function fleet(count: number, changed: Partial<RecordedResource> = {}): RecordedResource[] {
  return Array.from({ length: count }, (_, i) => row(`i${String(i).padStart(4, "0")}`, changed));
}

/** All of them as they are, but for the first `absent`. */
function listed(recorded: readonly RecordedResource[], absent: number): ObservedResource[] {
  return recorded.slice(absent).map(({ resourceId }) => instance(resourceId));
}

describe("the mass-delete brake", () => {
  test.each([
    ["11 of 55, which is 20 %", 55, 11, 20, true],
    ["11 of 54, which is more", 54, 11, 20, false],
    ["10 of 10: so few may always be gone", 10, 10, 20, true],
    ["11 of 11", 11, 11, 20, false],
    ["10 of 50 with no tolerance", 50, 10, 0, true],
    ["11 of 5000 with no tolerance", 5_000, 11, 0, false],
    ["200 of 200 without a brake", 200, 200, 100, true],
    ["199 of 200 with the least of brakes", 200, 199, 99, false],
  ])("%s", (_, living, absent, maxAbsentPercent, let_through) => {
    const recorded = fleet(living);
    const found = difference(listed(recorded, absent), recorded, { maxAbsentPercent });
    expect(found.corrections).toHaveLength(let_through ? absent : 0);
    expect(found.withheld).toEqual(
      let_through ? [] : [{ resourceType: "instance", absent, living, deletes: absent }],
    );
  });

  test("a confirmed mass delete is booked", () => {
    const recorded = fleet(40);
    const found = difference([], recorded, { confirmMassDelete: true });
    expect(found.corrections).toHaveLength(40);
    expect(found.withheld).toEqual([]);
  });

  test("counts a type by itself, and withholds nothing but its deletes by absence", () => {
    const instances = fleet(40);
    const volumes = fleet(40, { resourceType: "volume", size: '{"size_gb":1}' });
    const seen = [
      ended("i0000", "2026-03-02T03:00:00Z"),
      instance("i0001", { state: "error" }),
      instance("new"),
      ...listed(volumes, 3).map((resource) => ({
        ...resource,
        resourceType: "volume",
        size: '{"size_gb":1}',
      })),
    ];
    const found = difference(seen, [...instances, ...volumes]);
    expect(lines(found)).toEqual([
      "create new 2026-03-01T00:00:00Z",
      "delete i0000 2026-03-02T03:00:00Z",
      "update i0001 2026-03-02T12:00:00Z",
      "delete i0000 2026-03-02T12:00:00Z",
      "delete i0001 2026-03-02T12:00:00Z",
      "delete i0002 2026-03-02T12:00:00Z",
    ]);
    expect(found.withheld).toEqual([{ resourceType: "instance", absent: 38, living: 40, deletes: 38 }]);
  });

  test("what is only put off counts as gone: it can't carry the rest below the mark", () => {
    const recorded = [...fleet(30, { lastEventAt: at(NOW) }), ...fleet(41).slice(30)];
    const found = difference([], recorded);
    expect(found.deferred.recent).toBe(30);
    expect(found.withheld).toEqual([{ resourceType: "instance", absent: 41, living: 41, deletes: 11 }]);
    expect(found.corrections).toEqual([]);
  });
});

describe("a resource that is listed twice", () => {
  test.each([
    [
      "its end counts, seen first",
      [ended("a", "2026-03-02T03:00:00Z"), instance("a")],
      ["delete a 2026-03-02T03:00:00Z"],
    ],
    [
      "its end counts, seen last",
      [instance("a"), ended("a", "2026-03-02T03:00:00Z")],
      ["delete a 2026-03-02T03:00:00Z"],
    ],
    [
      "else what was changed later",
      [
        instance("a", { state: "error", changedAt: at("2026-03-01T02:00:00Z") }),
        instance("a", { changedAt: at("2026-03-01T01:00:00Z") }),
      ],
      [`update a ${NOW}`],
    ],
    ["else what came last", [instance("a", { state: "error" }), instance("a")], []],
  ])("%s", (_, seen, expected) => {
    expect(lines(difference(seen, [row("a")]))).toEqual(expected);
  });
});

describe("what can be no row of the record is told", () => {
  test.each([
    ["an empty id", instance("")],
    ["a NUL", instance("a\0b")],
    ["half a surrogate pair", instance("a\ud800")],
    ["an id of 513 bytes", instance("x".repeat(513))],
    ["a living one without a state", instance("a", { state: null })],
  ])("%s", (_, resource) => {
    const observed = new ObservedResources();
    expect(observed.add(resource)).toBeString();
    expect(observed.size).toBe(0);
  });
});
