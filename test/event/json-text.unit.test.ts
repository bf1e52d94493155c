import { describe, expect, test } from "bun:test";
import {
  canonicalJson,
  elementsOf,
  hasNul,
  itemsOf,
  measure,
  membersOf,
  memberText,
  scrubNul,
} from "../../src/event/json-text.ts";

const cut = (text: string, spans: readonly { start: number; end: number }[]) =>
  spans.map((s) => text.slice(s.start, s.end));

describe("items of a request", () => {
  test("elements of an array, whatever stands around and inside them", () => {
    const text = ' \n[ {"a": "]},[\\"" } ,\t[1,[2]] , "x\\\\" , -1.5e3,null,true ]\r\n';
    expect(cut(text, itemsOf(text))).toEqual([
      '{"a": "]},[\\"" }',
      "[1,[2]]",
      '"x\\\\"',
      "-1.5e3",
      "null",
      "true",
    ]);
  });

  test("one value is one item", () => {
    expect(cut(' {"a":1} ', itemsOf(' {"a":1} '))).toEqual(['{"a":1}']);
    expect(cut("12", itemsOf("12"))).toEqual(["12"]);
  });

  test("an empty array has none", () => {
    expect(itemsOf(" [ ] ")).toEqual([]);
    expect(elementsOf("[]", 0)).toEqual([]);
  });
});

describe("members", () => {
  test("are found by their decoded key; the last of two counts", () => {
    const text = '{"size" : 1, "s\\u0069ze":{"a":"}"}, "x":[] }';
    const { members, end } = membersOf(text, 0);
    expect(cut(text, [...members.values()])).toEqual(['{"a":"}"}', "[]"]);
    expect([...members.keys()]).toEqual(["size", "x"]);
    expect(end).toBe(text.length);
  });

  test("null and absent are the same to memberText, digits stay", () => {
    expect(memberText('{"a":null}', "a")).toBeNull();
    expect(memberText('{"a":1}', "b")).toBeNull();
    expect(memberText(' { "a" : 0.1000 }', "a")).toBe("0.1000");
  });
});

describe("NUL", () => {
  test.each([
    ['{"a":"\\u0000"}', true, '{"a":""}'],
    ['{"\\u0000k":1}', true, '{"k":1}'],
    ['{"a":"\\\\u0000"}', false, '{"a":"\\\\u0000"}'],
    ['{"a":"\\\\\\u0000x"}', true, '{"a":"\\\\x"}'],
    ['{"a":"u0000"}', false, '{"a":"u0000"}'],
    ['{"a":"\\u00001\\u0000"}', true, '{"a":"1"}'],
  ])("%s", (text, has, scrubbed) => {
    expect(hasNul(text)).toBe(has);
    expect(scrubNul(text)).toBe(scrubbed);
  });
});

describe("what the database would make of an item", () => {
  test.each([
    ["1", 0],
    ["{}", 1],
    ['{"a":[{"b":"[[[["}]}', 3],
  ])("%s nests %d deep", (text, depth) => {
    expect(measure(text).depth).toBe(depth);
  });

  test.each([
    "1e131072",
    "-1e131072",
    "1e-16384",
    "0.1e-16383",
    "1e400000",
    `1${"0".repeat(131_072)}`,
    `0.${"1".repeat(16_384)}`,
  ])("%.20s … is past numeric", (number) => {
    expect(measure(`[${number}]`).overflow).toBe(number.slice(0, 40));
  });

  test.each([
    "1e131071",
    "1e-16383",
    "0.0001e131075",
    "12345678901234567890",
    "1".repeat(131_072),
    `0.${"1".repeat(16_383)}`,
    "0e9",
  ])("%.20s … is not", (number) => {
    expect(measure(number).overflow).toBeNull();
  });

  test("exponents grow: 1e9 becomes ten digits, 1e-3 becomes 0.001", () => {
    expect(measure("1e9").growth).toBe(7);
    expect(measure("1e-3").growth).toBe(1);
    expect(measure("[1e9,1E+9]").growth).toBe(13);
    expect(measure('"1e9"').growth).toBe(0);
  });
});

describe("equal values have one canonical text", () => {
  test.each([
    ['{"a":1,"b":2}', '{ "b": 2.0, "a": 10e-1 }'],
    ["0", "-0.000"],
    ["1e2", "100"],
    ["0.1000", "1e-1"],
    ['{"a":{"x":[1,{"y":null}]}}', '{"a":{"x":[1.00,{"y":null}]}}'],
    ['{"ü":"\\u00fc"}', '{"\\u00fc":"ü"}'],
    ['{"a":1,"a":2}', '{"a":2}'],
  ])("%s = %s", (a, b) => {
    expect(canonicalJson(a)).toBe(canonicalJson(b));
  });

  test.each([
    ["12345678901234567890", "12345678901234567891"],
    ["[1,2]", "[2,1]"],
    ['{"a":"1"}', '{"a":1}'],
    ["1", "-1"],
    ["1", "10"],
    ["{}", "[]"],
    ["null", '"null"'],
  ])("%s ≠ %s", (a, b) => {
    expect(canonicalJson(a)).not.toBe(canonicalJson(b));
  });
});

describe("where an item's payload and its size stand", () => {
  test.each([
    ['{"payload":{"size":{"n":1}}}', '{"size":{"n":1}}', '{"n":1}'],
    [
      '{ "a" : 1 , "payload" : { "state":"x" , "size" : { "n": [1 , 2] } } , "b":2 }',
      '{ "state":"x" , "size" : { "n": [1 , 2] } }',
      '{ "n": [1 , 2] }',
    ],
    [
      '{"payload":{"provider":{"size":{"n":2}},"state":"size"}}',
      '{"provider":{"size":{"n":2}},"state":"size"}',
      null,
    ],
    ['{"size":{"n":3},"other":{"size":4,"payload":5}}', null, null],
    ['{"other":["payload",{"payload":1}],"payload":null}', "null", null],
    ['{"payload":["size",{"size":1}]}', '["size",{"size":1}]', null],
    // The last one counts, as it does for JSON.parse.
    ['{"payload":{"size":{"n":1}},"payload":{"state":"x"}}', '{"state":"x"}', null],
    ['{"payload":{"size":1,"size" : {"n":2} }}', '{"size":1,"size" : {"n":2} }', '{"n":2}'],
    ['{"payloa\\u0064":{"\\u0073ize":{"n":7}}}', '{"\\u0073ize":{"n":7}}', '{"n":7}'],
    ['{"payload":{"a":"}\\"{","size":"s"}}', '{"a":"}\\"{","size":"s"}', '"s"'],
    ["[]", null, null],
    ['[{"payload":{"size":1}}]', null, null],
    ['"payload"', null, null],
  ])("%s", (text, payload, size) => {
    const found = measure(text);
    const slice = (span: { start: number; end: number } | null) =>
      span === null ? null : text.slice(span.start, span.end);
    expect([slice(found.payload), slice(found.size)]).toEqual([payload, size]);
  });
});
