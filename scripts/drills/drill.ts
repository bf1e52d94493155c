/** What a drill is: something that goes wrong on purpose, and what must hold all the same. */

/** Where a drill runs. */
export interface Rig {
  /** How Tally is started: the executable, or Bun with the sources. */
  readonly command: readonly string[];
  /** A directory of its own, which everybody may enter. */
  readonly place: string;
  /** What all drills of a run share: the unpacked PostgreSQL. */
  readonly shared: string;
  /** Whether disks are waited for. A process that is killed loses nothing without that; a machine would. */
  readonly durable: boolean;
  /** Tells how far it is. */
  say(text: string): void;
}

/** How a drill is run. */
export interface Plan {
  readonly rounds: number;
  /** Whether there is time to wait for minutes. */
  readonly long: boolean;
  /** Floats in [0, 1), from the seed. */
  readonly random: () => number;
}

/** What a drill measured, by name, in the order in which it is shown. */
export type Figures = Readonly<Record<string, string | number>>;

/** One drill. */
export interface Drill {
  readonly name: string;
  /** One line, for people. */
  readonly about: string;
  readonly rounds: { readonly short: number; readonly long: number };
  /** Why it can't be run on this machine; null: it can. */
  readonly unable?: () => string | null;
  /** Ends with the proof. @throws {Error} for whatever did not hold */
  readonly run: (rig: Rig, plan: Plan) => Promise<Figures>;
}

/** What has to hold. @throws {Error} that says what did not */
export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/** What clients wait between batches: a short drill leaves the processors to the tests beside it. */
export function thinkMs({ long }: Plan): number {
  return long ? 0 : 80;
}

/** A promised time, as long drills hold it; short ones run on busy machines, beside other tests. */
export function within({ long }: Plan, milliseconds: number): number {
  return long ? milliseconds : 4 * milliseconds;
}

/** Waits until it holds. @throws {Error} when that takes too long */
export async function until(
  what: string,
  milliseconds: number,
  holds: () => boolean | Promise<boolean>,
): Promise<number> {
  const from = performance.now();
  for (;;) {
    if (await holds()) return performance.now() - from;
    if (performance.now() - from > milliseconds) throw new Error(`${what}: not within ${milliseconds} ms`);
    await Bun.sleep(20);
  }
}
