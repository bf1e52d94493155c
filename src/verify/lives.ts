/**
 * What intervals have to be, said without the fold: a resource's lives follow from the kinds of its events alone, and
 * its intervals cover each of them from its first instant to its last, in order, without a gap. Pure.
 */
import { categorize } from "../event/event.ts";
import { formatInstant, type Instant } from "../event/instant.ts";
import type { FoldEvent, Interval } from "../timeline/fold.ts";

/** From the event that began it to the delete that ended it; `to` null while it lasts. */
interface Life {
  readonly from: Instant;
  to: Instant | null;
}

/** Holds intervals against lives, both handed in as they come, oldest first. Keeps only what is still to be seen. */
export class LifeCheck {
  readonly #lives: Life[] = [];
  readonly #faults: string[] = [];
  #deleted = false;
  /** Up to where the first life is covered; null: not begun. */
  #covered: Instant | null = null;

  /** One more event, in fold order. */
  take(event: FoldEvent): void {
    const kind = categorize(event.eventType);
    const last = this.#lives.at(-1);
    const alive = last !== undefined && last.to === null;
    if (kind === "delete") {
      this.#deleted = true;
      if (alive) last.to = event.timestamp;
    } else if (!alive && (kind === "create" || !this.#deleted)) {
      this.#deleted = false;
      this.#lives.push({ from: event.timestamp, to: null });
    }
  }

  /** The next interval. The events that make it final must have been taken. */
  cover(interval: Interval): void {
    const { from, to } = interval;
    const span = `[${formatInstant(from)}, ${to === null ? "open" : formatInstant(to)})`;
    if (to !== null && to <= from) {
      this.#faults.push(`its interval ${span} ends before or where it begins`);
      return;
    }
    this.#leaveBehind(from);
    const life = this.#lives[0];
    if (life === undefined) {
      this.#faults.push(`its interval ${span} lies in none of its lives`);
      return;
    }
    const expected = this.#covered ?? life.from;
    if (from < expected) this.#faults.push(`its interval ${span} begins before ${formatInstant(expected)}`);
    if (from > expected)
      this.#faults.push(`nothing covers ${formatInstant(expected)} to ${formatInstant(from)}`);
    if (life.to !== null && (to === null || to > life.to))
      this.#faults.push(`its interval ${span} goes on after the delete at ${formatInstant(life.to)}`);
    // An interval that goes too far has been told of: what comes next is held against the next life.
    this.#covered = to === null || (life.to !== null && to > life.to) ? life.to : to;
    if (this.#covered === null) this.#lives.shift();
  }

  /** Everything has been handed in. @returns what is wrong, in words */
  finish(): string[] {
    this.#leaveBehind(null);
    return this.#faults;
  }

  /** Goes past the lives that ended before an instant (null: past all of them), and tells of what is not covered. */
  #leaveBehind(from: Instant | null): void {
    for (let life = this.#lives[0]; life !== undefined; life = this.#lives[0]) {
      if (from !== null && (life.to === null || life.to > from)) return;
      const covered = this.#covered ?? life.from;
      // One that ended in the instant it began has nothing to cover.
      if (covered !== life.to)
        this.#faults.push(
          `nothing covers ${formatInstant(covered)} to ${life.to === null ? "now" : formatInstant(life.to)}`,
        );
      this.#lives.shift();
      this.#covered = null;
    }
  }
}
