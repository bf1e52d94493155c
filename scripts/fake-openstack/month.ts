/** A long time in a fake cloud, beside a Tally that is told only a part of it. */
import type { Instant } from "../../src/event/instant.ts";
import { ingest, type Pipeline } from "../../src/ingest/pipeline.ts";
import type { ConfiguredCloud } from "../../src/reconcile/adapter.ts";
import type { RunServices } from "../../src/reconcile/request.ts";
import { runSync } from "../../src/reconcile/run.ts";
import { compareWithTruth, type Verdict } from "./compare.ts";
import type { FakeCloud } from "./fake-cloud.ts";
import { later } from "./furnishing.ts";
import { type Losses, LossyBus } from "./lossy-bus.ts";
import { Random } from "./random.ts";

/** What is lived through. */
export interface Span {
  readonly seed: number;
  readonly hours: number;
  /** Between the starts of two runs. */
  readonly intervalSeconds: number;
  readonly losses: Losses;
}

/** What came of it. */
export interface Lived {
  readonly runs: number;
  readonly corrections: { readonly created: number; readonly updated: number; readonly deleted: number };
  readonly events: LossyBus["counts"];
  /** The first reasons of runs that failed. */
  readonly failures: readonly string[];
  readonly verdict: Verdict;
  /** How many events of a resource were lost, by `type id`. */
  readonly lost: ReadonlyMap<string, number>;
}

/** In the end nothing happens any more until the last late event has arrived, and for so long after it. */
const REST_SECONDS = 1_800;

/** Events that one batch holds. */
const BATCH = 1_000;

/**
 * Lives through a span of the cloud's time: every interval, what has arrived is ingested, and a run is made.
 * @param progress told after each of the cloud's days
 */
export async function liveThrough(
  cloud: FakeCloud,
  configured: ConfiguredCloud,
  services: RunServices,
  span: Span,
  progress: (day: number) => void = () => {},
): Promise<Lived> {
  const bus = new LossyBus(new Random(span.seed ^ 0x5eed), span.losses);
  const pipeline: Pipeline = { db: services.db, metrics: services.metrics, requireSizeSchema: false };
  const scope = { platform: configured.platform, cloud: configured.cloud };
  const begin = cloud.world.now;
  const busyUntil = later(begin, span.hours * 3_600);
  const end = later(busyUntil, span.losses.latest + REST_SECONDS);
  const corrections = { created: 0, updated: 0, deleted: 0 };
  const failures: string[] = [];
  let runs = 0;
  for (let now = begin; now <= end; now = later(now, span.intervalSeconds)) {
    if (now > busyUntil) cloud.living.calm();
    cloud.living.advance(now);
    bus.take(cloud.living.drain(), now);
    const arrived = bus.arrived(now);
    for (let at = 0; at < arrived.length; at += BATCH) {
      const batch = arrived.slice(at, at + BATCH);
      const outcome = await ingest(
        pipeline,
        { actor: "collector", scope, source: "collector" },
        JSON.stringify(batch),
        batch,
      );
      failures.push(...outcome.rejected.map(({ event_id, reason }) => `${event_id}: ${reason}`));
    }
    const { stats } = await runSync(services, configured, { at: now }, new AbortController().signal);
    runs++;
    corrections.created += stats.created;
    corrections.updated += stats.updated;
    corrections.deleted += stats.deleted;
    if (stats.errorCount > 0 && failures.length < 20)
      failures.push(`run ${runs}: ${stats.errors.join("; ")}`);
    if (dayOf(now, begin) !== dayOf(later(now, span.intervalSeconds), begin)) progress(dayOf(now, begin) + 1);
  }
  const verdict = await compareWithTruth(services.db, configured.cloud, cloud.living.lives, cloud.world.now);
  return { runs, corrections, events: bus.counts, failures, verdict, lost: bus.lost };
}

function dayOf(now: Instant, begin: Instant): number {
  return Number((now - begin) / 86_400_000_000n);
}

/**
 * Resources that are billed further from the truth than so many seconds for each event of theirs that was lost: a
 * line each.
 */
export function overdrawn({ verdict, lost }: Lived, secondsPerLoss: number): string[] {
  return verdict.deviations.flatMap(({ life, micros }) => {
    const key = `${life.resourceType} ${life.resourceId}`;
    const allowed = (lost.get(key) ?? 0) * secondsPerLoss;
    const seconds = Number(micros) / 1e6;
    return seconds <= allowed ? [] : [`${key}: ${seconds} s off, ${allowed} s allowed`];
  });
}
