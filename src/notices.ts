/** The licences of what the executable holds of others. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { embeddedFiles } from "bun";

/** Its name in dist/. Compressed: `bun build --compile` would make a module of a plain text. */
export const NOTICES_FILE = "third-party-notices.zst";

/**
 * The text: a file of the executable, or of dist/ when Tally runs from its sources.
 * @throws {Error} where neither is there
 */
export async function readNotices(): Promise<string> {
  // `bun build --compile` may add a hash; it keeps the beginning.
  const [beginning = NOTICES_FILE] = NOTICES_FILE.split(".");
  for (const file of embeddedFiles) {
    if ("name" in file && typeof file.name === "string" && file.name.includes(beginning))
      return await unpack(file);
  }
  const path = join(import.meta.dir, "../dist", NOTICES_FILE);
  if (existsSync(path)) return await unpack(Bun.file(path));
  throw new Error("the notices are made by a build: run bun scripts/notices.ts");
}

async function unpack(file: Blob): Promise<string> {
  return (await Bun.zstdDecompress(await file.bytes())).toString();
}
