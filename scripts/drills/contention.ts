/** Everybody at once: the same batch, opposite orders, a rebuild beside. */
import type { Drill, Plan } from "./drill.ts";
import { must, thinkMs } from "./drill.ts";
import { CLIENTS, Clients, type Ledger, mustBeWhole, type Sent, sendOnce } from "./rig/clients.ts";
import { onStage, type Stage } from "./rig/outage.ts";
import { mustHold } from "./rig/proof.ts";
import { between } from "./rig/random.ts";
import { INTERNAL_TOKEN } from "./rig/tally.ts";
import { CLOUD, PLATFORM, Workload } from "./rig/workload.ts";

const RESOURCES = 500;

/** Eight clients send one and the same batch: to one of them all of it is new, and nothing of it to the others. */
async function sameBatch({ tally, token, admin }: Stage, { rounds, random }: Plan): Promise<void> {
  const workload = new Workload({ run: "same", seed: between(random, 1, 1e9), items: 200, resources: 300 });
  const sent = new Map<number, Sent>();
  const ledger: Ledger = { workload, sent };
  for (let number = 0; number < rounds; number++) {
    const batch = workload.batch(number);
    const answers = await Promise.all(
      Array.from({ length: CLIENTS }, () => sendOnce(tally.url, token, batch.body)),
    );
    const accepted = answers.reduce((sum, answer) => sum + answer.accepted, 0);
    for (const answer of answers) mustBeWhole(batch, answer);
    const { length } = batch.events;
    must(accepted === length, `of ${length} events, ${accepted} were told to be new`);
    sent.set(number, { attempts: CLIENTS, acknowledged: CLIENTS, accepted });
  }
  await mustHold(admin, ledger);
}

/** Batches over the same resources, one half in one order, the other half in the opposite one. */
async function oppositeOrders({ tally, token, admin }: Stage, { rounds }: Plan): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const answers = await Promise.all(
      Array.from({ length: CLIENTS }, (_, client) => {
        const texts = Array.from({ length: RESOURCES }, (_, at) => {
          const resource = client % 2 === 0 ? at : RESOURCES - 1 - at;
          return (
            `{"event_id":"order-${round}-${client}-${resource}","timestamp":"2026-04-01T00:${String(round % 60).padStart(2, "0")}:0${client}Z"` +
            `,"event_type":"volume.resize.end","platform":"${PLATFORM}","cloud":"${CLOUD}","resource_type":"volume"` +
            `,"resource_id":"order-${resource}","project_id":"p${client}"` +
            `,"payload":{"state":"in-use","size":{"size_gb":${client + 1},"type":"ssd"}}}`
          );
        });
        return sendOnce(tally.url, token, `[${texts.join(",")}]`);
      }),
    );
    must(
      answers.every(({ accepted }) => accepted === RESOURCES),
      `not all were told to be new: ${answers.map(({ accepted }) => accepted).join(", ")}`,
    );
  }
  const [row]: { n: number }[] = await admin`
    SELECT count(*)::int AS n FROM events WHERE starts_with(event_id, 'order-')`;
  must(row?.n === rounds * CLIENTS * RESOURCES, `${row?.n} rows of ${rounds * CLIENTS * RESOURCES} events`);
}

/** Rebuilds, one after the other, while eight clients write to few resources. @returns how many */
async function rebuilding({ tally, token, admin }: Stage, plan: Plan): Promise<number> {
  const { rounds, random } = plan;
  const workload = new Workload({
    run: "rebuilt",
    seed: between(random, 1, 1e9),
    items: 100,
    resources: 400,
  });
  const clients = new Clients({ url: tally.url, token, workload, thinkMs: thinkMs(plan) });
  let rebuilds = 0;
  try {
    for (; rebuilds < rounds; rebuilds++) {
      const answer = await fetch(`${tally.url}/internal/projection/rebuild`, {
        method: "POST",
        headers: { authorization: `Bearer ${INTERNAL_TOKEN}` },
      });
      must(answer.status === 200, `a rebuild was answered ${answer.status}: ${await answer.text()}`);
    }
    await clients.finishAnswered();
    await mustHold(admin, clients);
    return rebuilds;
  } finally {
    await clients.abandon();
  }
}

async function deadlocks({ admin }: Stage): Promise<number> {
  const [row]: { n: number }[] = await admin`
    SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()`;
  return row?.n ?? 0;
}

export const contention: Drill = {
  name: "contention",
  about: "one batch from eight clients, opposite orders over the same 500 resources, rebuilds during ingest",
  rounds: { short: 2, long: 50 },
  async run(rig, plan) {
    const { outcome, acknowledged, stored } = await onStage(rig, plan, {}, async (stage) => {
      await stage.clients.finishAnswered();
      await sameBatch(stage, plan);
      rig.say("the same batch from eight clients, done");
      await oppositeOrders(stage, plan);
      rig.say("opposite orders, done");
      const rebuilds = await rebuilding(stage, plan);
      must((await deadlocks(stage)) === 0, "statements waited for each other in a circle");
      return rebuilds;
    });
    return {
      "batches sent eight times": plan.rounds,
      "batches in opposite orders": plan.rounds * CLIENTS,
      rebuilds: outcome,
      "events acknowledged beside": acknowledged,
      "events stored beside": stored,
    };
  },
};
