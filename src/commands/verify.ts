/** tally verify */
import { SingleBar } from "cli-progress";
import type { Command } from "commander";
import { readSettings } from "../settings.ts";
import type { Fault } from "../verify/fault.ts";
import { type Progress, type Stage, type Verified, verify } from "../verify/verify.ts";
import { withCurrentDatabase } from "./database.ts";
import { print } from "./print.ts";

/** Faults that are printed; all of them are counted. */
const PRINTED = 100;

export function registerVerify(program: Command): void {
  program
    .command("verify")
    .description("check that rows, minutes and counts are what the stored events say; changes nothing")
    .action(async () => {
      const faults: Fault[] = [];
      const report = (fault: Fault) => {
        if (faults.length < PRINTED) faults.push(fault);
      };
      const verified = await withCurrentDatabase(readSettings(process.env), async (db) => {
        // The bar goes to stderr, so that stdout holds the result alone.
        if (!process.stderr.isTTY) return await verify(db, report);
        const bar = progressBar();
        try {
          return await verify(db, report, bar.show);
        } finally {
          bar.stop();
        }
      });
      for (const { where, what } of faults) print(`${where}: ${what}`);
      if (verified.faults > faults.length) print(`… and ${verified.faults - faults.length} more`);
      print(summaryOf(verified));
      if (verified.faults > 0) throw new Error(`${counted(verified.faults, "fault")} found`);
    });
}

function counted(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

function summaryOf(verified: Verified): string {
  const { events, resources, projects, projectsTooLong, auditEntries } = verified;
  const looked = [
    counted(resources, "resource"),
    counted(events, "event"),
    counted(projects, "project"),
    `${auditEntries} audit ${auditEntries === 1 ? "entry" : "entries"}`,
  ].join(", ");
  const left =
    projectsTooLong === 0
      ? ""
      : ` (the minutes of ${counted(projectsTooLong, "project")} with more history than a summary takes were not)`;
  return `checked: ${looked}${left}`;
}

/** One bar a stage, on stderr. */
function progressBar(): { show: Progress; stop(): void } {
  let stage: Stage | null = null;
  let bar: SingleBar | null = null;
  const stop = () => bar?.stop();
  const show: Progress = (now, done, total) => {
    if (now !== stage) {
      stop();
      stage = now;
      bar = new SingleBar({
        stream: process.stderr,
        hideCursor: true,
        format:
          total === null
            ? `${now}: {value}`
            : `${now} {bar} {percentage}% | {value} of about {total} | {eta_formatted} to go`,
      });
      bar.start(total ?? done, 0);
    }
    if (bar !== null && done > bar.getTotal()) bar.setTotal(done);
    bar?.update(done);
  };
  return { show, stop };
}
