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
      // The bar goes to stderr, so that stdout holds the result alone.
      const bar = process.stderr.isTTY ? progressBar() : null;
      let found = 0;
      // At once: a run that is broken off has told what it saw.
      const report = ({ where, what }: Fault) => {
        if (++found > PRINTED) return;
        bar?.giveWay();
        print(`${where}: ${what}`);
        bar?.goOn();
      };
      const verified = await withCurrentDatabase(readSettings(process.env), async (db) => {
        try {
          return await verify(db, report, bar?.show);
        } finally {
          bar?.stop();
        }
      });
      if (found > PRINTED) print(`… and ${found - PRINTED} more`);
      print(summaryOf(verified));
      if (found > 0) throw new Error(`${counted(found, "fault")} found`);
      print("no fault found");
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

/** Moves to the line's beginning and empties it. */
const CLEAR_LINE = "\r\x1b[2K";
/** Where a bar that ends puts the cursor: behind the faults that were printed since the bar began. */
const SAVE_CURSOR = "\x1b7";

/** One bar a stage, on stderr. */
interface StageBar {
  show: Progress;
  /** Makes its line free for others. */
  giveWay(): void;
  /** They have written theirs: it is drawn again below. */
  goOn(): void;
  stop(): void;
}

function progressBar(): StageBar {
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
        // Also where nothing has moved on since it gave way.
        forceRedraw: true,
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
  const write = (text: string) => {
    if (bar !== null) process.stderr.write(text);
  };
  return { show, stop, giveWay: () => write(CLEAR_LINE), goOn: () => write(SAVE_CURSOR) };
}
