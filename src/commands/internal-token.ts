/** The internal token that an embedded Tally makes for itself. */
import {
  chownSync,
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

/**
 * The token of the data directory: 64 hex digits in the file `internal-token`, mode 0600, made at the first call.
 * @param random 32 bytes from a good source
 * @throws {Error} when the file is there and holds no token
 */
export function internalTokenOf(dataDir: string, random: Uint8Array): string {
  const path = join(dataDir, "internal-token");
  const half = `${path}.${process.pid}`;
  const file = openSync(half, "w", 0o600);
  try {
    writeSync(file, `${Buffer.from(random).toString("hex")}\n`);
    fsyncSync(file);
    const { uid, gid } = statSync(dataDir);
    if (process.getuid?.() === 0) chownSync(half, uid, gid);
    // Linked into place: an existing file is never replaced, and nobody reads half of a new one.
    linkSync(half, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    closeSync(file);
    rmSync(half, { force: true });
  }
  const token = readFileSync(path, "utf8").trim();
  if (!/^[!-~]+$/.test(token))
    throw new Error(`${path} holds no token: remove it, and the next start makes one`);
  return token;
}
