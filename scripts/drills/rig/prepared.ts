/**
 * What a drill starts from without having to wait for it: PostgreSQL unpacked, and a cluster that initdb has made. A
 * run of short drills makes both once, and each drill gets the one as a link and the other as a copy.
 */
import { existsSync, mkdirSync, renameSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { handOver, runAs, serverAccount } from "../../../src/database/embedded/account.ts";
import { clusterOf, initCluster, OWNER } from "../../../src/database/embedded/cluster.ts";
import { unpackPostgres } from "../../../src/database/embedded/distribution.ts";
import { packPostgres } from "../../pack-postgres.ts";
import { must, type Rig } from "../drill.ts";

/** Unpacks PostgreSQL where all drills of the run find it. @returns the directory that holds bin/, lib/ and share/ */
export async function preparedPostgres(rig: Rig): Promise<string> {
  await packPostgres();
  const home = await unpackPostgres(rig.shared);
  handOver(serverAccount(clusterOf(rig.shared)), home, true);
  return home;
}

/** Puts a cluster with an empty database below a directory. Its settings are those of Tally's own. */
export async function putCluster(rig: Rig, directory: string): Promise<void> {
  const home = await preparedPostgres(rig);
  if (rig.durable) return await makeCluster(home, directory);
  const prepared = join(rig.shared, "prepared");
  if (!existsSync(prepared)) {
    mkdirSync(`${prepared}.half`, { mode: 0o755 });
    await makeCluster(home, `${prepared}.half`);
    renameSync(`${prepared}.half`, prepared);
  }
  const copied = Bun.spawnSync(["cp", "-a", clusterOf(prepared), clusterOf(directory)]);
  must(copied.success, `the prepared cluster can't be copied: ${copied.stderr.toString()}`);
}

async function makeCluster(home: string, directory: string): Promise<void> {
  const account = serverAccount(clusterOf(directory));
  await initCluster(home, directory, account);
  // Without a server: PostgreSQL's own single-user mode.
  const made = Bun.spawn(
    runAs(account, [join(home, "bin/postgres"), "--single", "-D", clusterOf(directory), "postgres"]),
    {
      env: {},
      cwd: "/",
      stdin: new Blob([`CREATE DATABASE ${OWNER}\n`]),
      stdout: "ignore",
      stderr: "pipe",
    },
  );
  const said = await made.stderr.text();
  must((await made.exited) === 0 && !said.includes("ERROR"), `no database could be made: ${said}`);
}

/** Makes a data directory of Tally's in which nothing has to be unpacked or initialised any more. */
export async function prepareDataDirectory(rig: Rig, dataDir: string): Promise<void> {
  const home = await preparedPostgres(rig);
  symlinkSync(home, join(dataDir, basename(home)));
  await putCluster(rig, dataDir);
}
