/** The PostgreSQL that Tally brings along: where it is packed, and how it gets onto the disk. */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { embeddedFiles } from "bun";
import { EmbeddedDatabaseError } from "./fault.ts";

/** The version of the packed server; package.json pins the npm package that it comes from. */
export const POSTGRES_VERSION = "18.4";
/** The major version, which decides whether a data directory can be used. */
export const POSTGRES_MAJOR = 18;
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

/**
 * Unpacks the server below `parent`, unless an earlier start did. It appears whole or not at all: it is unpacked
 * beside its place and renamed.
 * @returns the directory that holds bin/, lib/ and share/
 * @throws {EmbeddedDatabaseError} when nothing is packed for this platform, or the disk refuses
 */
export async function unpackPostgres(parent: string): Promise<string> {
  const home = join(parent, `postgres-${POSTGRES_VERSION}`);
  if (existsSync(home)) return home;
  const bytes = await archiveBytes();
  await mkdir(dirname(home), { recursive: true });
  const beside = await mkdtemp(join(parent, ".unpacking-"));
  try {
    const tree = join(beside, "tree");
    await new Bun.Archive(await Bun.zstdDecompress(bytes)).extract(tree);
    await rename(tree, home);
  } catch (error) {
    if (!existsSync(home)) {
      const why = error instanceof Error ? error.message : String(error);
      throw new EmbeddedDatabaseError(`PostgreSQL can't be unpacked to ${home}: ${why}`, { cause: error });
    }
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
  return home;
}
