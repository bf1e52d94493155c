/** Results of commands. */
import { writeSync } from "node:fs";

/** How long to wait for a reader whose pipe is full, in milliseconds. */
const FULL_PIPE_MS = 2;

/**
 * Writes a result and a newline to stdout, all of it. (`console.log` says nothing of what it couldn't write.) A reader
 * that went away, like `head`, has seen what it wanted.
 * @throws where it can't be written, because the disk is full, say: a token that is lost is no success
 */
export function print(text: string): void {
  let rest = Buffer.from(`${text}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") throw new Error(`the result can't be written: ${code}`, { cause: error });
      Bun.sleepSync(FULL_PIPE_MS);
    }
  }
}
