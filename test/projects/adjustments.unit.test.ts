/** Pricing adjustments: what is taken, and every violation at its place. */
import { describe, expect, test } from "bun:test";
import { adjustmentFaults } from "../../src/projects/adjustments.ts";

const AT = "body.metadata.pricing_adjustments";
const good = { type: "discount", rate: "0.15", scope: "all" };
const locs = (value: unknown) => adjustmentFaults(value).map(({ loc }) => loc);

describe("taken", () => {
  test.each(["discount", "kickback", "surcharge", "project_discount"])("type %s", (type) => {
    expect(adjustmentFaults([{ ...good, type }])).toEqual([]);
  });

  test.each(["0", "1", "0.0", "0.5", "0.123456", "0.000001", "1.0", "1.000000"])("rate %s", (rate) => {
    expect(adjustmentFaults([{ ...good, rate }])).toEqual([]);
  });

  test.each(["all", "openstack", "openstack.instance", "os_2.floating_ip", "_"])("scope %s", (scope) => {
    expect(adjustmentFaults([{ ...good, scope }])).toEqual([]);
  });

  test("a description of 500 characters, counted as characters", () => {
    expect(adjustmentFaults([{ ...good, description: "" }])).toEqual([]);
    expect(adjustmentFaults([{ ...good, description: "😀".repeat(500) }])).toEqual([]);
  });

  test("64 of them", () => {
    expect(adjustmentFaults(Array(64).fill(good))).toEqual([]);
  });
});

describe("refused", () => {
  test.each([
    ["not an array", {}, [AT]],
    ["null", null, [AT]],
    ["a text", "[]", [AT]],
    ["empty", [], [AT]],
    ["65", Array(65).fill(good), [AT]],
    ["65 that are wrong, too: one violation", Array(65).fill({ rate: 1 }), [AT]],
    ["elements that are no objects", [good, 1, null, [], "x"], [1, 2, 3, 4].map((at) => `${AT}.${at}`)],
    ["an empty element", [{}], [`${AT}.0.type`, `${AT}.0.rate`, `${AT}.0.scope`]],
    ["an unknown member", [good, { ...good, note: 1 }], [`${AT}.1.note`]],
    ["unknown members with odd names", [{ ...good, "a/b.c~": 1, "": 2 }], [`${AT}.0.a/b.c~`, `${AT}.0.`]],
    [
      "names that objects have",
      [{ ...good, constructor: 1, toString: 1 }],
      [`${AT}.0.constructor`, `${AT}.0.toString`],
    ],
    [
      "everything at once",
      [{ type: "x", rate: 0.1, scope: "A", description: 5, extra: 1 }, good, { type: "discount" }],
      [
        `${AT}.0.extra`,
        `${AT}.0.type`,
        `${AT}.0.rate`,
        `${AT}.0.scope`,
        `${AT}.0.description`,
        `${AT}.2.rate`,
        `${AT}.2.scope`,
      ],
    ],
  ] as [string, unknown, string[]][])("%s", (_, value, expected) => {
    expect(locs(value).sort()).toEqual([...expected].sort());
  });

  test("every violation of 64 elements is told", () => {
    expect(adjustmentFaults(Array(64).fill({})).length).toBe(192);
  });

  test.each([
    0.15,
    1,
    null,
    {},
    "",
    "1.1",
    "1.000001",
    "2",
    "-0.1",
    "+0.1",
    ".5",
    "0.",
    "1.",
    "00.5",
    "01",
    "0,5",
    "1e-1",
    "0.1234567",
    "1.0000000",
    " 0.5",
    "0.5 ",
    "0.5\n",
    "0x1",
    "NaN",
    "٠.٥",
  ])("rate %p, once", (rate) => {
    expect(locs([{ ...good, rate }])).toEqual([`${AT}.0.rate`]);
  });

  test.each(["Discount", "", "rebate", 1, null, {}])("type %p, once", (type) => {
    expect(locs([{ ...good, type }])).toEqual([`${AT}.0.type`]);
  });

  test.each(["", "All", "openstack.", ".instance", "a.b.c", "a b", "a-b", "ü", "all\n", 1, null])(
    "scope %p, once",
    (scope) => {
      expect(locs([{ ...good, scope }])).toEqual([`${AT}.0.scope`]);
    },
  );

  test.each(["x".repeat(501), 1, null, {}])("description, once", (description) => {
    expect(locs([{ ...good, description }])).toEqual([`${AT}.0.description`]);
  });

  test("each is told in words", () => {
    expect(adjustmentFaults([{ type: "x", rate: 1, scope: "", description: 1, more: 1 }])).toEqual([
      { loc: `${AT}.0.more`, msg: "is no member of an adjustment" },
      { loc: `${AT}.0.type`, msg: "must be one of discount, kickback, surcharge, project_discount" },
      {
        loc: `${AT}.0.rate`,
        msg: "must be a decimal as a string, from 0 to 1, with at most six fractional digits",
      },
      {
        loc: `${AT}.0.scope`,
        msg: "must be all, a platform, or platform.resource_type, in lower-case letters, digits and underscores",
      },
      { loc: `${AT}.0.description`, msg: "must be a string of at most 500 characters" },
    ]);
    expect(adjustmentFaults([])).toEqual([{ loc: AT, msg: "must not be empty" }]);
    expect(adjustmentFaults(1)).toEqual([{ loc: AT, msg: "must be an array" }]);
    expect(adjustmentFaults([{}])[0]?.msg).toBe("is required");
    expect(adjustmentFaults([1])).toEqual([{ loc: `${AT}.0`, msg: "must be an object" }]);
    expect(adjustmentFaults(Array(70).fill(good))).toEqual([
      { loc: AT, msg: "must hold at most 64 adjustments, got 70" },
    ]);
  });
});
