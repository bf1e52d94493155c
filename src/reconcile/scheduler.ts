/**
 * Runs every configured cloud again and again. Nothing is kept here that matters: when a cloud was last run stands in
 * sync_runs, so that several processes on one database share the clouds, and one that dies leaves its share to the
 * others. Whoever comes first runs a cloud; who comes second sees that it was run.
 */
import type { Instant } from "../event/instant.ts";
import { type ConfiguredCloud, RunFailure } from "./adapter.ts";
import { lastStarts } from "./queries.ts";
import type { RunServices } from "./request.ts";
import { CLOCK_SKEW, CloudHeld, runUnlessDone } from "./run.ts";

/** A running scheduler. */
export interface Scheduler {
  /**
   * Begins no run any more, cancels those that are under way, and waits for their ends, `graceSeconds` at most: what
   * was being booked is booked.
   */
  stop(graceSeconds: number): Promise<void>;
}

/** Runs of different clouds that one process has under way at once: each holds what it saw of its cloud. */
const RUNS_AT_ONCE = 4;
/** A start is put off by up to this share of the interval: clouds of one interval don't stay in step. */
const JITTER = 0.1;
/** The longest time between two looks at the database: another process may have died. In milliseconds. */
const LOOK_AGAIN_MS = 30_000;
/** The shortest one. */
const LOOK_SOONEST_MS = 20;

/** A cloud that is run by the clock. */
interface Scheduled {
  readonly cloud: ConfiguredCloud;
  /** Microseconds. */
  readonly interval: bigint;
  /** Microseconds behind the instant at which it is due; drawn anew for each run. */
  jitter: bigint;
  /** Where it stands among those that are equally due; another one in each process, so that they don't collide. */
  readonly place: number;
  running: boolean;
}

/**
 * Starts it; a cloud that is due is run at once.
 * @param random from [0, 1)
 */
export function startScheduler(
  services: RunServices,
  clouds: readonly ConfiguredCloud[],
  random: () => number = Math.random,
): Scheduler {
  const { settings } = services;
  const scheduled = clouds.flatMap((cloud): Scheduled[] => {
    const seconds = cloud.intervalSeconds ?? settings.sync.intervalSeconds;
    return seconds === 0
      ? []
      : [{ cloud, interval: BigInt(Math.round(seconds * 1e6)), jitter: 0n, place: random(), running: false }];
  });
  const schedule = new Schedule(services, scheduled, random);
  if (scheduled.length > 0) schedule.wake();
  return { stop: (graceSeconds) => schedule.stop(graceSeconds) };
}

class Schedule {
  readonly #services: RunServices;
  readonly #clouds: readonly Scheduled[];
  readonly #random: () => number;
  readonly #cancel = new AbortController();
  readonly #under = new Set<Promise<void>>();
  readonly #pauses = new Set<ReturnType<typeof setTimeout>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #looking: Promise<void> | null = null;
  #again = false;

  constructor(services: RunServices, clouds: readonly Scheduled[], random: () => number) {
    this.#services = services;
    this.#clouds = clouds;
    this.#random = random;
  }

  /** Looks now, or once more if it is just looking. */
  wake(): void {
    clearTimeout(this.#timer);
    if (this.#cancel.signal.aborted) return;
    if (this.#looking !== null) {
      this.#again = true;
      return;
    }
    this.#looking = this.#look().then((waitMs) => {
      this.#looking = null;
      if (this.#cancel.signal.aborted) return;
      if (this.#again) {
        this.#again = false;
        this.wake();
      } else this.#timer = setTimeout(() => this.wake(), waitMs);
    });
  }

  async stop(graceSeconds: number): Promise<void> {
    this.#cancel.abort(new RunFailure("Tally is stopping"));
    clearTimeout(this.#timer);
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const grace = setTimeout(resolve, graceSeconds * 1_000);
    await Promise.race([this.#ended(), late]);
    clearTimeout(grace);
    for (const pause of this.#pauses) clearTimeout(pause);
  }

  async #ended(): Promise<void> {
    await this.#looking;
    await Promise.all(this.#under);
  }

  /** Begins the runs that are due, as far as there is room. @returns when to look again, in milliseconds */
  async #look(): Promise<number> {
    const { db, now, log } = this.#services;
    const idle = this.#clouds.filter(({ running }) => !running);
    if (idle.length === 0 || this.#under.size >= RUNS_AT_ONCE) return LOOK_AGAIN_MS;
    const at = now();
    let last: Map<string, Instant>;
    try {
      last = await lastStarts(
        db,
        idle.map(({ cloud }) => cloud.cloud),
        (at + CLOCK_SKEW) as Instant,
      );
    } catch (error) {
      log.warn("what is due for reconciliation could not be read", { error });
      return LOOK_AGAIN_MS;
    }
    const waits = idle
      .map((entry) => {
        const start = last.get(entry.cloud.cloud);
        return { entry, wait: start === undefined ? -at : start + entry.interval + entry.jitter - at };
      })
      .sort((a, b) => (a.wait === b.wait ? a.entry.place - b.entry.place : a.wait < b.wait ? -1 : 1));
    for (const { entry, wait } of waits) {
      // Whoever has waited longest comes first. The end of any run wakes this up again.
      if (wait > 0n) return Math.min(Math.max(Number(wait / 1_000n) + 1, LOOK_SOONEST_MS), LOOK_AGAIN_MS);
      if (this.#under.size >= RUNS_AT_ONCE || this.#cancel.signal.aborted) return LOOK_AGAIN_MS;
      this.#begin(entry);
    }
    return LOOK_AGAIN_MS;
  }

  #begin(entry: Scheduled): void {
    entry.running = true;
    const run = this.#run(entry).then((pauseMs) => {
      this.#under.delete(run);
      entry.jitter = BigInt(Math.floor(Number(entry.interval) * JITTER * this.#random()));
      if (pauseMs === 0) {
        entry.running = false;
        this.wake();
        return;
      }
      // What failed to begin isn't tried again at once, and stands in nobody's way meanwhile.
      const pause = setTimeout(() => {
        this.#pauses.delete(pause);
        entry.running = false;
        this.wake();
      }, pauseMs);
      this.#pauses.add(pause);
      this.wake();
    });
    this.#under.add(run);
  }

  /** @returns how long the cloud is left alone before it is looked at again, in milliseconds */
  async #run({ cloud, interval }: Scheduled): Promise<number> {
    const { now, log } = this.#services;
    const pauseMs = Math.min(Number(interval / 10_000n), LOOK_AGAIN_MS);
    try {
      const unlessSince = (now() - interval) as Instant;
      const request = { actor: "scheduler", unlessSince };
      await runUnlessDone(this.#services, cloud, request, this.#cancel.signal);
      return 0;
    } catch (error) {
      if (!(error instanceof CloudHeld)) {
        log.error("a reconciliation run could not be begun or ended", { cloud: cloud.cloud, error });
      }
      return pauseMs;
    }
  }
}
