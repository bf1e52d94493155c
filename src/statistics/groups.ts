/** Groups of things that were counted. Counting is always done at the finest grouping; coarser ones are sums of it. */
import { Problem } from "../problem.ts";

/** More groups than this, at the finest grouping, are not answered at once. */
export const MAX_GROUPS = 50_000;

/** Values by dimension, and how many things carry all of them. */
export interface Group<D extends string> {
  readonly values: Readonly<Record<D, string>>;
  readonly count: number;
}

/** What is said of it. */
export function tooManyDetail(what: string): string {
  return `${what} fall into more than ${MAX_GROUPS} groups when every dimension counts: narrow them`;
}

/**
 * The refusal of an answer that nothing bounds. Whether it comes doesn't depend on `group_by`: a dashboard that
 * is read today isn't refused tomorrow for one dimension more.
 */
export function tooManyGroups(what: string): Problem {
  return new Problem("result_too_large", tooManyDetail(what));
}

/** No stored text holds one, so that joined values stay apart; and it sorts before every other byte. */
const SEPARATOR = "\0";

/**
 * Sums groups up to the dimensions that were asked for, and orders them by all values, as bytes, in the order of
 * `dimensions`; those that weren't asked for are absent, which compares as "".
 */
export function rollUp<D extends string>(
  finest: Iterable<Group<D>>,
  dimensions: readonly D[],
  asked: readonly D[],
): Group<D>[] {
  const kept = dimensions.filter((dimension) => asked.includes(dimension));
  const sums = new Map<string, { values: Readonly<Record<D, string>>; count: number }>();
  for (const { values, count } of finest) {
    const key = kept.map((dimension) => values[dimension]).join(SEPARATOR);
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { values, count });
    else sum.count += count;
  }
  return [...sums]
    .map(([key, group]) => ({ key: Buffer.from(key), group }))
    .sort((a, b) => Buffer.compare(a.key, b.key))
    .map(({ group }) => group);
}

/** Counts things one by one or in lots, into the finest groups, and no more of those than may be answered. */
export class GroupCounter<D extends string> {
  readonly #groups = new Map<string, { values: Readonly<Record<D, string>>; count: number }>();
  readonly #dimensions: readonly D[];
  readonly #what: string;

  /** @param what the things' name, for the refusal. */
  constructor(what: string, dimensions: readonly D[]) {
    this.#what = what;
    this.#dimensions = dimensions;
  }

  /** @throws Problem result_too_large for the group that is one too many. */
  add(values: Readonly<Record<D, string>>, count: number): void {
    const key = this.#dimensions.map((dimension) => values[dimension]).join(SEPARATOR);
    const group = this.#groups.get(key);
    if (group !== undefined) group.count += count;
    else if (this.#groups.size === MAX_GROUPS) throw tooManyGroups(this.#what);
    else this.#groups.set(key, { values, count });
  }

  groups(): Iterable<Group<D>> {
    return this.#groups.values();
  }
}
