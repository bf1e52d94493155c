/** tally version */

import type { Command } from "commander";
import manifest from "../../package.json" with { type: "json" };
import { readNotices } from "../notices.ts";
import { print } from "./print.ts";

/** This Tally's version. */
export const VERSION: string = manifest.version;

export function registerVersion(program: Command): void {
  program
    .command("version")
    .description("print the version")
    .option("--notices", "print the licences of the software of others that this executable holds")
    .action(async (options: { notices?: boolean }) => {
      if (options.notices === true) print((await readNotices()).trimEnd());
      else print(VERSION);
    });
}
