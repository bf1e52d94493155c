/** Asking the cloud: what its adapter tells, until it has told all of it or the run's time is up. */
import type { Instant } from "../event/instant.ts";
import { type Adapter, type CloudSession, type ObservedSizeName, RunFailure } from "./adapter.ts";
import { ObservedResources } from "./observed.ts";
import type { RunStats } from "./stats.ts";

/** What a cloud said of itself. */
export interface CloudReport {
  readonly observed: ObservedResources;
  /** The types that were read to their end. */
  readonly completeTypes: ReadonlySet<string>;
  /** Null where they could not be read. */
  readonly sizeNames: readonly ObservedSizeName[] | null;
}

/**
 * Reads a cloud. What fails for one type only is an error of the run, and that type is not complete.
 * @param deletedSince from when on ended resources are asked for; null: not at all
 * @param stats takes the errors
 * @throws what ends the run: the adapter's refusal, the signal's reason
 */
export async function observeCloud(
  adapter: Adapter,
  deletedSince: Instant | null,
  stats: RunStats,
  signal: AbortSignal,
): Promise<CloudReport> {
  const session = await orAborted(signal, () => adapter.open({ signal }));
  const observed = new ObservedResources();
  const incomplete = new Set<string>();
  for await (const observation of untilAborted(session.observe(deletedSince), signal)) {
    if (observation.kind === "incomplete") {
      incomplete.add(observation.resourceType);
      stats.fail(`${observation.resourceType}: ${observation.reason}`);
      continue;
    }
    const { resource } = observation;
    const fault = observed.add(resource);
    if (fault === null) continue;
    // It is there all the same, and a row of its own would seem to be gone.
    incomplete.add(resource.resourceType);
    stats.fail(`${resource.resourceType} ${resource.resourceId}: ${fault}`);
  }
  const completeTypes = new Set(adapter.resourceTypes.filter((type) => !incomplete.has(type)));
  const sizeNames = await readSizeNames(session, stats, signal);
  return { observed, completeTypes, sizeNames };
}

async function readSizeNames(
  session: CloudSession,
  stats: RunStats,
  signal: AbortSignal,
): Promise<readonly ObservedSizeName[] | null> {
  try {
    return await orAborted(signal, () => session.sizeNames());
  } catch (error) {
    signal.throwIfAborted();
    stats.fail(`size names: ${messageOf(error)}`);
    return null;
  }
}

/** What an error says, for a run's row. */
export function messageOf(error: unknown): string {
  return error instanceof Error && error.message !== "" ? error.message : String(error);
}

/** What `work` gives, or the signal's reason as soon as it aborts, whatever `work` is at. */
async function orAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const abort = () => reject(reasonOf(signal));
  signal.addEventListener("abort", abort, { once: true });
  try {
    work().then(resolve, reject);
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** The same for everything that a listing gives. A listing that is given up is told so, and not waited for. */
async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let finished = false;
  try {
    for (;;) {
      const next = await orAborted(signal, () => iterator.next());
      if (next.done === true) {
        finished = true;
        return;
      }
      yield next.value;
    }
  } catch (error) {
    // An iterator that threw has ended by itself; one that hangs can't be ended, only left.
    finished = !signal.aborted;
    throw error;
  } finally {
    if (!finished) iterator.return?.().catch(() => {});
  }
}

function reasonOf({ reason }: AbortSignal): Error {
  return reason instanceof Error ? reason : new RunFailure("the run was cancelled");
}
