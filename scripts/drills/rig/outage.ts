/** Tally on a PostgreSQL of its own that can be broken, with eight clients at work. */
import type { Database } from "../../../src/database/connection.ts";
import { residentMegabytes } from "../../bench/machine.ts";
import { must, type Plan, type Rig, thinkMs, until } from "../drill.ts";
import { Clients, slowest } from "./clients.ts";
import { Postgres } from "./postgres.ts";
import { prove } from "./proof.ts";
import { between } from "./random.ts";
import { Tally, type TallyOptions } from "./tally.ts";
import { Workload } from "./workload.ts";

/** What a drill works with. */
export interface Stage {
  readonly postgres: Postgres;
  readonly tally: Tally;
  readonly token: string;
  readonly clients: Clients;
  /** Straight to the database, whatever lies between Tally and it. */
  readonly admin: Database;
}

/** How the stage is set. */
export interface StageOptions extends TallyOptions {
  /** Items of a batch. */
  readonly items?: number;
  /** A request without an answer after this long hangs. */
  readonly timeoutMs?: number;
  /** Where Tally finds the database, if not at its socket. */
  readonly through?: (postgres: Postgres) => Promise<string>;
  /** Where clients find Tally, if not directly. */
  readonly clientUrl?: (tally: Tally) => Promise<string>;
  readonly postgres?: Parameters<typeof Postgres.start>[2];
}

/** Sets it, lets the drill happen, waits until everything is acknowledged, proves, and clears it away. */
export async function onStage<T>(
  rig: Rig,
  plan: Plan,
  options: StageOptions,
  happen: (stage: Stage) => Promise<T>,
): Promise<{ outcome: T; acknowledged: number; stored: number; unavailable: number }> {
  const { items = 50, timeoutMs, through, clientUrl } = options;
  const postgres = await Postgres.start(rig, "postgres", options.postgres);
  const admin = postgres.pool();
  let tally: Tally | null = null;
  let clients: Clients | null = null;
  try {
    const databaseUrl = (await through?.(postgres)) ?? postgres.url;
    tally = await Tally.start(rig, { ...options, databaseUrl });
    const token = await tally.credential();
    clients = new Clients({
      url: (await clientUrl?.(tally)) ?? tally.url,
      token,
      workload: new Workload({ run: "set", seed: between(plan.random, 1, 1e9), items }),
      thinkMs: thinkMs(plan),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    await working(clients);
    const outcome = await happen({ postgres, tally, token, clients, admin });
    await clients.finish();
    const proof = await prove(admin, clients);
    const unavailable = clients.answers.filter((answer) => answer.outcome === "unavailable").length;
    return { outcome, ...proof, unavailable };
  } finally {
    // What the clients met is told by `finish`; here, whatever goes wrong, nothing may be left running.
    await clients?.abandon().catch(() => {});
    try {
      await tally?.stop();
    } finally {
      await admin.close({ timeout: 0 });
      await postgres.stop("immediate");
    }
  }
}

/** Waits until a batch is acknowledged that was begun from now on. @returns the milliseconds that took */
export async function working(clients: Clients, milliseconds = 120_000): Promise<number> {
  // Each client may have one under way: one more than that is no leftover.
  const enough = clients.done + clients.count + 1;
  return await until("work goes on", milliseconds, () => clients.done >= enough);
}

/** Work that trouble held up must be done so soon after it. */
export const BACK_MS = 60_000;

/** The figures of an outage: what clients were answered from `from` on. */
export function answersOf(
  clients: Clients,
  from: number,
): { slowest: number; unavailable: number; cut: number } {
  const answers = clients.since(from);
  return {
    slowest: Math.round(slowest(answers)),
    unavailable: answers.filter(({ outcome }) => outcome === "unavailable").length,
    cut: answers.filter(({ outcome }) => outcome === "no answer").length,
  };
}

/** Memory must not grow while nothing can be written. @throws {Error} where it did */
export function mustStayFlat(before: number, after: number, what: string): void {
  must(after < before + 120, `memory went from ${before.toFixed(0)} to ${after.toFixed(0)} MB ${what}`);
}

/** Resident memory of Tally, in MB. */
export function memoryOf(tally: Tally): number {
  return residentMegabytes(tally.pid).now;
}
