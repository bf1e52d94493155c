/** Cursors: opaque, whole, and of one list. */
import { describe, expect, test } from "bun:test";
import { pageAnswer } from "../../src/http/json.ts";
import { decodeCursor, encodeCursor } from "../../src/http/page.ts";
import { Problem } from "../../src/problem.ts";

describe("a cursor", () => {
  test.each([
    [["1767225600000000", "event-1"]],
    [["", ""]],
    [["ü/😀 &?=", "x".repeat(512), "y".repeat(512)]],
    [[]],
  ])("of %j comes back as it was, and is safe in a URL", (position) => {
    const cursor = encodeCursor("events", position);
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(decodeCursor("events", cursor)).toEqual(position);
  });

  test("is short enough for a URL with the longest position that there is", () => {
    const cursor = encodeCursor(
      "resources",
      ["c", "t", "i"].map((letter) => letter.repeat(512)),
    );
    expect(cursor.length).toBeLessThan(2_200);
    expect(decodeCursor("resources", cursor)).toHaveLength(3);
  });
});

describe("refused is", () => {
  const good = encodeCursor("events", ["1767225600000000", "event-1"]);
  const cases: [what: string, text: string][] = [
    ["another list's", encodeCursor("resources", ["1767225600000000", "event-1"])],
    ["nothing", ""],
    ["a word", "abc"],
    ["an altered one", good.replace(/.$/, (last) => (last === "A" ? "B" : "A"))],
    ["one with more behind it", `${good}AAAA`],
    ["one in another alphabet", Buffer.from(good, "base64url").toString("base64").replace(/=*$/, "+/==")],
    ["an oversized one", "A".repeat(100_000)],
    ["plain base64 of JSON", Buffer.from('["events","1","2"]').toString("base64url")],
    ["one with other characters", "ü"],
    ["one with a space", `${good} `],
  ];
  test.each(cases)("%s", (_, text) => {
    expect(fault(() => decodeCursor("events", text))).toEqual([
      { loc: "query.cursor", msg: "is not a cursor of this list" },
    ]);
  });

  test("every cut of a good one", () => {
    for (let length = 0; length < good.length; length++) {
      expect(fault(() => decodeCursor("events", good.slice(0, length)))).toHaveLength(1);
    }
  });

  test("every other spelling of a good one: one position has one cursor", () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (const letter of alphabet) {
      const other = good.slice(0, -1) + letter;
      if (other !== good) expect(fault(() => decodeCursor("events", other))).toHaveLength(1);
    }
  });
});

test("a page holds its items' text as it is", async () => {
  const answer = pageAnswer('{"n":12345678901234567890},{"n":0.10}', "next");
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect(await answer.text()).toBe('{"items":[{"n":12345678901234567890},{"n":0.10}],"next_cursor":"next"}');
  expect(await pageAnswer("", null).text()).toBe('{"items":[],"next_cursor":null}');
});

function fault(work: () => unknown): unknown {
  try {
    work();
    return "taken";
  } catch (error) {
    return error instanceof Problem && error.status === 400 ? error.errors : error;
  }
}
