/** What the machine is, and what its processes use, from /proc. */
import { readdirSync, readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";

/** One line that says where the figures come from. */
export function machineLine(): string {
  const processors = cpus();
  const model = processors[0]?.model.trim() ?? "unknown CPU";
  return `${model}, ${processors.length} cores, ${(totalmem() / 2 ** 30).toFixed(1)} GiB RAM, Linux ${release()}`;
}

/** getconf CLK_TCK, which Linux has fixed at 100 for programs. */
const TICKS_PER_SECOND = 100;

/** The numbers after "pid (name) state" of /proc/<pid>/stat; empty when the process is gone. */
function statOf(pid: number): number[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat
      .slice(stat.lastIndexOf(")") + 4)
      .split(" ")
      .map(Number);
  } catch {
    return [];
  }
}

function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((child) => statOf(child)[0] === pid);
}

/** CPU seconds of a process, and of the children it has waited for. */
export function cpuSeconds(pid: number): number {
  const [, , , , , , , , , , user = 0, system = 0, childUser = 0, childSystem = 0] = statOf(pid);
  return (user + system + childUser + childSystem) / TICKS_PER_SECOND;
}

/** The same of a process with all its children, living ones too. */
export function cpuSecondsWithChildren(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => sum + cpuSeconds(child), cpuSeconds(pid));
}

/** What a process and all that descend from it hold in memory, in MB (10^6 bytes); what several share counts once. */
export function familyMegabytes(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const own = (Number(/^Pss:\s*(\d+)/m.exec(rollup)?.[1]) * 1024) / 1e6;
  return childrenOf(pid).reduce((sum, child) => sum + familyMegabytes(child), own);
}

/** Resident memory of a process in MB (10^6 bytes): now, and the most it ever was. */
export function residentMegabytes(pid: number): { now: number; most: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (name: string) => (Number(new RegExp(`${name}:\\s*(\\d+)`).exec(status)?.[1]) * 1024) / 1e6;
  return { now: read("VmRSS"), most: read("VmHWM") };
}
