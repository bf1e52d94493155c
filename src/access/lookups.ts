/** Look-ups that requests of one caller share while they come side by side. */

/** So many of one caller's look-ups are under way at a time: one that hangs doesn't hold the others up. */
const UNDER_WAY = 2;

/** One caller's look-ups. */
interface Lane<T> {
  underWay: number;
  /** The look-up that begins when another one is over, for all that wait. */
  next: PromiseWithResolvers<T> | null;
}

/**
 * Shares a look-up among the requests that wait for it. Nothing is remembered: what a request is told was read after
 * it came, so that a revocation counts at the next request.
 */
export class Lookups<T> {
  readonly #work: (key: string) => Promise<T>;
  readonly #lanes = new Map<string, Lane<T>>();

  /** @param work looks up once, for one key */
  constructor(work: (key: string) => Promise<T>) {
    this.#work = work;
  }

  /** What `work` finds for the key, from now on. @throws what it throws */
  find(key: string): Promise<T> {
    const lane = this.#lanes.get(key) ?? { underWay: 0, next: null };
    this.#lanes.set(key, lane);
    if (lane.underWay < UNDER_WAY) return this.#begin(key, lane);
    lane.next ??= Promise.withResolvers<T>();
    return lane.next.promise;
  }

  async #begin(key: string, lane: Lane<T>): Promise<T> {
    lane.underWay++;
    try {
      return await this.#work(key);
    } finally {
      lane.underWay--;
      const { next } = lane;
      lane.next = null;
      if (next !== null) this.#begin(key, lane).then(next.resolve, next.reject);
      else if (lane.underWay === 0) this.#lanes.delete(key);
    }
  }
}
