/** A message bus and a collector that lose events, double them, and bring them late and out of order. */
import type { Instant } from "../../src/event/instant.ts";
import { later } from "./furnishing.ts";
import type { ToldEvent } from "./happenings.ts";
import type { Random } from "./random.ts";

/** How bad it is. Shares are of one. */
export interface Losses {
  readonly lost: number;
  readonly doubled: number;
  readonly late: number;
  /** The longest delay, in seconds. */
  readonly latest: number;
}

export class LossyBus {
  readonly #random: Random;
  readonly #losses: Losses;
  #underWay: { readonly arrives: Instant; readonly event: ToldEvent }[] = [];
  /** How many events of each resource were lost, by `type id`. */
  readonly lost = new Map<string, number>();
  counts = { told: 0, lost: 0, doubled: 0, late: 0 };

  constructor(random: Random, losses: Losses) {
    this.#random = random;
    this.#losses = losses;
  }

  /** Takes what the cloud told. */
  take(events: readonly ToldEvent[], now: Instant): void {
    for (const event of events) {
      this.counts.told++;
      if (this.#random.chance(this.#losses.lost)) {
        this.counts.lost++;
        const key = `${event.resource_type} ${event.resource_id}`;
        this.lost.set(key, (this.lost.get(key) ?? 0) + 1);
        continue;
      }
      this.#send(event, now);
      if (!this.#random.chance(this.#losses.doubled)) continue;
      this.counts.doubled++;
      this.#send(event, now);
    }
  }

  /** What has arrived by now, in any order. */
  arrived(now: Instant): ToldEvent[] {
    const here = this.#underWay.filter(({ arrives }) => arrives <= now);
    this.#underWay = this.#underWay.filter(({ arrives }) => arrives > now);
    for (let at = here.length - 1; at > 0; at--) {
      const other = this.#random.whole(0, at);
      const [a, b] = [here[at], here[other]];
      if (a !== undefined && b !== undefined) [here[at], here[other]] = [b, a];
    }
    return here.map(({ event }) => event);
  }

  #send(event: ToldEvent, now: Instant): void {
    const late = this.#random.chance(this.#losses.late);
    if (late) this.counts.late++;
    this.#underWay.push({
      arrives: late ? later(now, this.#random.whole(1, this.#losses.latest)) : now,
      event,
    });
  }
}
