/**
 * A bounded heap for `tally serve`. The runtime sizes its heap by the machine's memory and lets garbage pile up
 * accordingly; told of a smaller machine, it collects sooner (docs/performance.md). It reads that once, before any of
 * the program runs, so the process becomes itself again, with the variable set: same process id, same files.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";

/** JavaScriptCore's option, as Bun takes it. An operator's own value stands. */
const VARIABLE = "BUN_JSC_forceRAMSize";
/** Bytes. */
const HEAP_RAM = 512 * 1024 * 1024;
/** Where a compiled executable finds its own program. */
const COMPILED = "/$bunfs/";

/**
 * Restarts this executable in place with its heap bounded; returns where that is done already, and for a program that
 * runs from its sources.
 * @throws what keeps it from doing so: the process goes on as it is
 */
export function boundHeap(
  argv: readonly string[],
  execPath: string,
  env: Readonly<Record<string, string | undefined>>,
): void {
  if (env[VARIABLE] !== undefined || argv[1]?.startsWith(COMPILED) !== true) return;
  const { symbols } = dlopen("libc.so.6", {
    execve: { args: [FFIType.ptr, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
  });
  const variables = Object.entries({ ...env, [VARIABLE]: String(HEAP_RAM) }).map(
    ([name, value]) => `${name}=${value ?? ""}`,
  );
  const path = cString(execPath);
  const args = cStrings([execPath, ...argv.slice(2)]);
  const environment = cStrings(variables);
  symbols.execve(ptr(path), ptr(args.pointers), ptr(environment.pointers));
  throw new Error(`execve of ${execPath} failed`);
}

function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

/** A null-terminated array of pointers; `texts` keeps alive what they point to. */
function cStrings(values: readonly string[]): { texts: Buffer[]; pointers: BigUint64Array } {
  const texts = values.map(cString);
  return { texts, pointers: new BigUint64Array([...texts.map((text) => BigInt(ptr(text))), 0n]) };
}
