/** A project's minutes, as its summary tells them, against those of its resources, one by one. */
import type { ProjectPair } from "../access/callers.ts";
import type { Database, Queryable } from "../database/connection.ts";
import { faultOf, sqlStateOf } from "../database/faults.ts";
import { EARLIEST, type Instant, LATEST } from "../event/instant.ts";
import { Problem } from "../problem.ts";
import { compareKeys, pagesOfHistories } from "../projection/histories.ts";
import type { LocalKey } from "../projection/queries.ts";
import { MAX_EVENTS, portions, summarize, type TypeActivity } from "../projects/summary.ts";
import { resourcesEverOf } from "../projects/summary-queries.ts";
import { Folding, type Interval } from "../timeline/fold.ts";
import type { Report } from "./fault.ts";
import { cloudsOfProject, nextProjectId, snapshotInstant } from "./queries.ts";
import { unhurried } from "./unhurried.ts";

const MICROS_A_MINUTE = 60_000_000n;
const ALWAYS = { from: EARLIEST, to: LATEST };

/** How much was looked at. */
export interface ProjectsChecked {
  readonly projects: number;
  /** Those with more history than a summary folds: there is no sum to hold against. */
  readonly tooLong: number;
}

/** What a summary is made by. */
export type Summarize = (
  db: Queryable,
  pair: ProjectPair,
  window: typeof ALWAYS,
  now: Instant,
) => Promise<readonly TypeActivity[]>;

/**
 * Checks every project that events name, registered or not, each as of one moment.
 * @param onProgress called after each project with their number so far
 * @param summary how a project is summed up; a test hands in a wrong one
 */
export async function checkMinutes(
  db: Database,
  report: Report,
  onProgress: (projects: number) => void,
  summary: Summarize = summarize,
): Promise<ProjectsChecked> {
  let projects = 0;
  let tooLong = 0;
  for (let after = ""; ; ) {
    const begin = after;
    const projectId = await unhurried(db, (tx) => nextProjectId(tx, begin));
    if (projectId === null) return { projects, tooLong };
    after = projectId;
    for (const cloud of await unhurried(db, (tx) => cloudsOfProject(tx, projectId))) {
      if (await summable(db, { cloud, projectId }, report, summary)) projects++;
      else tooLong++;
      onProgress(projects + tooLong);
    }
  }
}

function projectPath({ cloud, projectId }: ProjectPair): string {
  return `project ${[cloud, projectId].map(encodeURIComponent).join("/")}`;
}

/** @returns false where the project is too long for a summary */
async function summable(
  db: Database,
  pair: ProjectPair,
  report: Report,
  summary: Summarize,
): Promise<boolean> {
  try {
    return await unhurried(db, (tx) => checkProject(tx, pair, report, summary));
  } catch (error) {
    // What was written past every check (an infinite instant) makes the statements themselves fail.
    const fault = faultOf(error);
    if (sqlStateOf(error) === null || fault === "unavailable" || fault === "timeout") throw error;
    report({ where: projectPath(pair), what: `its minutes can't be summed up: ${String(error)}` });
    return true;
  }
}

/** @returns false where the project has no summary */
async function checkProject(
  db: Queryable,
  pair: ProjectPair,
  report: Report,
  summary: Summarize,
): Promise<boolean> {
  const now = await snapshotInstant(db);
  let told: readonly TypeActivity[];
  try {
    told = await summary(db, pair, ALWAYS, now);
  } catch (error) {
    if (error instanceof Problem && error.kind === "history_too_long") return false;
    throw error;
  }
  const minutes = new Map(told.map(({ resourceType, totalMinutes }) => [resourceType, totalMinutes]));
  const micros = await microsByType(db, pair, now);
  for (const resourceType of new Set([...minutes.keys(), ...micros.keys()])) {
    const summed = minutes.get(resourceType) ?? 0n;
    const counted = (micros.get(resourceType) ?? 0n) / MICROS_A_MINUTE;
    if (summed === counted) continue;
    report({
      where: projectPath(pair),
      what: `its summary says ${summed} minutes of ${resourceType}, and its resources' intervals are ${counted}`,
    });
  }
  return true;
}

/** How long the project had resources of each type, from the intervals of each resource with all its events. */
async function microsByType(db: Queryable, pair: ProjectPair, now: Instant): Promise<Map<string, bigint>> {
  const keys = await resourcesEverOf(db, pair, MAX_EVENTS);
  const sums = new Map<string, bigint>();
  let open: (LocalKey & { readonly folding: Folding }) | null = null;
  const add = (resourceType: string, intervals: readonly Interval[]) => {
    let sum = sums.get(resourceType) ?? 0n;
    for (const { from, to, projectId } of intervals) {
      const end = to === null || to > now ? now : to;
      if (projectId === pair.projectId && end > from) sum += end - from;
    }
    sums.set(resourceType, sum);
  };
  for (const portion of portions(keys)) {
    for await (const page of pagesOfHistories(db, pair.cloud, portion, true)) {
      for (const { resourceType, resourceId, event } of page) {
        if (open !== null && compareKeys(open, { resourceType, resourceId }) !== 0) {
          add(open.resourceType, open.folding.folded.intervals);
          open = null;
        }
        open ??= { resourceType, resourceId, folding: new Folding() };
        open.folding.take(event);
      }
    }
  }
  if (open !== null) add(open.resourceType, open.folding.folded.intervals);
  return sums;
}
