/**
 * `tally verify` from the sources: checks the database that the TALLY_… variables name, and changes nothing.
 *
 *     bun scripts/verify.ts
 */
import { Command } from "commander";
import { registerVerify } from "../src/commands/verify.ts";

const program = new Command("verify.ts");
registerVerify(program);
try {
  await program.parseAsync(["verify", ...process.argv.slice(2)], { from: "user" });
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
