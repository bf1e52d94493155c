/** tally migrate up | status | down */

import { type Command, InvalidArgumentError } from "commander";
import { migrateDown, migrateUp, migrationStatus } from "../database/migrations.ts";
import { readSettings } from "../settings.ts";
import { withExistingDatabase, withRawDatabase } from "./database.ts";
import { print } from "./print.ts";
import { renderTable, styleFor } from "./table.ts";

function version(text: string): number {
  if (!/^\d{1,4}$/.test(text)) throw new InvalidArgumentError("It is a migration's number, or 0 for none.");
  return Number(text);
}

export function registerMigrate(program: Command): void {
  const migrate = program.command("migrate").description("the database's schema, version by version");

  migrate
    .command("up")
    .description("apply every pending migration")
    .action(async () => {
      const applied = await withRawDatabase(readSettings(process.env), (db) => migrateUp(db));
      for (const name of applied) print(`${name} applied`);
      if (applied.length === 0) print("nothing to apply");
    });

  migrate
    .command("status")
    .description("list the migrations: applied, pending, edited since, or unknown to this version")
    .action(async () => {
      const lines = await withExistingDatabase(readSettings(process.env), (db) => migrationStatus(db));
      const cells = lines.map((line) => [
        String(line.version).padStart(4, "0"),
        line.name,
        line.state,
        line.appliedAt ?? "",
      ]);
      const titles = ["VERSION", "NAME", "STATE", "APPLIED"];
      print(renderTable(titles, cells, styleFor(process.stdout, process.env)));
    });

  migrate
    .command("down")
    .description("take migrations back, newest first; the tables that they made go, with everything in them")
    .requiredOption("--to <version>", "the last version to keep; 0 keeps none", version)
    .option("--yes", "yes, what those tables hold may be lost")
    .action(async (options: { to: number; yes?: boolean }) => {
      const settings = readSettings(process.env);
      if (options.yes !== true) throw new Error("migrate down loses what the dropped tables hold: add --yes");
      const gone = await withRawDatabase(settings, (db) => migrateDown(db, options.to));
      for (const name of gone) print(`${name} taken back`);
      if (gone.length === 0) print("nothing to take back");
    });
}
