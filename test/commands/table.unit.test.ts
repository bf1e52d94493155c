import { describe, expect, test } from "bun:test";
import { PLAIN, renderTable, styleFor } from "../../src/commands/table.ts";

describe("renderTable", () => {
  test("columns are as wide as their widest cell, numbers to the right, no trailing spaces", () => {
    expect(
      renderTable(
        ["Type", { title: "N", align: "right" }, "Note"],
        [
          ["volume", "7", ""],
          ["ip", "1200", "x"],
        ],
      ),
    ).toBe(["Type       N  Note", "──────  ────  ────", "volume     7", "ip      1200  x"].join("\n"));
  });

  test("wide characters count as two", () => {
    expect(renderTable(["Project", "State"], [["研究", "active"]]).split("\n")[2]).toBe("研究     active");
  });

  test("control characters from outside are spelled out", () => {
    expect(renderTable(["Id"], [["a\u001b[2Jb\nc\u202ed"]]).split("\n")[2]).toBe(
      "a\\u001b[2Jb\\u000ac\\u202ed",
    );
  });

  test("no rows: the titles and the rule", () => {
    expect(renderTable(["Id", "Cloud"], [])).toBe("Id  Cloud\n──  ─────");
  });
});

describe("styleFor", () => {
  test("plain where stdout is no terminal", () => {
    expect(styleFor({ isTTY: false }, {})).toBe(PLAIN);
    expect(styleFor({}, {})).toBe(PLAIN);
  });

  test("plain with NO_COLOR, whatever its value", () => {
    expect(styleFor({ isTTY: true }, { NO_COLOR: "1" })).toBe(PLAIN);
  });

  test("bold on a terminal, also with an empty NO_COLOR", () => {
    expect(styleFor({ isTTY: true }, { NO_COLOR: "" }).bold("x")).toBe("\u001b[1mx\u001b[22m");
  });
});
