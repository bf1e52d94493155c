/** Keeps `tally_current_resources` up to date: counted now and then, not at every scrape. */
import type { Database } from "../database/connection.ts";
import type { Logger } from "./log.ts";
import { MAX_LABEL_SETS, type Metrics } from "./metrics.ts";
import { countResources } from "./queries.ts";

/** Counts once. Groups that are gone leave the metric. @throws what the database throws. */
export async function refreshResourceGauge(db: Database, metrics: Metrics): Promise<void> {
  const counts = await countResources(db, MAX_LABEL_SETS);
  // Nothing is awaited from here on, so no scrape sees the metric half filled.
  metrics.currentResources.reset();
  for (const { count, ...labels } of counts) metrics.currentResources.set(labels, count);
}

/**
 * Counts now and every `seconds` after the count before ended. A failure is logged and the old numbers stay.
 * @returns stops it; a count that is under way ends by itself, unheard.
 */
export function keepResourceGauge(
  services: { readonly db: Database; readonly metrics: Metrics; readonly log: Logger },
  seconds: number,
): () => void {
  let stopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const count = async (): Promise<void> => {
    try {
      await refreshResourceGauge(services.db, services.metrics);
    } catch (error) {
      if (!stopped) services.log.warn("the resources could not be counted for the metrics", { error });
    }
    if (stopped) return;
    timer = setTimeout(() => void count(), seconds * 1_000);
    timer.unref();
  };
  void count();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
