/** What a reconciliation run is asked for, and what it works with. */
import type { Instant } from "../event/instant.ts";
import type { Services } from "../http/services.ts";

/** What a run works with. */
export type RunServices = Pick<Services, "db" | "settings" | "now" | "log" | "metrics">;

/** What a run is asked for. */
export interface RunRequest {
  /** What the run takes for now; left out: the wall clock. Whether a caller may say is the caller's to check. */
  readonly at?: Instant;
  /** Decide, and book nothing. */
  readonly dryRun?: boolean;
  /** Book also what the brake would withhold. */
  readonly confirmMassDelete?: boolean;
  /** Who asks, for the audit log; `internal` unless told. */
  readonly actor?: string;
  /** Run only if no run of the cloud began after this instant: for who comes by the clock. */
  readonly unlessSince?: Instant;
}
