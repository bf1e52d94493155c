/** Counted groups as the JSON texts that are answered. */
import type { Group } from "./groups.ts";

/** `{"items":[…]}`: of each group the dimensions that were asked for, and its count. */
export function groupsJson<D extends string>(groups: readonly Group<D>[], members: readonly D[]): string {
  const items = groups.map(({ values, count }) => {
    const told = members.map((member) => `"${member}":${JSON.stringify(values[member])},`);
    return `{${told.join("")}"count":${count}}`;
  });
  return `{"items":[${items.join(",")}]}`;
}
