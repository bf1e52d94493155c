/** From the pages of a listing to what a run is told. */
import type { Observation, ObservedResource } from "../adapter.ts";
import { ServiceFailure } from "./failure.ts";
import { Item, type JsonObject } from "./item.ts";

/** A page's worth of observations. */
export type Observations = readonly Observation[];

/**
 * Reads every item of a listing. An item that can't be read is left out, or read in part, and makes the type
 * incomplete; it fails no other item.
 * @param read gives the resource that an item is, or null where it is none; faults are added to the item
 */
export async function* observed(
  resourceType: string,
  pages: AsyncIterable<readonly JsonObject[]>,
  read: (item: Item) => ObservedResource | null,
): AsyncGenerator<Observations> {
  // One line a kind of fault, however many items have it.
  const faults = new Map<string, { first: string; count: number }>();
  for await (const page of pages) {
    const found: Observation[] = [];
    for (const json of page) {
      const item = new Item(json);
      const resource = read(item);
      if (resource !== null) found.push({ kind: "resource", resource });
      for (const fault of item.faults) {
        const known = faults.get(fault);
        if (known === undefined) faults.set(fault, { first: item.text("id") ?? "one without id", count: 1 });
        else known.count++;
      }
    }
    yield found;
  }
  for (const [fault, { first, count }] of faults) {
    const others = count === 1 ? "" : ` (and ${count - 1} more)`;
    yield [incomplete(resourceType, `${resourceType} ${first}${others} ${fault}`)];
  }
}

/** The listing failed: the type is incomplete, the run goes on. */
export async function* tolerant(
  resourceType: string,
  observations: AsyncIterable<Observations>,
): AsyncGenerator<Observations> {
  try {
    yield* observations;
  } catch (error) {
    if (!(error instanceof ServiceFailure)) throw error;
    yield [incomplete(resourceType, error.message)];
  }
}

export function incomplete(resourceType: string, reason: string): Observation {
  return { kind: "incomplete", resourceType, reason };
}

/**
 * Several streams at once, each as fast as it is and no faster than it is taken: one page of each is held at most.
 * @param abandon breaks off what the streams wait for; called when the reader leaves early
 */
export async function* inParallel<T>(
  streams: readonly AsyncGenerator<T>[],
  abandon: () => void,
): AsyncGenerator<T> {
  const pending = new Map<AsyncGenerator<T>, Promise<Turn<T>>>();
  const turn = (stream: AsyncGenerator<T>) => {
    const next = stream.next().then((result) => ({ stream, result }));
    // It may fail while the reader is at work elsewhere: that is met when it comes back, and is no fault of nobody's.
    next.catch(() => {});
    pending.set(stream, next);
  };
  for (const stream of streams) turn(stream);
  try {
    while (pending.size > 0) {
      const { stream, result } = await Promise.race(pending.values());
      if (result.done === true) {
        pending.delete(stream);
        continue;
      }
      turn(stream);
      yield result.value;
    }
  } finally {
    if (pending.size > 0) {
      abandon();
      await Promise.allSettled(pending.values());
      await Promise.allSettled(streams.map((stream) => stream.return(undefined)));
    }
  }
}

interface Turn<T> {
  readonly stream: AsyncGenerator<T>;
  readonly result: IteratorResult<T>;
}
