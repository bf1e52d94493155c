/**
 * Builds dist/tally, the one file that is shipped: the program, its migrations, its PostgreSQL, its notices.
 *
 *     bun scripts/build.ts [path]     another place for it
 */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeNotices } from "./notices.ts";
import { packPostgres } from "./pack-postgres.ts";

const ROOT = join(import.meta.dir, "..");
const OUT = resolve(process.argv[2] ?? join(ROOT, "dist/tally"));
/** More than this and something got in that doesn't belong there. */
const LIMIT_MB = 150;

const postgres = await packPostgres();
const notices = await writeNotices();
mkdirSync(join(ROOT, "dist"), { recursive: true });
// Built beside and renamed: a tally that runs from dist/ keeps its file.
const half = `${OUT}.${process.pid}`;
const build = Bun.spawn(
  [
    process.execPath,
    "build",
    "--compile",
    // Parsed once, here: a third of what it takes to start.
    "--bytecode",
    "--format=esm",
    // No identifier mangling: Elysia compiles handlers from their source text and would miss the names.
    "--minify-whitespace",
    "--minify-syntax",
    // What lies in the directory that Tally is started from must not change it.
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
    // Files beside the first entry are embedded as they are; the database finds its own by name.
    join(ROOT, "src/main.ts"),
    postgres,
    notices,
    `--outfile=${half}`,
  ],
  { cwd: ROOT, stdout: "ignore", stderr: "pipe" },
);
const said = await build.stderr.text();
if ((await build.exited) !== 0 || !existsSync(half)) {
  rmSync(half, { force: true });
  console.error(said);
  process.exit(1);
}
renameSync(half, OUT);
const size = statSync(OUT).size / 1e6;
console.log(`${OUT} ${size.toFixed(1)} MB`);
if (size > LIMIT_MB) {
  console.error(`${OUT} is over ${LIMIT_MB} MB`);
  process.exit(1);
}
