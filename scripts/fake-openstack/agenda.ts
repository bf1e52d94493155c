/** What is still to happen, by time. */
import type { Instant } from "../../src/event/instant.ts";

interface Entry {
  readonly at: Instant;
  /** Keeps what is due at one instant in the order in which it was put down. */
  readonly turn: number;
  readonly act: () => void;
}

function before(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.turn < b.turn);
}

/** A binary heap of deeds. */
export class Agenda {
  readonly #heap: Entry[] = [];
  #turn = 0;

  /** When the next deed is due; null where nothing is left. */
  get next(): Instant | null {
    return this.#heap[0]?.at ?? null;
  }

  put(at: Instant, act: () => void): void {
    const entry = { at, turn: this.#turn++, act };
    let place = this.#heap.push(entry) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = this.#heap[parent];
      if (above === undefined || !before(entry, above)) break;
      this.#heap[place] = above;
      place = parent;
    }
    this.#heap[place] = entry;
  }

  /** Takes the next deed out and does it. */
  doNext(): void {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (first === undefined || last === undefined) return;
    if (this.#heap.length > 0) this.#sink(last);
    first.act();
  }

  #sink(entry: Entry): void {
    let place = 0;
    for (;;) {
      const left = this.#heap[2 * place + 1];
      const right = this.#heap[2 * place + 2];
      const down = right !== undefined && left !== undefined && before(right, left) ? right : left;
      if (down === undefined || !before(down, entry)) break;
      this.#heap[place] = down;
      place = 2 * place + (down === left ? 1 : 2);
    }
    this.#heap[place] = entry;
  }
}
