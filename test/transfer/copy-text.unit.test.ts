import { describe, expect, test } from "bun:test";
import { copyFromLines, LineFault, LinesFromCopy } from "../../src/transfer/copy-text.ts";
import type { Column } from "../../src/transfer/tables.ts";

const TEXT: Column = { name: "t", type: "text" };
const JSONB: Column = { name: "j", type: "jsonb" };
const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** One row of a text and a jsonb: as COPY spells it, and as a stream does. */
const SPELLINGS: readonly [name: string, copy: string, line: string][] = [
  ["plain", 'a\t{"k": 1}\n', '["a",{"k": 1}]\n'],
  ["NULL", "\\N\t\\N\n", "[null,null]\n"],
  ["empty", "\t{}\n", '["",{}]\n'],
  ["the text \\N", "\\\\N\t{}\n", '["\\\\N",{}]\n'],
  ["the text \\.", "\\\\.\t{}\n", '["\\\\.",{}]\n'],
  ["the text null", "null\t{}\n", '["null",{}]\n'],
  ["a quote and a backslash", 'say "\\\\"\t{}\n', '["say \\"\\\\\\"",{}]\n'],
  ["tab, newline, carriage return", "\\t\\n\\r\t{}\n", '["\\u0009\\u000a\\u000d",{}]\n'],
  ["a control character", "\u0001\t{}\n", '["\\u0001",{}]\n'],
  ["beyond ASCII", 'ü🙂\t{"ß": "🙂"}\n', '["ü🙂",{"ß": "🙂"}]\n'],
  ["digits", "a\t[12345678901234567890, 0.1000, 1E-7]\n", '["a",[12345678901234567890, 0.1000, 1E-7]]\n'],
  ["JSON with escapes", 'a\t{"k": "\\\\n\\\\"\\\\\\\\"}\n', '["a",{"k": "\\n\\"\\\\"}]\n'],
  ["JSON that is no object", 'a\t"x,]}"\n', '["a","x,]}"]\n'],
  ["JSON with brackets in texts", 'a\t{"k": ["]", "}", ","]}\n', '["a",{"k": ["]", "}", ","]}]\n'],
];

describe("a row's two spellings", () => {
  for (const [name, copy, line] of SPELLINGS) {
    test(`${name}: out`, () => {
      const lines = new LinesFromCopy([TEXT, JSONB], 100, 1 << 20);
      expect(lines.push(encode(copy))).toEqual([]);
      expect(decode(lines.end()?.bytes ?? new Uint8Array())).toBe(line);
    });

    test(`${name}: in`, () => {
      // A tab may come as \t, which is how PostgreSQL itself would write it.
      expect(decode(copyFromLines(encode(line), [TEXT, JSONB]))).toBe(copy);
    });
  }
});

test("chunks may end anywhere", () => {
  const copy = encode(SPELLINGS.map(([, text]) => text).join(""));
  const whole = SPELLINGS.map(([, , line]) => line).join("");
  const lines = new LinesFromCopy([TEXT, JSONB], 100, 1 << 20);
  for (const byte of copy) lines.push(Uint8Array.of(byte));
  expect(decode(lines.end()?.bytes ?? new Uint8Array())).toBe(whole);
});

test("blocks end behind so many rows or bytes, whatever the chunks", () => {
  const copy = encode("a\t{}\nbb\t{}\nccc\t{}\n");
  // 9, 10 and 11 bytes with their newlines.
  for (const chunk of [1, 7, 100]) {
    const lines = new LinesFromCopy([TEXT, JSONB], 100, 15);
    const blocks = [];
    for (let at = 0; at < copy.length; at += chunk) blocks.push(...lines.push(copy.subarray(at, at + chunk)));
    expect(blocks.map(({ bytes, rows }) => [decode(bytes), rows])).toEqual([['["a",{}]\n["bb",{}]\n', 2]]);
    expect(lines.end()?.rows).toBe(1);
  }
  const two = new LinesFromCopy([TEXT, JSONB], 2, 1 << 20);
  expect(two.push(copy).map(({ rows }) => rows)).toEqual([2]);
});

test("the sum doesn't depend on the rows' order, and does on what they say", () => {
  const sumOf = (copy: string) => {
    const lines = new LinesFromCopy([TEXT], 100, 1 << 20);
    lines.push(encode(copy));
    return lines.end()?.sum;
  };
  const hash = (line: string) => Bun.hash.xxHash64(encode(line));
  expect(sumOf("a\nb\n")).toBe(BigInt.asUintN(64, hash('["a"]') + hash('["b"]')));
  expect(sumOf("b\na\n")).toBe(sumOf("a\nb\n"));
  expect(sumOf("a\na\n")).not.toBe(sumOf("b\nb\n"));
});

test("a COPY that ends within a row is no table", () => {
  const lines = new LinesFromCopy([TEXT], 100, 1 << 20);
  lines.push(encode("a\nb"));
  expect(() => lines.end()).toThrow("ended within a row");
});

for (const line of [
  '"a",{}]\n',
  '["a"]\n',
  '["a",{},1]\n',
  "[1,{}]\n",
  '["a",{}',
  '["a",{}]',
  '["a,{}]\n',
  '["a",]\n',
  '["\\x",{}]\n',
  '["a",{"k": "\n"}]\n',
]) {
  test(`${JSON.stringify(line)} is no row`, () => {
    const lines = encode(`["a",{}]\n${line}`);
    expect(() => copyFromLines(lines, [TEXT, JSONB])).toThrow(new LineFault(2));
  });
}
