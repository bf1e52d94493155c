/**
 * The formats that are enforced, whole: those that pass the official test suite. Any other one is refused at
 * registration: it would look like a promise.
 */
import type { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const KEPT = ["ipv4", "ipv6", "json-pointer", "relative-json-pointer"] as const;

/** The names that `format` may have. */
export const FORMATS: ReadonlySet<unknown> = new Set(["date-time", "date", "time", "uuid", ...KEPT]);

/** Teaches an Ajv the formats. */
export function installFormats(ajv: Ajv2020): void {
  addFormats(ajv, [...KEPT]);
  // ajv-formats' own take urn:uuid:…, an offset without minutes, and an hour 24 before a leap second.
  ajv.addFormat("uuid", /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i);
  ajv.addFormat("date", isDate);
  ajv.addFormat("time", isTime);
  ajv.addFormat("date-time", (text) => {
    const [day = "", time = "", ...rest] = text.split(/[Tt]/);
    return rest.length === 0 && isDate(day) && isTime(time);
  });
}

/** RFC 3339's full-date, in any year from 0000. */
function isDate(text: string): boolean {
  const match = /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/.exec(text);
  if (match === null) return false;
  const [year, month, day] = match.slice(1).map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  if (month === 2) {
    const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
    return day <= (leap ? 29 : 28);
  }
  return day <= 30 || ![4, 6, 9, 11].includes(month);
}

/** RFC 3339's full-time. A leap second is one only at 23:59:60 UTC. */
function isTime(text: string): boolean {
  const match = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/.exec(text);
  if (match === null) return false;
  const [, h, m, s, sign, oh = "0", om = "0"] = match;
  const [hour, minute, second, offsetHours, offsetMinutes] = [h, m, s, oh, om].map(Number);
  if (hour === undefined || minute === undefined || second === undefined) return false;
  if (offsetHours === undefined || offsetMinutes === undefined) return false;
  if (hour > 23 || minute > 59 || second > 60 || offsetHours > 23 || offsetMinutes > 59) return false;
  const offset = (sign === "-" ? -1 : 1) * (offsetHours * 60 + offsetMinutes);
  const inDay = (((hour * 60 + minute - offset) % 1_440) + 1_440) % 1_440;
  return second < 60 || inDay === 1_439;
}
