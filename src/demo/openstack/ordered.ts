/** Items in the order in which a service lists them. */

/** A map that is also a list: an item's place depends on what never changes about it (its id, its creation). */
export class Ordered<T extends { readonly id: string }> {
  readonly #byId = new Map<string, T>();
  readonly #compare: (a: T, b: T) => number;
  #sorted: T[] = [];
  #stale = false;

  /** @param compare negative where `a` is listed first; never 0 for different ids */
  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): T | undefined {
    return this.#byId.get(id);
  }

  /** Adds the item, or puts it in the place of the one with its id. */
  set(item: T): void {
    const known = this.#byId.has(item.id);
    this.#byId.set(item.id, item);
    if (known && !this.#stale) this.#sorted[this.after(item) - 1] = item;
    else this.#stale = true;
  }

  delete(id: string): void {
    if (this.#byId.delete(id)) this.#stale = true;
  }

  /** All of them, in order. Not to be kept: it changes with the collection. */
  list(): readonly T[] {
    if (this.#stale) {
      this.#sorted = [...this.#byId.values()].sort(this.#compare);
      this.#stale = false;
    }
    return this.#sorted;
  }

  /** The index in `list()` of the first item behind this one, which need not be in it (any more). */
  after(item: T): number {
    return indexBehind(this.list(), item, this.#compare);
  }
}

/** The index of the first item of a sorted list that comes behind `item`. */
export function indexBehind<T>(sorted: readonly T[], item: T, compare: (a: T, b: T) => number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const there = sorted[middle];
    if (there !== undefined && compare(there, item) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Texts by their code units. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Oldest first, then by id. */
export function byCreation<T extends { readonly id: string; readonly createdAt: bigint }>(
  a: T,
  b: T,
): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return compareText(a.id, b.id);
}

/** Newest first, then by id, backwards. */
export function byCreationBackwards<T extends { readonly id: string; readonly createdAt: bigint }>(
  a: T,
  b: T,
): number {
  return byCreation(b, a);
}
