/**
 * Every connection is ended by the server, again and again, also in the middle of batches of a thousand, and while
 * Tally is too busy to hear of it: every other time the process is held, so that all of the news comes at once.
 */
import type { Drill } from "./drill.ts";
import { within } from "./drill.ts";
import { onStage, working } from "./rig/outage.ts";
import { between } from "./rig/random.ts";

const BACK_MS = 10_000;
/** For how long the process is held at most. */
const HELD_MS = 300;

export const backendsTerminated: Drill = {
  name: "backends-terminated",
  about: "every backend is terminated under load, also while Tally is busy with large batches",
  rounds: { short: 5, long: 200 },
  async run(rig, plan) {
    const { rounds, random } = plan;
    let terminated = 0;
    const { acknowledged, stored, unavailable } = await onStage(
      rig,
      plan,
      { items: plan.long ? 1000 : 200 },
      async (stage) => {
        for (let round = 1; round <= rounds; round++) {
          await Bun.sleep(between(random, 0, 300));
          const busy = round % 2 === 0;
          if (busy) process.kill(stage.tally.pid, "SIGSTOP");
          try {
            terminated += await stage.postgres.terminateBackends(stage.admin);
            if (busy) await Bun.sleep(between(random, 20, HELD_MS));
          } finally {
            if (busy) process.kill(stage.tally.pid, "SIGCONT");
          }
          if (round % 10 === 0) await working(stage.clients, within(plan, BACK_MS));
          if (round % 50 === 0) rig.say(`round ${round} of ${rounds}`);
        }
        await working(stage.clients, within(plan, BACK_MS));
        await stage.clients.finishAnswered();
      },
    );
    return {
      rounds,
      "backends terminated": terminated,
      "events acknowledged": acknowledged,
      "events stored": stored,
      "answers 503": unavailable,
    };
  },
};
