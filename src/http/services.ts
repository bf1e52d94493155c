/** What every feature's routes are given. */
import type { Database } from "../database/connection.ts";
import type { Instant } from "../event/instant.ts";
import type { ConfiguredCloud } from "../reconcile/adapter.ts";
import type { Settings } from "../settings.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** The app's parts, made once at start. */
export interface Services {
  readonly db: Database;
  readonly settings: Settings;
  /** The wall clock. Nothing below a route reads another one. */
  readonly now: () => Instant;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The clouds that are reconciled, each once. */
  readonly clouds: readonly ConfiguredCloud[];
  /** What keeps from writing though the database would take it, in words; null: nothing does. */
  readonly hindrance?: () => string | null;
}
