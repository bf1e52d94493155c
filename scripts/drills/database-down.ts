/** The database is away for minutes: Tally says so at once, keeps nothing in memory, and goes on when it is back. */
import type { Drill } from "./drill.ts";
import { must, within } from "./drill.ts";
import { answersOf, memoryOf, mustStayFlat, onStage, working } from "./rig/outage.ts";

const ANSWER_MS = 5_000;
const BACK_MS = 10_000;

export const databaseDown: Drill = {
  name: "database-down",
  about:
    "PostgreSQL is down for five minutes: 503 within 5 s, flat memory, work again within 10 s of its return",
  rounds: { short: 1, long: 1 },
  async run(rig, plan) {
    const downMs = plan.long ? 300_000 : 1_500;
    const { outcome, acknowledged, stored } = await onStage(rig, plan, {}, async (stage) => {
      const { tally, clients, postgres } = stage;
      const { pid } = tally;
      await postgres.stop("fast");
      // What was in flight when it went is no answer of its absence.
      await Bun.sleep(500);
      const down = performance.now();
      const memory = memoryOf(tally);
      await Bun.sleep(downMs);
      const during = answersOf(clients, down);
      must(during.unavailable > 0, "nothing was answered meanwhile");
      must(during.cut === 0, `${during.cut} requests were cut off meanwhile`);
      must(during.slowest <= within(plan, ANSWER_MS), `an answer took ${during.slowest} ms`);
      must((await tally.readiness()) === 503, "it says that it is ready");
      const after = memoryOf(tally);
      mustStayFlat(memory, after, "while the database was down");
      await postgres.start();
      const back = await working(clients, within(plan, BACK_MS));
      // Also those that were answered last, or not before it was back.
      const { slowest } = answersOf(clients, down);
      must(slowest <= within(plan, ANSWER_MS), `an answer took ${slowest} ms`);
      must(tally.pid === pid && tally.runs, "Tally was restarted, or ended");
      await tally.ready(within(plan, BACK_MS));
      return { ...during, slowest, memory, after, back };
    });
    return {
      "down (s)": downMs / 1000,
      "answers 503": outcome.unavailable,
      "slowest of them (ms)": outcome.slowest,
      "memory before and after (MB)": `${outcome.memory.toFixed(0)}, ${outcome.after.toFixed(0)}`,
      "back after (ms)": Math.round(outcome.back),
      "events acknowledged": acknowledged,
      "events stored": stored,
    };
  },
};
