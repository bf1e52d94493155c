/** What `export` and `import` show on a terminal while they work: a bar on stderr, so that stdout stays the stream's. */
import { SingleBar } from "cli-progress";
import type { TransferProgress } from "../transfer/export.ts";

/** How often a count that isn't drawn may still be asked for. */
const FRAMES_A_SECOND = 5;

/** A bar that can be stopped. */
export interface TransferBar extends TransferProgress {
  stop(): void;
}

/** A bar over so many things; nothing at all where stderr is no terminal. @param what `rows`, `resources` */
export function transferBar(doing: string, what: string): TransferBar {
  if (!process.stderr.isTTY) return { total: () => {}, rows: () => {}, stop: () => {} };
  const bar = new SingleBar({
    stream: process.stderr,
    format: `${doing} {bar} {percentage}% | {value} of {total} ${what} | {eta_formatted} to go`,
    hideCursor: true,
    fps: FRAMES_A_SECOND,
  });
  let running = false;
  return {
    total: (count) => {
      running = true;
      bar.start(count, 0);
    },
    rows: (count) => bar.increment(count),
    stop: () => {
      if (running) bar.stop();
      running = false;
    },
  };
}
