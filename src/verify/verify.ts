/**
 * The checker: is everything that is derived what the events say, and is everything stored that was promised? It reads
 * only, a portion at a time, each portion as of one moment, so that it can run beside a serving Tally.
 */
import type { Database } from "../database/connection.ts";
import { checkAudit } from "./audit.ts";
import type { Report } from "./fault.ts";
import { checkMinutes } from "./minutes.ts";
import { estimate } from "./queries.ts";
import { checkResources } from "./resources.ts";
import { unhurried } from "./unhurried.ts";

/** What the checker is at. */
export type Stage = "resources" | "projects" | "audit entries";

/** What was looked at. Faults were reported one by one. */
export interface Verified {
  readonly resources: number;
  readonly events: number;
  readonly projects: number;
  /** Projects with more history than a summary takes: their minutes were not summed up. */
  readonly projectsTooLong: number;
  readonly auditEntries: number;
  readonly faults: number;
}

/** How far it is. `total` is about right, null where nobody knows. */
export type Progress = (stage: Stage, done: number, total: number | null) => void;

/**
 * Checks the whole database.
 * @param report told of each fault when it is found; keeping few of many is its own affair
 * @throws what the database throws; a fault is never thrown
 */
export async function verify(
  db: Database,
  report: Report,
  onProgress: Progress = () => {},
): Promise<Verified> {
  let faults = 0;
  const counting: Report = (fault) => {
    faults++;
    report(fault);
  };
  const { resources, entries } = await unhurried(db, estimate);
  const rows = await checkResources(db, counting, (done) => onProgress("resources", done, resources));
  const sums = await checkMinutes(db, counting, (done) => onProgress("projects", done, null));
  const auditEntries = await checkAudit(db, counting, (done) => onProgress("audit entries", done, entries));
  return {
    resources: rows.resources,
    events: rows.events,
    projects: sums.projects,
    projectsTooLong: sums.tooLong,
    auditEntries,
    faults,
  };
}
