/** tally demo [--exit] */
import type { Command } from "commander";
import { makePlace, startThrowaway } from "../demo/instance.ts";
import { secondAct } from "../demo/second-act.ts";
import { invitation, tour } from "../demo/tour.ts";
import { instantFromMicros } from "../event/instant.ts";
import { print } from "./print.ts";
import { styleFor } from "./table.ts";

export function registerDemo(program: Command): void {
  program
    .command("demo")
    .description("start a throwaway Tally, fill it with a recorded cloud's life, show what became of it")
    .option("--exit", "end after showing it, instead of staying until Ctrl-C")
    .action(async (options: { exit?: boolean }) => {
      const interrupted = interruption();
      try {
        await demo(options.exit === true, interrupted);
      } catch (error) {
        // Whoever presses Ctrl-C while it starts wants it gone, and no explanation of what that broke.
        if (!interrupted.aborted) throw error;
      }
    });
}

/** Aborted by the first Ctrl-C or SIGTERM; further ones change nothing, because everything is being stopped. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => controller.abort());
  return controller.signal;
}

async function demo(exit: boolean, interrupted: AbortSignal): Promise<void> {
  const style = styleFor(process.stdout, process.env);
  const place = makePlace();
  try {
    print(`Starting a throwaway Tally with a PostgreSQL of its own in ${place.directory} …`);
    const begun = performance.now();
    const tally = await startThrowaway(place.directory, interrupted);
    try {
      interrupted.throwIfAborted();
      print(`It runs on ${tally.url} after ${((performance.now() - begun) / 1_000).toFixed(1)} s.`);
      const now = instantFromMicros(`${BigInt(Date.now()) * 1_000n}`);
      await tour(tally, now, style, print);
      const { internalToken, world } = tally;
      await secondAct({ access: tally, internalToken, world }, style, print);
      print(invitation(tally, internalToken, style));
      if (exit) {
        print("\nWith --exit it ends here; without, all of this lasts until you press Ctrl-C.");
        return;
      }
      print("\nAll of this lasts until you press Ctrl-C.");
      await untilAborted(interrupted);
      print("\nStopping; nothing stays behind.");
    } finally {
      await tally.stop();
    }
  } finally {
    place.remove();
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
