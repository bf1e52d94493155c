/** Where the executable begins. */
import { boundHeap } from "./heap.ts";

const words = process.argv.slice(2);
if (words[0] === "serve") {
  try {
    boundHeap(process.argv, process.execPath, process.env);
  } catch (error) {
    console.error(`tally: the heap is sized by the machine's memory: ${String(error)}`);
  }
}
// Only now, so that a process that starts itself once more doesn't load the program twice.
const { runCommandLine } = await import("./commands/command-line.ts");
await runCommandLine(words);
