/** Three processes bring one empty database up at once. */
import { MIGRATIONS } from "../../src/database/migration-files.ts";
import type { Drill, Plan, Rig } from "./drill.ts";
import { must } from "./drill.ts";
import { Clients } from "./rig/clients.ts";
import { working } from "./rig/outage.ts";
import { Postgres } from "./rig/postgres.ts";
import { prove } from "./rig/proof.ts";
import { between } from "./rig/random.ts";
import { Tally } from "./rig/tally.ts";
import { Workload } from "./rig/workload.ts";

const PROCESSES = 3;

async function applied(postgres: Postgres): Promise<number> {
  const db = postgres.pool();
  const [row]: { n: number }[] = await db`SELECT count(*)::int AS n FROM schema_migrations`;
  await db.close({ timeout: 0 });
  return row?.n ?? 0;
}

async function run(rig: Rig, { rounds, random }: Plan) {
  const postgres = await Postgres.start(rig);
  const databaseUrl = postgres.url;
  let tallies: Tally[] = [];
  try {
    for (let round = 0; round < rounds; round++) {
      // By the command, and by services that migrate at their start, taking turns.
      await Promise.all(tallies.map((tally) => tally.stop()));
      await postgres.recreate();
      tallies = await Promise.all(
        Array.from({ length: PROCESSES }, (_, n) => Tally.prepare(rig, { name: `tally-${n}`, databaseUrl })),
      );
      if (round % 2 === 0) await Promise.all(tallies.map((tally) => tally.command("migrate", "up")));
      else await Promise.all(tallies.map((tally) => tally.start()));
      must((await applied(postgres)) === MIGRATIONS.length, "not every migration is there once");
    }
    const [tally] = tallies;
    must(tally !== undefined, "there was no round");
    if (!tally.runs) await tally.start();
    const workload = new Workload({ run: "new", seed: between(random, 1, 1e9), items: 50 });
    const clients = new Clients({ url: tally.url, token: await tally.credential(), workload });
    const db = postgres.pool();
    try {
      await working(clients);
      await clients.finish();
      const { acknowledged, stored } = await prove(db, clients);
      return {
        processes: PROCESSES,
        rounds,
        migrations: MIGRATIONS.length,
        "events acknowledged": acknowledged,
        "events stored": stored,
      };
    } finally {
      try {
        await clients.abandon();
      } finally {
        await db.close({ timeout: 0 });
      }
    }
  } finally {
    try {
      await Promise.all(tallies.map((tally) => tally.stop()));
    } finally {
      await postgres.stop("immediate");
    }
  }
}

export const migrations: Drill = {
  name: "migrations",
  about: "three processes migrate one empty database at once, by the command and at their start",
  rounds: { short: 2, long: 20 },
  run,
};
