import { describe, expect, test } from "bun:test";
import { EARLIEST, formatInstant, instantFromMicros, LATEST, parseInstant } from "../../src/event/instant.ts";

describe("instants that are taken", () => {
  test.each([
    ["1970-01-01T00:00:00Z", 0n],
    ["1970-01-01T00:00:00.000001Z", 1n],
    ["1969-12-31T23:59:59.999999Z", -1n],
    // 20,513 days: 56 years of 365, 14 leap days (1972 … 2024), 59 days to 1 March.
    ["2026-03-01T00:00:00Z", 20_513n * 86_400_000_000n],
    ["2026-03-01T05:30:00+05:30", 20_513n * 86_400_000_000n],
    ["2026-02-28T18:30:00-05:30", 20_513n * 86_400_000_000n],
    ["2026-03-01t00:00:00.25z", 20_513n * 86_400_000_000n + 250_000n],
    // Digits past the microsecond are cut off, not rounded.
    ["2026-03-01T00:00:00.9999999Z", 20_513n * 86_400_000_000n + 999_999n],
    ["2024-02-29T00:00:00Z", 19_782n * 86_400_000_000n],
    ["2000-02-29T00:00:00Z", 11_016n * 86_400_000_000n],
    ["0001-01-01T00:00:00Z", EARLIEST],
    ["9999-12-31T23:59:59.999999Z", LATEST],
  ])("%s", (text, micros) => {
    expect(parseInstant(text)).toBe(instantFromMicros(String(micros)));
  });
});

describe("instants that are refused", () => {
  test.each([
    "",
    "2026-03-01",
    "2026-03-01T00:00:00",
    "2026-03-01 00:00:00Z",
    "2026-03-01T00:00Z",
    "2026-03-01T24:00:00Z",
    "2026-03-01T23:59:60Z",
    "2026-03-01T23:60:00Z",
    "2026-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-03-00T00:00:00Z",
    "0000-12-31T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    "2026-03-01T00:00:00+24:00",
    "2026-03-01T00:00:00+0530",
    "2026-03-01T00:00:00.Z",
    "2026-03-01T00:00:00Z\n",
    " 2026-03-01T00:00:00Z",
    "२०२६-03-01T00:00:00Z",
  ])("%j", (text) => {
    expect(parseInstant(text)).toBeString();
  });
});

describe("instants as they are answered", () => {
  test.each([
    [0n, "1970-01-01T00:00:00Z"],
    [-1n, "1969-12-31T23:59:59.999999Z"],
    [20_513n * 86_400_000_000n + 250_000n, "2026-03-01T00:00:00.25Z"],
    [20_513n * 86_400_000_000n + 100n, "2026-03-01T00:00:00.0001Z"],
    [EARLIEST, "0001-01-01T00:00:00Z"],
    [LATEST, "9999-12-31T23:59:59.999999Z"],
  ])("%s µs", (micros, text) => {
    expect(formatInstant(instantFromMicros(String(micros)))).toBe(text);
  });

  test("every day of four centuries comes back as it went in", () => {
    for (let day = -146_097n; day <= 146_097n; day++) {
      const instant = instantFromMicros(String(day * 86_400_000_000n + 43_200_000_001n));
      const text = formatInstant(instant);
      if (parseInstant(text) !== instant) throw new Error(`${text} came back as something else`);
    }
    // A day's last microsecond doesn't round into the next, where numbers are exact and past that.
    for (const day of [-104_249n, -1n, 20_513n, 104_249n, 104_250n]) {
      const last = instantFromMicros(String(day * 86_400_000_000n + 86_399_999_999n));
      expect(parseInstant(formatInstant(last))).toBe(last);
      expect(formatInstant(last)).toEndWith("T23:59:59.999999Z");
    }
    expect(formatInstant(instantFromMicros(String(-146_097n * 86_400_000_000n)))).toBe(
      "1570-01-01T00:00:00Z",
    );
  });
});

// What was read and written last is remembered by its second.
test("instants of one second, one after the other", () => {
  const noon = 20_513n * 86_400_000_000n + 43_200_000_000n;
  const at = (rest: string) => parseInstant(`2026-03-01T12:00:00${rest}`);
  const micros = ["Z", ".5Z", ".000001Z", ".1234567Z", "z", ".120000Z", "+01:00", ".25-00:30", "Z"].map(at);
  expect(micros).toEqual(
    [0n, 500_000n, 1n, 123_456n, 0n, 120_000n, -3_600_000_000n, 1_800_250_000n, 0n].map((more) =>
      instantFromMicros(String(noon + more)),
    ),
  );
  for (const rest of [".Z", ".1x3Z", ".-1Z", ".12", "1Z", ".1 Z", "", " Z", ".1234567x", "Z\n"])
    expect(typeof at(rest)).toBe("string");
  const written = [0n, 1n, 10n, 500_000n, 120_000n, 1_000_000n, -1n].map((more) =>
    formatInstant(instantFromMicros(String(noon + more))),
  );
  expect(written).toEqual([
    "2026-03-01T12:00:00Z",
    "2026-03-01T12:00:00.000001Z",
    "2026-03-01T12:00:00.00001Z",
    "2026-03-01T12:00:00.5Z",
    "2026-03-01T12:00:00.12Z",
    "2026-03-01T12:00:01Z",
    "2026-03-01T11:59:59.999999Z",
  ]);
});
