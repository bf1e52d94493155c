/**
 * Instants in integer microseconds. No `Date` anywhere: it cuts microseconds off.
 *
 * In: RFC 3339 with an offset (`Z` or `±hh:mm`), year 0001 to 9999, no `:60`; digits past the microsecond are
 * cut off. Out: UTC with `Z` and only as many fractional digits as the value has.
 */

declare const instant: unique symbol;

/** Microseconds since 1970-01-01T00:00:00Z, negative before it. */
export type Instant = bigint & { readonly [instant]: never };

/** 0001-01-01T00:00:00Z, the earliest instant that Tally takes. */
export const EARLIEST = -62_135_596_800_000_000n as Instant;
/** 9999-12-31T23:59:59.999999Z, the latest one. */
export const LATEST = 253_402_300_799_999_999n as Instant;

const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

/** Days from 1970-01-01 to the given day of the proleptic Gregorian calendar. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** The UTC second that was read last, `2026-03-01T08:00:00`: a batch's events are moments apart. */
let lastRead = { text: "", seconds: 0 };

/** What follows the seconds: `Z`, or up to six digits and `Z`. */
function readFraction(text: string, from: number): number | null {
  const last = text.length - 1;
  if (text.charCodeAt(last) !== 0x5a || last > from + 7 || last === from + 1) return null;
  if (last === from) return 0;
  if (text.charCodeAt(from) !== 0x2e) return null;
  let micros = 0;
  for (let i = from + 1; i < from + 7; i++) {
    const digit = i < last ? text.charCodeAt(i) - 0x30 : 0;
    if (digit < 0 || digit > 9) return null;
    micros = micros * 10 + digit;
  }
  return micros;
}

/**
 * Reads an RFC 3339 text.
 * @returns the instant, or a string that says what is wrong with the text (it never quotes it).
 */
export function parseInstant(text: string): Instant | string {
  if (lastRead.text !== "" && text.startsWith(lastRead.text)) {
    const micros = readFraction(text, lastRead.text.length);
    if (micros !== null) return BigInt(lastRead.seconds * 1e6 + micros) as Instant;
  }
  const match = RFC_3339.exec(text);
  // In JavaScript, `$` without the m flag matches only at the very end: a trailing newline is refused.
  if (match === null) return "must be an RFC 3339 date and time with an offset, like 2026-03-01T08:00:00Z";
  const [, y, mo, d, h, mi, s, fraction = "", sign, oh = "0", om = "0"] = match;
  const year = Number(y);
  const month = Number(mo);
  const day = Number(d);
  const hour = Number(h);
  const minute = Number(mi);
  const second = Number(s);
  const offsetHours = Number(oh);
  const offsetMinutes = Number(om);
  if (year < 1) return "year must be 0001 to 9999";
  if (month < 1 || month > 12) return "month must be 01 to 12";
  const last = month === 2 && isLeap(year) ? 29 : (DAYS_IN_MONTH[month - 1] ?? 0);
  if (day < 1 || day > last) return `day must be 01 to ${last} in that month`;
  if (hour > 23 || minute > 59 || second > 59) return "time of day must be 00:00:00 to 23:59:59";
  if (offsetHours > 23 || offsetMinutes > 59) return "offset must be ±00:00 to ±23:59";
  const offset = (sign === "-" ? -1 : 1) * (offsetHours * 60 + offsetMinutes);
  const seconds = daysSinceEpoch(year, month, day) * 86_400 + hour * 3_600 + (minute - offset) * 60 + second;
  const micros = BigInt(seconds) * 1_000_000n + BigInt(fraction.slice(0, 6).padEnd(6, "0"));
  if (micros < EARLIEST || micros > LATEST) return "must lie in the years 0001 to 9999 of UTC";
  // Microseconds are exact as a number from 1684 to 2255.
  if (text.endsWith("Z") && text.charCodeAt(10) === 0x54 && Math.abs(seconds) < 9e9)
    lastRead = { text: text.slice(0, 19), seconds };
  return micros as Instant;
}

const MICROS_A_DAY = 86_400_000_000n;
/** Days as they are written: the instants of a batch share few of them. */
const dates = new Map<number, string>();

/** A day, counted from 1970-01-01, as `2026-03-01`. */
function formatDate(days: number): string {
  const known = dates.get(days);
  if (known !== undefined) return known;
  const z = days + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const mp = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * mp + 2) / 5) + 1;
  const month = mp < 10 ? mp + 3 : mp - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const date = `${String(year).padStart(4, "0")}-${twoDigits(month)}-${twoDigits(day)}`;
  if (dates.size >= 1_000) dates.clear();
  dates.set(days, date);
  return date;
}

function twoDigits(n: number): string {
  return n < 10 ? `0${n}` : `${n}`;
}

/** Days since 1970-01-01, and microseconds since that day began. */
function dayAndTime(value: Instant): { days: number; micros: number } {
  // Numbers are several times as fast as bigints, and exact here from 1684 to 2255.
  const number = Number(value);
  if (Number.isSafeInteger(number)) {
    const rest = number % 86_400e6;
    const micros = rest < 0 ? rest + 86_400e6 : rest;
    return { days: (number - micros) / 86_400e6, micros };
  }
  let days = value / MICROS_A_DAY;
  // Division cuts towards zero; a day before 1970 starts one earlier.
  if (days * MICROS_A_DAY > value) days -= 1n;
  return { days: Number(days), micros: Number(value - days * MICROS_A_DAY) };
}

/** The second that was written last, and how. */
let lastWritten = { days: Number.NaN, second: Number.NaN, text: "" };

/** Writes an instant in the one form that Tally answers with, `2026-03-01T00:00:00.25Z`. */
export function formatInstant(value: Instant): string {
  const { days, micros } = dayAndTime(value);
  const second = Math.floor(micros / 1e6);
  if (lastWritten.second !== second || lastWritten.days !== days)
    lastWritten = { days, second, text: formatSecond(days, second) };
  let digits = micros % 1e6;
  if (digits === 0) return `${lastWritten.text}Z`;
  let width = 6;
  for (; digits % 10 === 0; width--) digits /= 10;
  return `${lastWritten.text}.${String(digits).padStart(width, "0")}Z`;
}

/** @param second of the day */
function formatSecond(days: number, second: number): string {
  const minute = Math.floor(second / 60);
  const hour = Math.floor(minute / 60);
  return `${formatDate(days)}T${twoDigits(hour)}:${twoDigits(minute % 60)}:${twoDigits(second % 60)}`;
}

/**
 * Reads what the database's `micros(timestamptz)` expression gave: integer microseconds as text.
 * The database is the only caller that may skip the checks.
 */
export function instantFromMicros(micros: string): Instant {
  return BigInt(micros) as Instant;
}

/** Reads an instant that the database wrote into an answer. @throws where it didn't. */
export function storedInstant(text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant === "string") throw new Error(`the database wrote an instant that ${instant}`);
  return instant;
}
