/**
 * What Tally counts about itself, for Prometheus. One registry an app, so that tests and several apps in one
 * process don't share numbers.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** What an accepted event is counted by. */
export interface CountedEvent {
  readonly platform: string;
  readonly cloud: string;
  readonly resourceType: string;
  readonly eventType: string;
}

export type Metrics = ReturnType<typeof createMetrics>;

/** More label sets than this and a metric counts the rest under `other`: a collector must not fill the memory. */
export const MAX_LABEL_SETS = 5_000;

const NOT_ON_BUN = [
  "process_heap_bytes",
  "process_virtual_memory_bytes",
  "nodejs_active_resources",
  "nodejs_active_resources_total",
  "nodejs_active_handles",
  "nodejs_active_handles_total",
  "nodejs_active_requests",
  "nodejs_active_requests_total",
  "nodejs_heap_space_size_total_bytes",
  "nodejs_heap_space_size_used_bytes",
  "nodejs_heap_space_size_available_bytes",
  "nodejs_gc_duration_seconds",
  "nodejs_version_info",
];

/** Makes a registry with Tally's metrics and the process's. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // What Node's engine tells of itself and Bun's doesn't: served as zeros, these would mislead.
  for (const name of NOT_ON_BUN) registry.removeSingleMetric(name);

  const eventsIngested = new Counter({
    name: "tally_events_ingested_total",
    help: "Events stored: accepted, and not a duplicate.",
    labelNames: ["platform", "cloud", "resource_type", "event_type", "source"] as const,
    registers,
  });
  const eventsDeduplicated = new Counter({
    name: "tally_events_deduplicated_total",
    help: "Items that were already stored.",
    labelNames: ["cloud"] as const,
    registers,
  });
  const eventsRejected = new Counter({
    name: "tally_events_rejected_total",
    help: "Items refused, by the kind of check that refused them and the cloud of the credential.",
    labelNames: ["cloud", "reason"] as const,
    registers,
  });
  const unvalidatedSize = new Counter({
    name: "tally_ingest_unvalidated_size_total",
    help: "Sizes accepted without a check, because no size schema is registered for their resource type.",
    labelNames: ["platform", "resource_type"] as const,
    registers,
  });
  const projectionReplays = new Counter({
    name: "tally_projection_replays_total",
    help: "Resources whose whole history was replayed because an event arrived late.",
    labelNames: ["cloud"] as const,
    registers,
  });
  const currentResources = new Gauge({
    name: "tally_current_resources",
    help: "Resources in the projection by state, as of the last refresh.",
    labelNames: ["platform", "cloud", "resource_type", "state"] as const,
    registers,
  });
  const httpDuration = new Histogram({
    name: "tally_http_request_duration_seconds",
    help: "How long requests took, by route pattern.",
    labelNames: ["method", "route", "status"] as const,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const poolMax = new Gauge({
    name: "tally_db_pool_max_connections",
    help: "How many connections to the database this process opens at most.",
    registers,
  });
  const transactions = new Gauge({
    name: "tally_db_transactions",
    help: "Transactions of requests that are open or wait for a connection; with more than there are connections, some wait.",
    registers,
  });
  const ready = new Gauge({
    name: "tally_ready",
    help: "1 while the database answers, takes writes and has this version's schema; 0 otherwise.",
    registers,
  });

  const syncRuns = new Counter({
    name: "tally_sync_runs_total",
    help: "Reconciliation runs by how they ended.",
    labelNames: ["cloud", "status"] as const,
    registers,
  });
  const syncReconciled = new Counter({
    name: "tally_sync_resources_reconciled_total",
    help: "Corrections that runs booked: create, update, delete.",
    labelNames: ["cloud", "action"] as const,
    registers,
  });
  const syncDeferred = new Counter({
    name: "tally_sync_resources_deferred_total",
    help: "Differences that runs left to the next one: transitional, recent.",
    labelNames: ["cloud", "reason"] as const,
    registers,
  });
  const syncErrors = new Counter({
    name: "tally_sync_errors_total",
    help: "Errors that runs recorded.",
    labelNames: ["cloud"] as const,
    registers,
  });
  const syncDuration = new Histogram({
    name: "tally_sync_duration_seconds",
    help: "How long runs took.",
    labelNames: ["cloud"] as const,
    buckets: [0.5, 1, 2.5, 5, 10, 20, 45, 90, 180, 600, 1_800],
    registers,
  });
  const syncLastSuccess = new Gauge({
    name: "tally_sync_last_success_timestamp_seconds",
    help: "When this process last ended a run without an error, in seconds since 1970.",
    labelNames: ["cloud"] as const,
    registers,
  });
  const syncWithheld = new Counter({
    name: "tally_sync_withheld_deletes_total",
    help: "Deletes that the mass-delete brake kept runs from booking.",
    labelNames: ["cloud"] as const,
    registers,
  });

  const ingestedLabels = new LabelSets();
  const unvalidatedLabels = new LabelSets();
  const platformLabels = new LabelSets();
  const pairLabels = new LabelSets();
  const cloudLabels = new LabelSets();

  return {
    registry,
    eventsIngested,
    eventsDeduplicated,
    eventsRejected,
    unvalidatedSize,
    projectionReplays,
    currentResources,
    httpDuration,
    poolMax,
    transactions,
    ready,
    syncRuns,
    syncReconciled,
    syncDeferred,
    syncErrors,
    syncDuration,
    syncLastSuccess,
    syncWithheld,

    /** Counts a batch's accepted events: summed up by label set first, since a batch has few different ones. */
    countIngested(accepted: Iterable<{ readonly event: CountedEvent }>, source: string): void {
      const sums = new Map<string, { event: CountedEvent; count: number }>();
      for (const { event } of accepted) {
        const key = `${event.eventType}\0${event.resourceType}\0${event.platform}\0${event.cloud}`;
        const sum = sums.get(key);
        if (sum === undefined) sums.set(key, { event, count: 1 });
        else sum.count++;
      }
      for (const [key, { event, count }] of sums) {
        const admitted = ingestedLabels.admit(`${source}\0${key}`);
        const pairAdmitted = pairLabels.admit(`${event.platform}\0${event.cloud}`);
        eventsIngested.inc(
          {
            platform: pairAdmitted ? event.platform : "other",
            cloud: pairAdmitted ? event.cloud : "other",
            resource_type: admitted ? event.resourceType : "other",
            event_type: admitted ? event.eventType : "other",
            source,
          },
          count,
        );
      }
    },

    /** Counts items that were stored already. Clouds are bounded where no credential bounds them. */
    countDuplicates(cloud: string, count: number): void {
      eventsDeduplicated.inc({ cloud: cloudLabels.admit(cloud) ? cloud : "other" }, count);
    },

    /** Counts histories that were replayed. */
    countReplays(cloud: string, count: number): void {
      projectionReplays.inc({ cloud: cloudLabels.admit(cloud) ? cloud : "other" }, count);
    },

    /** Counts sizes that no schema checked. */
    countUnvalidated(platform: string, resourceType: string, count = 1): void {
      const resource_type = unvalidatedLabels.admit(`${platform}\0${resourceType}`) ? resourceType : "other";
      unvalidatedSize.inc(
        { platform: platformLabels.admit(platform) ? platform : "other", resource_type },
        count,
      );
    },
  };
}

/** Which label sets a metric already has, up to a bound. */
class LabelSets {
  readonly #known = new Set<string>();

  /** True where the set is known or there is room for it. */
  admit(key: string): boolean {
    if (this.#known.has(key)) return true;
    if (this.#known.size >= MAX_LABEL_SETS) return false;
    this.#known.add(key);
    return true;
  }
}
