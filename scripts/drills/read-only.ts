/** A failover that leaves Tally with a server that only reads, as a standby or a full disk does. */
import type { Drill } from "./drill.ts";
import { must, until, within } from "./drill.ts";
import { answersOf, onStage, working } from "./rig/outage.ts";

const TOLD_MS = 10_000;

export const readOnly: Drill = {
  name: "read-only",
  about: "the database turns read-only and back: not ready, 503, reads go on, recovers",
  rounds: { short: 1, long: 10 },
  async run(rig, plan) {
    let slowest = 0;
    const { acknowledged, stored, unavailable } = await onStage(rig, plan, {}, async (stage) => {
      const { tally, clients, admin, postgres } = stage;
      const reader = await tally.readToken();
      const turn = async (to: "on" | "off") => {
        // The role's own setting reaches new sessions; a failover ends the old ones, too.
        await admin.unsafe(`ALTER ROLE tally SET default_transaction_read_only = ${to}`);
        await postgres.terminateBackends(admin);
      };
      for (let round = 1; round <= plan.rounds; round++) {
        await turn("on");
        await until("it is not ready", within(plan, TOLD_MS), async () => (await tally.readiness()) === 503);
        const from = performance.now();
        const told = () => answersOf(clients, from).unavailable >= clients.count;
        await until("writes are told of", within(plan, TOLD_MS), told);
        slowest = Math.max(slowest, answersOf(clients, from).slowest);
        const list = await fetch(`${tally.url}/api/v1/resources?limit=1`, {
          headers: { authorization: `Bearer ${reader}` },
        });
        must(list.status === 200, `a read was answered ${list.status}`);
        await turn("off");
        await tally.ready(within(plan, TOLD_MS));
        await working(clients, within(plan, TOLD_MS));
      }
      await clients.finishAnswered();
    });
    return {
      failovers: plan.rounds,
      "answers 503": unavailable,
      "slowest of them (ms)": slowest,
      "events acknowledged": acknowledged,
      "events stored": stored,
    };
  },
};
