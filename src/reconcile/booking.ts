/**
 * Booking what a run decided: corrections become events, which go through the same pipeline as everybody's. Once
 * booking has begun nothing cuts it short, so that a run that is cancelled has booked nothing, or all of it.
 */
import type { Database } from "../database/connection.ts";
import { BATCH_MAX_ITEMS } from "../event/bounds.ts";
import { formatInstant } from "../event/instant.ts";
import { count, type Pipeline, takeThrough } from "../ingest/pipeline.ts";
import type { Candidate, Refusal } from "../ingest/screen.ts";
import { type Sender, type Store, storeBatch } from "../ingest/store.ts";
import { keyOf } from "../projection/queries.ts";
import type { Action, Correction } from "./finding.ts";
import { updateRunStats } from "./queries.ts";
import { lockNewestEvents } from "./recorded.ts";
import type { RunStats } from "./stats.ts";

/** The run that corrections are from. */
export interface BookingRun {
  readonly id: string;
  readonly cloud: string;
  readonly platform: string;
  /** Who asked for the run, for the audit log. */
  readonly actor: string;
}

/** So many characters of events go into one batch, but for a single one that is longer. */
const BATCH_MAX_LENGTH = 8 * 1024 * 1024;

/** The event id of a correction: the same run, booked again, adds nothing. */
export function correctionId(
  run: Pick<BookingRun, "id" | "cloud">,
  correction: { readonly resourceType: string; readonly resourceId: string; readonly action: Action },
): string {
  const { resourceType, resourceId, action } = correction;
  const hash = new Bun.CryptoHasher("sha256");
  hash.update(`${run.id}:${run.cloud}:${resourceType}:${resourceId}:${action}`);
  return `recon-${hash.digest("hex")}`;
}

/** A correction as the event that the pipeline takes: JSON text. */
export function correctionEvent(run: BookingRun, correction: Correction): string {
  const { action, timestamp, resourceType, resourceId, projectId, state, size, provider, reason } =
    correction;
  const members = [
    ...(state === null ? [] : [`"state":${JSON.stringify(state)}`]),
    ...(size === null ? [] : [`"size":${size}`]),
    ...(provider === null ? [] : [`"provider":${provider}`]),
    `"reconciliation":${JSON.stringify({ run_id: run.id, reason })}`,
  ];
  return (
    `{"event_id":"${correctionId(run, correction)}","timestamp":"${formatInstant(timestamp)}"` +
    `,"event_type":"sync.${action}","platform":${JSON.stringify(run.platform)},"cloud":${JSON.stringify(run.cloud)}` +
    `,"resource_type":${JSON.stringify(resourceType)},"resource_id":${JSON.stringify(resourceId)}` +
    `,"project_id":${JSON.stringify(projectId)},"source":"reconciliation","payload":{${members.join(",")}}}`
  );
}

/**
 * Books the corrections, in their order, batch by batch; each batch lands whole with the counts in the run's row. The
 * list is emptied on the way: a cloud that is run for the first time has as many corrections as resources.
 *
 * A resource that moved since the comparison (an event came in and its row's newest one is another) is left to the
 * next run: what was decided was decided about what it was before.
 *
 * @param stats counts up, and takes what was refused as errors
 * @returns those that were booked, `keep` of them at most
 * @throws what the database throws: then the batches before stay booked, and the run's row alone counts them
 */
export async function book(
  pipeline: Pipeline,
  run: BookingRun,
  corrections: Correction[],
  stats: RunStats,
  keep: number,
): Promise<Correction[]> {
  const booked: Correction[] = [];
  while (corrections.length > 0) {
    const { batch, texts } = nextBatch(run, corrections);
    corrections.splice(0, batch.length);
    const done = await bookBatch(pipeline, run, batch, texts, stats);
    booked.push(...done.slice(0, keep - booked.length));
  }
  return booked;
}

/** New rows and known ones go separately: their locks are taken in the order in which ingest takes them. */
function nextBatch(
  run: BookingRun,
  corrections: readonly Correction[],
): { batch: Correction[]; texts: string[] } {
  const batch: Correction[] = [];
  const texts: string[] = [];
  let length = 0;
  const ofNew = corrections[0]?.basis === null;
  for (const correction of corrections.slice(0, BATCH_MAX_ITEMS)) {
    if ((correction.basis === null) !== ofNew) break;
    const text = correctionEvent(run, correction);
    if (batch.length > 0 && length + text.length > BATCH_MAX_LENGTH) break;
    batch.push(correction);
    texts.push(text);
    length += text.length;
  }
  return { batch, texts };
}

async function bookBatch(
  pipeline: Pipeline,
  run: BookingRun,
  batch: readonly Correction[],
  texts: readonly string[],
  stats: RunStats,
): Promise<Correction[]> {
  const sender: Sender = { actor: run.actor, scope: null, source: "reconciliation" };
  const items = texts.map((text): unknown => JSON.parse(text));
  const before = stats.copy();
  // The store may be called again for a part of the batch; what its last call did is what stays.
  const store: Store = async (tx, from, screened) => {
    const newest = await lockNewestEvents(
      tx,
      run.cloud,
      screened.candidates.map(({ event }) => event),
    );
    const newestOf = new Map(newest.map(({ key, lastEventId }) => [keyOf(key), lastEventId]));
    const unmoved = screened.candidates.filter(
      ({ index, event }) => (newestOf.get(keyOf(event)) ?? null) === (batch[index]?.basis ?? null),
    );
    const stored = await storeBatch(tx, from, { ...screened, candidates: unmoved });
    const after = before.copy();
    after.deferred.recent += screened.candidates.length - unmoved.length;
    noteStored(after, batch, stored.accepted);
    noteRefused(after, batch, screened.refusals);
    await updateRunStats(tx, run.id, after.json());
    stats.become(after);
    return stored;
  };
  const { screened, stored, unvalidated } = await takeThrough(pipeline, sender, texts, items, store);
  const accepted = new Set(stored.accepted.map(({ index }) => index));
  const candidates = screened.candidates.filter(({ index }) => accepted.has(index));
  count(pipeline.metrics, sender, { ...screened, candidates }, stored, unvalidated);
  return batch.filter((_, index) => accepted.has(index));
}

function noteStored(stats: RunStats, batch: readonly Correction[], accepted: readonly Candidate[]): void {
  for (const { index } of accepted) {
    const correction = batch[index];
    if (correction !== undefined) stats.correct(correction.action);
  }
}

function noteRefused(stats: RunStats, batch: readonly Correction[], refusals: readonly Refusal[]): void {
  for (const { index, reason } of refusals) {
    const correction = batch[index];
    if (correction === undefined) continue;
    const { resourceType, resourceId, action } = correction;
    stats.fail(`${resourceType} ${resourceId}: its sync.${action} was refused: ${reason}`);
  }
}

/** The pipeline that corrections go through. */
export function bookingPipeline(services: {
  readonly db: Database;
  readonly metrics: Pipeline["metrics"];
  readonly settings: { readonly requireSizeSchema: boolean };
}): Pipeline {
  const { db, metrics, settings } = services;
  return { db, metrics, requireSizeSchema: settings.requireSizeSchema };
}
