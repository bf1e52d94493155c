/** Facts about processes, from /proc. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Whether a process of that id runs; zombies don't count. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // "pid (name) state …": the name may hold anything, also parentheses.
    return stat.charAt(stat.lastIndexOf(")") + 2) !== "Z";
  } catch {
    return false;
  }
}

/** Whether that process is a PostgreSQL server on that data directory: the server's working directory is it. */
export function isPostgresOn(pid: number, cluster: string): boolean {
  try {
    const name = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
    return name === "postgres" && readlinkSync(`/proc/${pid}/cwd`) === cluster && isAlive(pid);
  } catch {
    return false;
  }
}

/** The processes of a PostgreSQL server on that data directory: the server itself, and its backends. */
export function postgresProcessesOn(cluster: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isPostgresOn(pid, cluster));
}

/** Waits until the process is gone. @returns false when it still runs after `milliseconds` */
export async function gone(pid: number, milliseconds: number): Promise<boolean> {
  const until = performance.now() + milliseconds;
  while (isAlive(pid)) {
    if (performance.now() > until) return false;
    await Bun.sleep(20);
  }
  return true;
}
