/** tally import [file] */
import type { Command } from "commander";
import type { Database } from "../database/connection.ts";
import { MIGRATIONS } from "../database/migration-files.ts";
import { readSettings } from "../settings.ts";
import { bytesOf, decompressed } from "../transfer/compression.ts";
import { type Imported, importAll } from "../transfer/import.ts";
import { StreamReader } from "../transfer/reader.ts";
import { withRawDatabase } from "./database.ts";
import { print } from "./print.ts";
import { transferBar } from "./transfer-bar.ts";

/** Who the audit log names for what is done on the command line. */
const ACTOR = "admin-cli";
const STDIN = 0;

export function registerImport(program: Command): void {
  program
    .command("import")
    .description(
      "read a stream of tally export into an empty database, whose schema it makes; one that broke goes on where it stopped",
    )
    .argument("[file]", "what tally export wrote; without one, the stream comes from stdin")
    .option("--check", "only read the stream to its end and say whether it is whole; no database is touched")
    .action(async (file: string | undefined, options: { check?: boolean }) => {
      if (file === undefined && process.stdin.isTTY === true)
        throw new Error("name a file, or send a stream of tally export to stdin");
      const settings = readSettings(process.env);
      const newest = Math.max(...MIGRATIONS.map(({ version }) => version));
      const reader = await StreamReader.open(decompressed(bytesOf(file ?? STDIN)), newest);
      if (options.check === true) return await check(reader);
      const begun = performance.now();
      const imported = await withRawDatabase(settings, (db) => importWithBars(db, reader));
      if (imported.resumedAt > 0) print(`went on behind block ${imported.resumedAt}`);
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      print(
        `${told(imported.tables)} imported and verified, ${imported.rebuilt} resources folded, in ${seconds} s`,
      );
    });
}

async function check(reader: StreamReader): Promise<void> {
  const bar = transferBar("checking", "rows");
  try {
    bar.total(reader.header.tables.reduce((sum, { rows }) => sum + rows, 0));
    for await (const { rows } of reader.blocks()) bar.rows(rows);
  } finally {
    bar.stop();
  }
  print(`whole: ${told(reader.end.tables)}, as of ${reader.header.at}`);
}

function told(tables: ReadonlyMap<string, { readonly rows: number }>): string {
  const rows = [...tables.values()].reduce((sum, table) => sum + table.rows, 0);
  return `${rows} rows, ${tables.get("events")?.rows ?? 0} of them events`;
}

async function importWithBars(db: Database, reader: StreamReader): Promise<Imported> {
  const rows = transferBar("importing", "rows");
  const verifying = transferBar("verifying", "rows");
  const folding = transferBar("folding", "resources");
  let folded = 0;
  try {
    return await importAll(db, ACTOR, reader, {
      rows,
      verifying: {
        total: (count) => {
          rows.stop();
          verifying.total(count);
        },
        rows: verifying.rows,
      },
      folding: (total) => {
        rows.stop();
        verifying.stop();
        folding.total(total);
      },
      folded: (sofar) => {
        folding.rows(sofar - folded);
        folded = sofar;
      },
    });
  } finally {
    for (const bar of [rows, verifying, folding]) bar.stop();
  }
}
