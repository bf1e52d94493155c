/**
 * The command line. Results go to stdout, alone; every refusal is one line on stderr and exit code 1. (serve's log
 * is its result.)
 */
import { Command, CommanderError } from "commander";
import { registerClouds } from "./clouds.ts";
import { registerConfig } from "./config.ts";
import { registerCredential } from "./credential.ts";
import { registerDemo } from "./demo.ts";
import { registerExport } from "./export.ts";
import { registerHealth } from "./health.ts";
import { registerImport } from "./import.ts";
import { registerMigrate } from "./migrate.ts";
import { registerProject } from "./project.ts";
import { registerRebuild } from "./rebuild.ts";
import { registerServe } from "./serve.ts";
import { registerSync } from "./sync.ts";
import { registerToken } from "./token.ts";
import { registerVerify } from "./verify.ts";
import { registerVersion, VERSION } from "./version.ts";

function commandLine(): Command {
  const program = new Command("tally")
    .description(
      "The record from which cloud bills are computed: lifecycle events in, billable intervals out.",
    )
    .version(VERSION, "--version", "print the version")
    // Subcommands inherit both: refusals are thrown, and written below in one place.
    .exitOverride()
    .configureOutput({ outputError: () => {}, writeErr: () => {} });
  registerServe(program);
  registerDemo(program);
  registerMigrate(program);
  registerCredential(program);
  registerToken(program);
  registerProject(program);
  registerRebuild(program);
  registerSync(program);
  registerExport(program);
  registerImport(program);
  registerVerify(program);
  registerClouds(program);
  registerConfig(program);
  registerHealth(program);
  registerVersion(program);
  return program;
}

/** What to write for an error; null: nothing, it was help that was asked for. */
function refusal(error: unknown, words: readonly string[]): string | null {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return null;
    const see = (of: readonly string[]) => `see ${["tally", ...of].join(" ")} --help`;
    const help = words.indexOf("help");
    if (error.code === "commander.help" && help !== -1)
      return `unknown command '${words.at(-1)}': ${see(words.slice(0, help))}`;
    if (error.code === "commander.help") return `a command is missing: ${see(words)}`;
    return error.message.replace(/^error: /, "");
  }
  return error instanceof Error && error.message !== "" ? error.message : String(error);
}

/** Runs the command that the words name. A refusal is written and sets the exit code. */
export async function runCommandLine(words: string[]): Promise<void> {
  try {
    await commandLine().parseAsync(words, { from: "user" });
  } catch (error) {
    const line = refusal(error, words);
    if (line !== null) {
      console.error(`tally: ${line.trim().replace(/\s*\n\s*/g, " ")}`);
      process.exitCode = 1;
    }
  }
}
