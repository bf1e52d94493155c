/**
 * A database that an earlier version wrote is migrated and is whole; a version that is older than the schema refuses.
 * `written-by-0009.ndjson` holds the rows that the version of migration 0009 wrote: a set of events and one batch of it
 * again, refused items, projects with a relation, a resource type, a rebuild.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "../../src/database/connection.ts";
import { MIGRATIONS } from "../../src/database/migration-files.ts";
import { migrateUp } from "../../src/database/migrations.ts";
import type { Drill, Plan, Rig } from "./drill.ts";
import { must, until } from "./drill.ts";
import { type Ledger, type Sent, sendOnce } from "./rig/clients.ts";
import { Postgres } from "./rig/postgres.ts";
import { mustVerify, prove } from "./rig/proof.ts";
import { Tally } from "./rig/tally.ts";
import { Workload } from "./rig/workload.ts";

const WRITTEN_AT = 9;
const WRITTEN = join(import.meta.dir, "written-by-0009.ndjson");
/** What the file's events were made of. */
const SET = { run: "older", seed: 9, items: 40, resources: 30, uniform: true };
const BATCHES = 5;
const TOLD_MS = 20_000;

/** The rows as they were, digit for digit: their text goes into the database unread. */
async function load(db: Database): Promise<void> {
  const rows = new Map<string, string[]>();
  for (const line of readFileSync(WRITTEN, "utf8").split("\n").filter(Boolean)) {
    const [, table = "", row = ""] = /^\{"table":"(\w+)","row":(.*)\}$/.exec(line) ?? [];
    must(table !== "", `not a row: ${line.slice(0, 80)}`);
    rows.set(table, [...(rows.get(table) ?? []), row]);
  }
  for (const [table, texts] of rows) {
    // What the migrations themselves put there is there already.
    await db.unsafe(
      `INSERT INTO ${table} OVERRIDING SYSTEM VALUE
       SELECT * FROM json_populate_recordset(NULL::${table}, $1::text::json) ON CONFLICT DO NOTHING`,
      [`[${texts.join(",")}]`],
    );
  }
  await db`SELECT setval(pg_get_serial_sequence('audit_log', 'id'), (SELECT max(id) FROM audit_log))`;
}

async function refusal(tally: Tally, ...args: string[]): Promise<string> {
  return await tally.command(...args).then(
    () => "",
    (error: Error) => error.message,
  );
}

async function notReady(tally: Tally, because: string): Promise<void> {
  await until(`it is not ready, ${because}`, TOLD_MS, async () => (await tally.readiness()) === 503);
  const answer = await fetch(`${tally.url}/readyz`);
  const text = await answer.text();
  must(text.includes(because), `/readyz says: ${text}`);
}

/** The set that was sent to the earlier version is sent again: all of it is there already. */
async function sendAgain(tally: Tally, db: Database): Promise<number> {
  const workload = new Workload(SET);
  const token = await tally.credential();
  const sent = new Map<number, Sent>();
  for (let number = 0; number < BATCHES; number++) {
    const { accepted, duplicates } = await sendOnce(tally.url, token, workload.batch(number).body);
    must(accepted === 0 && duplicates === SET.items, `${accepted} events of the earlier version were lost`);
    // The earlier version told of all of them when it took them in.
    sent.set(number, { attempts: 2, acknowledged: 2, accepted: SET.items });
  }
  const ledger: Ledger = { workload, sent };
  return (await prove(db, ledger)).stored;
}

async function run(rig: Rig, { rounds }: Plan) {
  const postgres = await Postgres.start(rig);
  const db = postgres.pool();
  let stored = 0;
  try {
    for (let round = 0; round < rounds; round++) {
      await postgres.recreate();
      await migrateUp(
        db,
        MIGRATIONS.filter(({ version }) => version <= WRITTEN_AT),
      );
      await load(db);
      const tally = await Tally.prepare(rig, {
        databaseUrl: postgres.url,
        env: { TALLY_REPORTING_AUTO_MIGRATE: "false" },
      });
      tally.launch();
      try {
        await notReady(tally, "older");
        await tally.command("migrate", "up");
        await tally.ready();
        await mustVerify(db);
        stored = await sendAgain(tally, db);

        // What a later version's migration leaves behind.
        await db`INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'later', 'x')`;
        await notReady(tally, "newer");
        const refused = [["migrate", "up"], ["rebuild"], ["verify"]].map(async (args) => {
          const said = await refusal(tally, ...args);
          must(/newer|ahead/.test(said), `tally ${args.join(" ")} on a newer schema said: ${said}`);
        });
        await Promise.all(refused);
        await db`DELETE FROM schema_migrations WHERE version = 9999`;
        await tally.ready();
        await tally.command("verify");
      } finally {
        await tally.stop();
      }
    }
  } finally {
    await db.close({ timeout: 0 });
    await postgres.stop("immediate");
  }
  return {
    upgrades: rounds,
    "from migration": WRITTEN_AT,
    "to migration": MIGRATIONS.length,
    "events kept": stored,
  };
}

export const upgrade: Drill = {
  name: "upgrade",
  about: "a database of an earlier version migrates and is whole; a version older than the schema refuses",
  rounds: { short: 1, long: 5 },
  run,
};
