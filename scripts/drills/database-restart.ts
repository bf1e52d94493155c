/** `pg_ctl restart -m immediate`: PostgreSQL crashes and recovers under load. */
import type { Drill } from "./drill.ts";
import { must, within } from "./drill.ts";
import { onStage, working } from "./rig/outage.ts";
import { between } from "./rig/random.ts";

const BACK_MS = 10_000;

export const databaseRestart: Drill = {
  name: "database-restart",
  about: "an external PostgreSQL crashes and recovers under load; Tally goes on without a restart",
  rounds: { short: 2, long: 30 },
  async run(rig, plan) {
    const { rounds, random } = plan;
    const back: number[] = [];
    const { acknowledged, stored, unavailable } = await onStage(rig, plan, {}, async (stage) => {
      const { pid } = stage.tally;
      for (let round = 1; round <= rounds; round++) {
        await Bun.sleep(between(random, 30, 900));
        await stage.postgres.stop("immediate");
        await stage.postgres.start();
        back.push(await working(stage.clients, within(plan, BACK_MS)));
        if (round % 10 === 0) rig.say(`round ${round} of ${rounds}`);
      }
      must(stage.tally.pid === pid && stage.tally.runs, "Tally was restarted, or ended");
      await stage.clients.finishAnswered();
    });
    return {
      crashes: rounds,
      "events acknowledged": acknowledged,
      "events stored": stored,
      "answers 503": unavailable,
      "slowest return (ms)": Math.round(Math.max(...back)),
    };
  },
};
