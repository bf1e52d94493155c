/** How far a record is from the truth. */
import type { Database } from "../../src/database/connection.ts";
import type { Instant } from "../../src/event/instant.ts";
import { canonicalJson } from "../../src/event/json-text.ts";
import { type KeyedEvent, pagesOfHistories } from "../../src/projection/histories.ts";
import { fold } from "../../src/timeline/fold.ts";
import type { Facts, TrueLife } from "./facts.ts";

/** From an instant on something is billed like that; null: not at all. */
interface Step {
  readonly at: Instant;
  readonly billed: string | null;
}

function billed({ state, size, projectId }: Facts): string {
  return `${state} ${projectId} ${canonicalJson(JSON.stringify(size))}`;
}

/** The instant before which nothing is compared or billed is the first step's. */
function apart(truth: readonly Step[], record: readonly Step[], until: Instant): bigint {
  const instants = [...new Set([...truth, ...record].map(({ at }) => at).filter((at) => at < until))];
  instants.sort((a, b) => (a < b ? -1 : 1));
  let difference = 0n;
  let [t, r]: [string | null, string | null] = [null, null];
  for (const [n, at] of instants.entries()) {
    for (const step of truth) if (step.at === at) t = step.billed;
    for (const step of record) if (step.at === at) r = step.billed;
    if (t !== r) difference += (instants[n + 1] ?? until) - at;
  }
  return difference;
}

/** One resource that is recorded otherwise than it was. */
export interface Deviation {
  readonly life: TrueLife;
  /** Microseconds over which something else is billed than should be. */
  readonly micros: bigint;
}

/** What a record says of a cloud, beside the truth. */
export interface Verdict {
  /** Resources whose row says something else than is true now: a line each. */
  readonly wrong: readonly string[];
  readonly deviations: readonly Deviation[];
}

/**
 * Compares the stored histories and rows of a cloud with its truth.
 * @param until where open intervals end
 */
export async function compareWithTruth(
  db: Database,
  cloud: string,
  lives: readonly TrueLife[],
  until: Instant,
): Promise<Verdict> {
  const histories = await historiesOf(db, cloud, lives);
  const rows = await rowsOf(db, cloud);
  const wrong: string[] = [];
  const deviations: Deviation[] = [];
  for (const life of lives) {
    const key = `${life.resourceType} ${life.resourceId}`;
    const last = life.steps.at(-1)?.facts ?? null;
    const now = last === null ? null : billed(last);
    const row = rows.get(key) ?? null;
    rows.delete(key);
    if (now !== row) wrong.push(`${key}: is ${now}, recorded as ${row}`);
    const truth = life.steps.map(({ at, facts }) => ({ at, billed: facts === null ? null : billed(facts) }));
    const micros = apart(truth, recordedSteps(histories.get(key) ?? []), until);
    if (micros > 0n) deviations.push({ life, micros });
  }
  for (const [key, row] of rows) if (row !== null) wrong.push(`${key}: never was, recorded as ${row}`);
  return { wrong, deviations };
}

function recordedSteps(history: readonly KeyedEvent[]): Step[] {
  const steps: Step[] = [];
  for (const { from, to, state, size, projectId } of fold(history.map(({ event }) => event)).intervals) {
    const before = steps.at(-1);
    // What begins where another ends takes its place.
    if (before?.at === from && before.billed === null) steps.pop();
    steps.push({ at: from, billed: `${state} ${projectId} ${canonicalJson(size)}` });
    if (to !== null) steps.push({ at: to, billed: null });
  }
  return steps;
}

async function historiesOf(
  db: Database,
  cloud: string,
  lives: readonly TrueLife[],
): Promise<Map<string, KeyedEvent[]>> {
  const histories = new Map<string, KeyedEvent[]>();
  for await (const page of pagesOfHistories(db, cloud, lives, true)) {
    for (const event of page) {
      const key = `${event.resourceType} ${event.resourceId}`;
      const history = histories.get(key);
      if (history === undefined) histories.set(key, [event]);
      else history.push(event);
    }
  }
  return histories;
}

/** What each row bills now, by `type id`; null for the dead. */
async function rowsOf(db: Database, cloud: string): Promise<Map<string, string | null>> {
  const rows: (Record<"key" | "state" | "project" | "size", string> & { dead: boolean })[] = await db`
    SELECT resource_type || ' ' || resource_id AS key, state, project_id AS project, size::text AS size,
           deleted_at IS NOT NULL AS dead
      FROM current_resources WHERE cloud = ${cloud}`;
  return new Map(
    rows.map(({ key, state, project, size, dead }) => [
      key,
      dead ? null : `${state} ${project} ${canonicalJson(size)}`,
    ]),
  );
}
