/** A project's minutes, as its summary tells them, against what its resources' events say without the fold. */
import type { ProjectPair } from "../access/callers.ts";
import type { Database, Queryable } from "../database/connection.ts";
import { faultOf, sqlStateOf } from "../database/faults.ts";
import { EARLIEST, type Instant, LATEST } from "../event/instant.ts";
import { Problem } from "../problem.ts";
import { summarize, type TypeActivity } from "../projects/summary.ts";
import type { Report } from "./fault.ts";
import { cloudsOfProject, keysOfProject, nextProjectId, ownedMicros, snapshotInstant } from "./queries.ts";
import { unhurried } from "./unhurried.ts";

const MICROS_A_MINUTE = 60_000_000n;
/** Resources of one statement. */
const RESOURCES_A_PORTION = 500;
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
      what: `its summary says ${summed} minutes of ${resourceType}, and its resources' events come to ${counted}`,
    });
  }
  return true;
}

/**
 * How long the project had resources of each type. Nothing of how a summary finds, reads and folds histories is used:
 * what that overlooks must not be missing here as well.
 */
async function microsByType(db: Queryable, pair: ProjectPair, now: Instant): Promise<Map<string, bigint>> {
  const keys = await keysOfProject(db, pair);
  const sums = new Map<string, bigint>();
  for (let at = 0; at < keys.length; at += RESOURCES_A_PORTION) {
    const portion = keys.slice(at, at + RESOURCES_A_PORTION);
    for (const { resourceType, micros } of await ownedMicros(db, pair, portion, now))
      sums.set(resourceType, (sums.get(resourceType) ?? 0n) + micros);
  }
  return sums;
}
