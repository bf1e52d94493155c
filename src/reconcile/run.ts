/** Running a cloud: once at a time, and, for who comes by the clock, not twice within its interval. */
import type { Instant } from "../event/instant.ts";
import type { ConfiguredCloud } from "./adapter.ts";
import { withCloudLock } from "./cloud-lock.ts";
import type { SyncOutcome } from "./outcome.ts";
import { lastStarts } from "./queries.ts";
import type { RunRequest, RunServices } from "./request.ts";
import { Run } from "./steps.ts";

/** Another run holds the cloud. */
export class CloudHeld extends Error {
  override readonly name = "CloudHeld";
  constructor(cloud: string) {
    super(`another run of ${cloud} is under way`);
  }
}

/** Starts that lie no further than this in the future are another machine's; later ones were asked for. Microseconds. */
export const CLOCK_SKEW = 60_000_000n;

/**
 * Runs one cloud once.
 *
 * @param signal cancels the run: nothing is booked then, unless everything that it decided was being booked already
 * @returns what came of it, also where it failed: its reasons are in its row and in the log
 * @throws {CloudHeld} where another run holds the cloud; what the database throws where a run's row could not be
 *   written: then nothing was booked, or the next run closes the row
 */
export async function runSync(
  services: RunServices,
  cloud: ConfiguredCloud,
  request: RunRequest,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const outcome = await runUnlessDone(services, cloud, request, signal);
  if (outcome === null) throw new Error("only a run that comes by the clock can have been done already");
  return outcome;
}

/** The same for who comes by the clock: null where a run began after `unlessSince`. */
export async function runUnlessDone(
  services: RunServices,
  cloud: ConfiguredCloud,
  request: RunRequest,
  signal: AbortSignal,
): Promise<SyncOutcome | null> {
  const silenceMs = services.settings.database.silenceSeconds * 1_000;
  const locked = await withCloudLock(services.db, cloud.cloud, silenceMs, async (held) => {
    const startedAt = request.at ?? services.now();
    if (request.unlessSince !== undefined) {
      const upTo = (startedAt + CLOCK_SKEW) as Instant;
      const last = (await lastStarts(services.db, [cloud.cloud], upTo)).get(cloud.cloud);
      if (last !== undefined && last > request.unlessSince) return null;
    }
    return await new Run(services, cloud, request, startedAt, held).run(signal);
  });
  if (locked.held) throw new CloudHeld(cloud.cloud);
  return locked.value;
}
