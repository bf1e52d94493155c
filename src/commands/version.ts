/** tally version */
import type { Command } from "commander";
import manifest from "../../package.json" with { type: "json" };

/** This Tally's version. */
export const VERSION: string = manifest.version;

export function registerVersion(program: Command): void {
  program
    .command("version")
    .description("print the version")
    .action(() => console.log(VERSION));
}
