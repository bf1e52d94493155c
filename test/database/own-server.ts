/** A server of a test's own, which it may stop, break and kill. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packPostgres } from "../../scripts/pack-postgres.ts";
import {
  type EmbeddedDatabase,
  type EmbeddedOptions,
  openEmbedded,
} from "../../src/database/embedded/embedded.ts";

/** A temporary data directory that any user may enter; named so that a later run sweeps it if this one is killed. */
export function temporaryDirectory(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `tally-test-${process.pid}-`));
  chmodSync(path, 0o755);
  // A server that was killed may still be writing its last files.
  return {
    path,
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  };
}

/** Starts one there, without fsync. */
export async function ownServer(
  dataDir: string,
  options: Partial<EmbeddedOptions> = {},
): Promise<EmbeddedDatabase> {
  await packPostgres();
  const settings = { fsync: "off" };
  return await openEmbedded({ dataDir, maxConnections: 10, role: "command", settings, ...options });
}
