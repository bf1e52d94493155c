/** The data directory proper: made once by initdb, and looked at before every start. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statfsSync } from "node:fs";
import { mkdtemp, open } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { type Account, handOver, runAs } from "./account.ts";
import { POSTGRES_MAJOR } from "./distribution.ts";
import { EmbeddedDatabaseError } from "./fault.ts";

/** The server's superuser and the database that Tally uses; the socket's directory is what guards them. */
export const OWNER = "tally";

const HALF_MADE = ".initdb-";

const MIB = 1024 * 1024;

/**
 * Sensible on a small machine; what a larger one can give is below. initdb writes them to postgresql.conf, where an
 * operator may change them.
 */
const TUNING = {
  work_mem: "16MB",
  maintenance_work_mem: "128MB",
  min_wal_size: "128MB",
  checkpoint_timeout: "15min",
  // This build has pglz alone: over large indexes of random ids, where each batch brings hundreds of whole pages into
  // the log, it takes more time than to write them as they are (docs/performance.md).
  wal_compression: "off",
  random_page_cost: "1.1",
  // One machine, one program: nothing to parallelise for, and the workers would cost connections' memory.
  max_parallel_workers_per_gather: "1",
  jit: "off",
  timezone: "UTC",
} as const;

function share(bytes: number, part: number, least: number, most: number): string {
  return `${Math.min(most, Math.max(least, Math.floor(bytes / part / MIB)))}MB`;
}

/**
 * What depends on the machine (docs/performance.md): how much of a large record's indexes and rows is found in the
 * server's own memory, and how often everything that has changed is written back. After each time, the first change of
 * a page brings the whole page into the log: over large indexes of random ids that is most of what is written.
 * @param memory the bytes that this process may use
 * @param disk the bytes that are free where the data goes. The log takes a tenth of them at most, but 1 GB where that
 *   is more; after a crash, half of it at most has to be read again
 */
export function machineSettings(
  memory: number,
  disk: number,
): Record<"shared_buffers" | "effective_cache_size" | "max_wal_size", string> {
  return {
    shared_buffers: share(memory, 4, 128, 4_096),
    effective_cache_size: share(memory, 2, 512, 65_536),
    max_wal_size: share(disk, 10, 1_024, 8_192),
  };
}

/** Where the cluster of a Tally data directory is. */
export function clusterOf(dataDir: string): string {
  return join(dataDir, "database");
}

/**
 * Looks at a cluster without touching it.
 * @returns whether there is one
 * @throws {EmbeddedDatabaseError} for another major version's, and for one that was never finished
 */
export function checkCluster(cluster: string): boolean {
  if (!existsSync(cluster) || readdirSync(cluster).length === 0) return false;
  const versionFile = join(cluster, "PG_VERSION");
  if (!existsSync(versionFile) || !existsSync(join(cluster, "global/pg_control"))) {
    throw new EmbeddedDatabaseError(
      `${cluster} is half initialised or no database at all; it is left as it is: move it away, or restore it`,
    );
  }
  const major = readFileSync(versionFile, "utf8").trim();
  if (major !== String(POSTGRES_MAJOR)) {
    throw new EmbeddedDatabaseError(
      `${cluster} is PostgreSQL ${major}'s, and this Tally brings PostgreSQL ${POSTGRES_MAJOR}; it is left as it is: ` +
        "dump it with the Tally that made it and restore it into a new directory",
    );
  }
  return true;
}

/**
 * Makes the cluster, whole or not at all: initdb works beside its place, and a rename puts it there. What an earlier,
 * interrupted attempt left beside is removed. The caller holds the directory's lock.
 * @throws {EmbeddedDatabaseError} with initdb's own words
 */
export async function initCluster(
  home: string,
  dataDir: string,
  account: Account | null,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const name of readdirSync(dataDir)) {
    if (name.startsWith(HALF_MADE)) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
  const beside = await mkdtemp(join(dataDir, HALF_MADE));
  try {
    const made = join(beside, "database");
    mkdirSync(made, { mode: 0o700 });
    handOver(account, beside, true);
    const { bavail, bsize } = statfsSync(made);
    const machine = machineSettings(process.constrainedMemory() || totalmem(), bavail * bsize);
    const options = Object.entries({ ...TUNING, ...machine, ...settings }).flatMap(([name, value]) => [
      "-c",
      `${name}=${value}`,
    ]);
    const initdb = Bun.spawn(
      runAs(account, [
        join(home, "bin/initdb"),
        ...[
          "-D",
          made,
          "-U",
          OWNER,
          "--encoding=UTF8",
          "--locale-provider=builtin",
          "--builtin-locale=C.UTF-8",
        ],
        ...["--locale=C", "--data-checksums", "--auth-local=trust", "--auth-host=reject"],
        ...(settings.fsync === "off" ? ["--no-sync"] : []),
        ...options,
      ]),
      // initdb refuses a working directory that its user can't enter, and reads PG… variables.
      { env: {}, cwd: "/", stdout: "ignore", stderr: "pipe" },
    );
    const said = await initdb.stderr.text();
    if ((await initdb.exited) !== 0) {
      throw new EmbeddedDatabaseError(
        `PostgreSQL can't initialise ${dataDir}: ${said.trim().replaceAll("\n", " ")}`,
      );
    }
    renameSync(made, clusterOf(dataDir));
    const directory = await open(dataDir, "r");
    await directory.sync();
    await directory.close();
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}
