/**
 * What export and import cost, against COPY of the same rows on the same server in the same run.
 * `bun run bench transfer -- --help`. docs/backup.md has figures.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import type { Database } from "../../src/database/connection.ts";
import { openEmbedded } from "../../src/database/embedded/embedded.ts";
import { MIGRATIONS } from "../../src/database/migration-files.ts";
import { migrateUp } from "../../src/database/migrations.ts";
import { type DatabaseTarget, openPool } from "../../src/database/pool.ts";
import { bytesOf, compressed, decompressed } from "../../src/transfer/compression.ts";
import { exportAll } from "../../src/transfer/export.ts";
import { importAll, UNWATCHED } from "../../src/transfer/import.ts";
import { StreamReader } from "../../src/transfer/reader.ts";
import { packPostgres } from "../pack-postgres.ts";
import { fixed, markdownTable, median, spread } from "./figures.ts";
import { machineLine } from "./machine.ts";

const COLUMNS =
  "timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id, project_id, source, payload";

/** Ten events a resource, in the order in which they came, payloads like a server's. */
async function load(db: Database, events: number): Promise<void> {
  await db.begin(async (tx) => {
    await tx`SET LOCAL statement_timeout = 0`;
    await tx.unsafe(`
      INSERT INTO events (${COLUMNS})
      SELECT timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second', now() + n * interval '1 microsecond',
             md5('event' || n), CASE WHEN n <= ${events / 10} THEN 'compute.instance.create.end'
               ELSE 'compute.instance.resize.end' END,
             'openstack', 'bench-1', 'instance', md5('resource' || mod(n, ${events / 10})), 'project-' || mod(n, 500),
             'collector', jsonb_build_object(
               'state', 'active',
               'size', jsonb_build_object('vcpus', 1 + mod(n, 16), 'ram_gb', 4, 'disk_gb', 40.0, 'flavor', 'm1.medium'),
               'provider', jsonb_build_object('name', 'vm-' || n, 'az', 'az' || mod(n, 3), 'image', md5(n::text)))
        FROM generate_series(1, ${events}) n`);
  });
  await db`VACUUM (ANALYZE) events`;
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
}

/** A new database with this Tally's schema, for as long as `work` takes. */
async function inNewDatabase<T>(
  admin: Database,
  target: (name: string) => DatabaseTarget,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  await admin.unsafe("CREATE DATABASE transfer_target");
  const db = openPool(target("transfer_target"), { maxConnections: 2, applicationName: "bench" });
  try {
    await migrateUp(db);
    await admin`CHECKPOINT`;
    return await work(db);
  } finally {
    await db.close({ timeout: 0 });
    await admin.unsafe("DROP DATABASE transfer_target WITH (FORCE)");
  }
}

async function toFile(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "w");
  for await (const part of bytes) await file.writeFile(part);
  await file.sync();
  await file.close();
}

async function copyOut(db: Database, path: string): Promise<void> {
  await db.begin(async (tx) => {
    await tx`SET LOCAL statement_timeout = 0`;
    await toFile(path, tx.unsafe(`COPY events (${COLUMNS}) TO STDOUT`).readable());
  });
}

async function copyIn(db: Database, path: string): Promise<void> {
  await db.begin(async (tx) => {
    await tx`SET LOCAL statement_timeout = 0`;
    const writer = tx.unsafe(`COPY events (${COLUMNS}) FROM STDIN`).writable().getWriter();
    for await (const part of bytesOf(path)) await writer.write(part);
    await writer.close();
  });
}

/** Seconds of an import's parts. */
interface ImportTimes {
  readonly rows: number;
  readonly verified: number;
  readonly all: number;
}

async function timeImport(db: Database, path: string): Promise<ImportTimes> {
  const newest = Math.max(...MIGRATIONS.map(({ version }) => version));
  const begun = performance.now();
  const since = () => (performance.now() - begun) / 1000;
  let rows = 0;
  let verified = 0;
  const reader = await StreamReader.open(decompressed(bytesOf(path)), newest);
  await importAll(db, "bench", reader, {
    ...UNWATCHED,
    verifying: {
      total: () => {
        rows = since();
      },
      rows: () => {},
    },
    folding: () => {
      verified = since();
    },
  });
  return { rows, verified, all: since() };
}

/** Runs the benchmark as the command line says; nothing of it needs the built executable. */
export async function benchTransfer(_executable: string, args: readonly string[]): Promise<void> {
  const options = new Command("bench transfer")
    .description("measures tally export and tally import against COPY of the same rows")
    .option("--events <n>", "how many events", Number, 1_000_000)
    .option("--repeats <n>", "runs of each; they take turns", Number, 1)
    .option("--dir <path>", "where the database goes", tmpdir())
    .parse(args, { from: "user" })
    .opts<{ events: number; repeats: number; dir: string }>();
  await packPostgres();
  const place = mkdtempSync(join(options.dir, "tally-bench-"));
  chmodSync(place, 0o755);
  const embedded = await openEmbedded({ dataDir: join(place, "data"), maxConnections: 20, role: "command" });
  const target = (database: string) => ({ ...embedded.target, database });
  const admin = openPool(target("postgres"), { maxConnections: 1, applicationName: "bench" });
  const [stream, text] = [join(place, "stream.zst"), join(place, "rows.copy")];
  try {
    await admin.unsafe("CREATE DATABASE transfer_source");
    const source = openPool(target("transfer_source"), { maxConnections: 2, applicationName: "bench" });
    await migrateUp(source);
    const loading = await seconds(() => load(source, options.events));
    const [version]: { v: string }[] = await admin`SELECT current_setting('server_version') AS v`;
    console.log(`${machineLine()}; Bun ${Bun.version}, PostgreSQL ${version?.v}`);
    console.log(`${options.events.toLocaleString("en")} events, made in ${loading.toFixed(0)} s\n`);
    const took = { copyOut: [0], out: [0], copyIn: [0], rows: [0], verified: [0], all: [0] };
    for (const list of Object.values(took)) list.length = 0;
    for (let repeat = 0; repeat < options.repeats; repeat++) {
      took.copyOut.push(await seconds(() => copyOut(source, text)));
      took.out.push(
        await seconds(() => exportAll(source, "bench", (parts) => toFile(stream, compressed(parts)))),
      );
      took.copyIn.push(await inNewDatabase(admin, target, (db) => seconds(() => copyIn(db, text))));
      const times = await inNewDatabase(admin, target, (db) => timeImport(db, stream));
      took.rows.push(times.rows);
      took.verified.push(times.verified);
      took.all.push(times.all);
    }
    await source.close({ timeout: 0 });
    const line = (name: string, mine: readonly number[], floor: readonly number[]) => [
      name,
      spread(mine, fixed(1)),
      (median(mine) / median(floor)).toFixed(2),
    ];
    console.log(
      markdownTable(
        ["", "seconds", "÷ COPY"],
        [
          line("COPY … TO STDOUT, to a file", took.copyOut, took.copyOut),
          line("export, to a file", took.out, took.copyOut),
          line("COPY … FROM STDIN, from a file", took.copyIn, took.copyIn),
          line("import: the rows are in", took.rows, took.copyIn),
          line("import: and were read back and compared", took.verified, took.copyIn),
          line("import: and every resource was folded", took.all, took.copyIn),
        ],
      ),
    );
  } finally {
    await admin.close({ timeout: 0 });
    await embedded.stop();
    rmSync(place, { recursive: true, force: true });
  }
}
