/** Randomness from a seed: the same numbers on every machine. */

/** A generator of the mulberry32 kind: 32 bits of state, good enough to invent things. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, and without, 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  /** True in so many cases of one. */
  chance(share: number): boolean {
    return this.fraction() < share;
  }

  /** One of them. */
  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.whole(0, items.length - 1)] ?? items[0];
  }

  /** One of them, each as often as its weight says. */
  weighted<T>(items: readonly [readonly [T, number], ...(readonly [T, number])[]]): T {
    let left = this.fraction() * items.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [item, weight] of items) {
      left -= weight;
      if (left < 0) return item;
    }
    return items[0][0];
  }

  /** 32 hex digits in a UUID's form. */
  uuid(): string {
    const hex = Array.from({ length: 4 }, () =>
      this.whole(0, 2 ** 32 - 1)
        .toString(16)
        .padStart(8, "0"),
    ).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }
}
