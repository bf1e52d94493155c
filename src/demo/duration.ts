/** Spans of time as people say them. */

const UNITS = [
  ["d", 86_400_000_000n],
  ["h", 3_600_000_000n],
  ["min", 60_000_000n],
  ["s", 1_000_000n],
] as const;

/**
 * The two largest units of a span, the smaller one cut off: `4 d 22 h`, `39 min 47 s`, `2 h`, `0 s`.
 * @param micros microseconds, 0 or more
 */
export function humanDuration(micros: bigint): string {
  const first = UNITS.findIndex(([, length]) => micros >= length);
  if (first === -1) return "0 s";
  let rest = micros;
  const parts: string[] = [];
  for (const [name, length] of UNITS.slice(first, first + 2)) {
    if (rest >= length) parts.push(`${rest / length} ${name}`);
    rest %= length;
  }
  return parts.join(" ");
}
