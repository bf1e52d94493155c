/** What the drills' clients must not be told: a stand-in for Tally tells it to them. */
import { afterEach, expect, test } from "bun:test";
import { Clients } from "../../scripts/drills/rig/clients.ts";
import { Workload } from "../../scripts/drills/rig/workload.ts";

/** Fifty events a batch, and none to refuse. */
const workload = new Workload({ run: "told", seed: 1, items: 50, uniform: true });

const servers: Bun.Server<undefined>[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop(true)));
});

function unavailable(): Response {
  return new Response('{"type":"urn:tally:error:unavailable"}', {
    status: 503,
    headers: { "retry-after": "1" },
  });
}

function told(accepted: number, duplicates: number, rejected: readonly unknown[] = []): Response {
  return Response.json({ accepted, duplicates, rejected });
}

/** One client, whose first requests are answered so; from then on it is told what a Tally tells that does its work. */
function answering(...answers: readonly (() => Response)[]): Clients {
  let at = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      await request.text();
      return (answers[at++] ?? (() => told(50, 0)))();
    },
  });
  servers.push(server);
  return new Clients({ url: server.url.origin, token: "t", workload, clients: 1, thinkMs: 5 });
}

async function worked(clients: Clients): Promise<void> {
  for (const until = performance.now() + 5_000; performance.now() < until && clients.done < 3; )
    await Bun.sleep(5);
  await clients.finish();
}

test("half a batch was stored, answered 503, and the other half came in with the next attempt", async () => {
  const clients = answering(unavailable, () => told(25, 25));
  await expect(worked(clients)).rejects.toThrow("by half: batch 0 of 50 events and 0 items to refuse");
  // Whoever clears up hears of it, too, and waits for nothing.
  await expect(clients.abandon()).rejects.toThrow("by half");
});

test("what was answered 503 may be stored all the same: then nothing of it is new", async () => {
  const clients = answering(unavailable, () => told(0, 50));
  await worked(clients);
  expect(clients.sent.get(0)).toEqual({ attempts: 2, acknowledged: 1, accepted: 0 });
  expect(clients.sent.get(1)).toEqual({ attempts: 1, acknowledged: 1, accepted: 50 });
  expect(clients.cut).toBe(0);
});

test("nothing is new of a batch that nobody sent before", async () => {
  await expect(worked(answering(() => told(0, 50)))).rejects.toThrow(
    "batch 0 was sent for the first time, and nothing of it was new",
  );
});

test("an event is neither new nor a duplicate nor refused", async () => {
  await expect(worked(answering(() => told(49, 0)))).rejects.toThrow("batch 0 of 50 events");
});

test("an event is refused that should not be", async () => {
  const rejected = [{ index: 3, event_id: "told:0:3", reason: "schema: payload.state: is missing" }];
  await expect(worked(answering(() => told(49, 0, rejected)))).rejects.toThrow("batch 0 of 50 events");
});

test("a request that is cut off is told of where none may be", async () => {
  const clients = answering();
  while (clients.done < 1) await Bun.sleep(5);
  servers[0]?.stop(true);
  while (clients.cut < 1) await Bun.sleep(5);
  clients.abandon();
  await expect(clients.finishAnswered()).rejects.toThrow(
    "requests were cut off, and Tally ran all the while",
  );
});
