import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { linearPattern, PatternRefused } from "../../src/resource-types/pattern.ts";

function isValid(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false;
  }
}

describe("a linear pattern", () => {
  test.each([
    ["^m1\\.(small|large)$", ["m1.small", "m1.large"], ["m1.medium", "m1xsmall", "m1.small\n", "am1.small"]],
    ["b+", ["abc", "b", "abbbc"], ["ac", ""]],
    ["^$", [""], ["a", "\n"]],
    ["", ["", "anything"], []],
    ["^[^\\s/]{2,3}$", ["ab", "a😀c"], ["a", "abcd", "a b", "a/b"]],
    ["^\\p{Lu}\\u{1F600}?$", ["Ä", "Ä😀"], ["ä", "Ä😁", "😀"]],
    ["^.$", ["😀", "ü"], ["ab", "\n", ""]],
    ["\\bgpu\\b", ["a gpu here", "gpu"], ["gpus", "egpu"]],
    ["^(?:a?){3}b$", ["b", "ab", "aaab"], ["aaaab"]],
    ["^(?<family>[a-z]+)-\\x31$", ["m-1"], ["m-2"]],
    ["^\\cJ[\\]\\\\]$", ["\n]", "\n\\"], ["\nJ"]],
    ["^(a*)*b$", ["b", "aab"], ["aac"]],
  ])("%p", (source, fitting, others) => {
    const pattern = linearPattern(source);
    for (const text of fitting) expect([text, pattern.test(text)]).toEqual([text, true]);
    for (const text of others) expect([text, pattern.test(text)]).toEqual([text, false]);
  });

  test("says what the platform's engine says, for thousands of patterns", () => {
    const atoms =
      "a b c [ab] [^a] . \\w \\d \\u0061 \\x62 (?:a|b) (a) é 😀 \\u{1F600} \\ud83d\\ude00 \\p{L} \\t \\. [\\]a] (?:) (a*)* (a|b)* (?:a|) \\s ^ $ \\b \\B";
    const atom = fc.constantFrom(...atoms.split(" "));
    const quantifier = fc.constantFrom(
      "",
      "",
      "",
      "*",
      "+",
      "?",
      "{2}",
      "{1,3}",
      "{2,}",
      "{0}",
      "*?",
      "{0,2}?",
    );
    const assertions = ["^", "$", "\\b", "\\B"];
    const term = fc.tuple(atom, quantifier).map(([a, q]) => (assertions.includes(a) ? a : a + q));
    const sequence = fc.array(term, { maxLength: 5 }).map((terms) => terms.join(""));
    const source = fc
      .array(sequence, { minLength: 1, maxLength: 3 })
      .map((options) => options.join("|"))
      .filter(isValid);
    const character = fc.constantFrom("a", "b", "c", "1", " ", "\n", "é", "😀", "\ud83d", ".", "]", "\t");
    const text = fc.array(character, { maxLength: 8 }).map((characters) => characters.join(""));
    fc.assert(
      fc.property(source, fc.array(text, { minLength: 1, maxLength: 6 }), (expression, texts) => {
        const ours = linearPattern(expression);
        const theirs = new RegExp(expression, "u");
        for (const one of texts) expect([one, ours.test(one)]).toEqual([one, theirs.test(one)]);
      }),
      { numRuns: 4_000 },
    );
  });

  test.each(["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])(
    "%p, a trap for other engines, takes no time",
    (source) => {
      const start = performance.now();
      expect(linearPattern(source).test(`${"a".repeat(50_000)}!`)).toBe(false);
      expect(performance.now() - start).toBeLessThan(2_000);
    },
  );

  test.each([
    ["(", "it is no regular expression"],
    ["\\", "it is no regular expression"],
    ["a{2,1}", "it is no regular expression"],
    ["(?=a)", "it looks ahead or behind"],
    ["(?!a)", "it looks ahead or behind"],
    ["(?<=a)b", "it looks ahead or behind"],
    ["(?<!a)b", "it looks ahead or behind"],
    ["(a)\\1", "it refers back to a group"],
    ["(?<n>a)\\k<n>", "it refers back to a group"],
    ["(a{100}){100}", "it is too large"],
    ["(?:){99999999}", "it is too large"],
    ["(".repeat(200) + ")".repeat(200), "its groups nest too deep"],
  ])("%p is refused", (source, reason) => {
    expect(() => linearPattern(source)).toThrow(PatternRefused);
    expect(() => linearPattern(source)).toThrow(reason);
  });
});
