/**
 * A record of any size for the benchmarks: slices of ten thousand resources, each slice's events within a short time
 * of its own, one slice after the other over a year, as they would have come. Every value is computed from the numbers
 * of resource and event and from one seed, inside the server (`INSERT … SELECT`, which needs no client and no file), so
 * that the same seed always gives the same rows.
 */
import { createHash } from "node:crypto";
import type { Database, Transaction } from "../../src/database/connection.ts";
import { CLOUD, PLATFORM } from "./workload.ts";

export const RESOURCES_A_SLICE = 10_000;
/** The most slices that the year has room for. */
const SLICES = 400;
/** Before everything that the workload sends. */
const START = Date.UTC(2025, 8, 1) * 1000;
const SLICE_MICROS = (365 * 86_400_000_000) / SLICES;
const TYPES = ["instance", "volume", "floating_ip", "image"] as const;
const PROJECTS = 500;
/** Of every hundred resources, eight belong to this one. */
export const LARGE_PROJECT = "project-0";

/** What a record is made of. */
export interface RecordShape {
  readonly seed: number;
  readonly eventsEach: number;
}

/** A loaded resource, as SQL and JavaScript compute it alike. */
export interface LoadedResource {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly projectId: string;
  /** Microseconds. Its events follow, `stepMicros` apart. */
  readonly bornMicros: number;
  readonly stepMicros: number;
}

/** Fibonacci hashing: spreads consecutive numbers over 32 bits. */
const SPREAD = 2_654_435_769n;

function spread(seed: number, n: number, below: number): number {
  return Number((((BigInt(n) + 1n) * SPREAD + BigInt(seed)) % 4_294_967_296n) % BigInt(below));
}

function spreadSql(seed: number, n: string, below: number): string {
  return `((((${n})::bigint + 1) * ${SPREAD} + ${seed}) % 4294967296 % ${below})`;
}

function projectOf(n: number): string {
  return n % 100 < 8 ? LARGE_PROJECT : `project-${n % PROJECTS}`;
}

/** The `n`th resource. */
export function loadedResource({ seed, eventsEach }: RecordShape, n: number): LoadedResource {
  const slice = Math.floor(n / RESOURCES_A_SLICE);
  return {
    resourceType: TYPES[n % TYPES.length] ?? TYPES[0],
    resourceId: createHash("md5").update(String(n)).digest("hex"),
    projectId: projectOf(n),
    bornMicros: START + slice * SLICE_MICROS + spread(seed, n, SLICE_MICROS / 2),
    stepMicros: Math.floor(SLICE_MICROS / 2 / eventsEach),
  };
}

/** Adds slices `from` to `to` - 1. The database's other indexes are built at the end where that is cheaper. */
export async function addSlices(
  db: Database,
  shape: RecordShape,
  from: number,
  to: number,
  onProgress: (slice: number) => void,
): Promise<void> {
  if (to > SLICES) throw new Error(`the year has room for ${SLICES} slices`);
  if (to <= from) return;
  // Sorting once is cheaper than millions of searches; so few more are not worth building everything anew.
  const anew = to >= 2 * from;
  const indexes = anew ? await dropIndexes(db) : [];
  for (let slice = from; slice < to; slice++) {
    await db.begin(async (tx) => {
      await tx`SET LOCAL synchronous_commit = off`;
      await addSlice(tx, shape, slice);
    });
    onProgress(slice + 1);
  }
  for (const definition of indexes) {
    await db.begin(async (tx) => {
      await tx`SET LOCAL statement_timeout = 0`;
      await tx`SET LOCAL maintenance_work_mem = '512MB'`;
      await tx.unsafe(definition);
    });
  }
  await db.begin(async (tx) => {
    await tx`SET LOCAL statement_timeout = 0`;
    await tx`ANALYZE events, current_resources`;
  });
}

/** What autovacuum would have done by and by: without it, an index-only scan looks every row up. */
export async function settle(url: string): Promise<void> {
  const child = Bun.spawn(
    ["psql", "-X", "-q", "-c", "VACUUM (ANALYZE) events, current_resources", "-c", "CHECKPOINT", url],
    { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  );
  if ((await child.exited) !== 0) throw new Error(`VACUUM failed: ${await child.stderr.text()}`);
  // The kernel may still be writing what the server has handed to it.
  if ((await Bun.spawn(["sync"]).exited) !== 0) throw new Error("sync failed");
}

/** @returns the statements that make them again. */
async function dropIndexes(db: Database): Promise<string[]> {
  const indexes: { name: string; definition: string }[] = await db`
    SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
      FROM pg_index WHERE indrelid IN ('events'::regclass, 'current_resources'::regclass) AND NOT indisunique`;
  for (const { name } of indexes) await db.unsafe(`DROP INDEX ${name}`);
  return indexes.map(({ definition }) => definition);
}

async function addSlice(tx: Transaction, { seed, eventsEach }: RecordShape, slice: number): Promise<void> {
  const first = slice * RESOURCES_A_SLICE;
  const step = Math.floor(SLICE_MICROS / 2 / eventsEach);
  const last = eventsEach - 1;
  await tx.unsafe(`
    CREATE TEMP TABLE slice ON COMMIT DROP AS
    SELECT i, n, (ARRAY['${TYPES.join("','")}'])[1 + i % ${TYPES.length}] AS type, md5(i::text) AS id,
           CASE WHEN i % 100 < 8 THEN '${LARGE_PROJECT}' ELSE 'project-' || i % ${PROJECTS} END AS project,
           md5(i || ' ' || n) AS event_id,
           timestamptz 'epoch' + (${START + slice * SLICE_MICROS} + ${spreadSql(seed, "i", SLICE_MICROS / 2)}
                                  + n * ${step}::bigint) * interval '1 microsecond' AS at,
           CASE WHEN n = 0 THEN 'create' WHEN i % 5 < 2 AND n = ${last} THEN 'delete'
                WHEN (i + n) % 3 = 0 THEN 'resize' WHEN (i + n) % 2 = 0 THEN 'power_on' ELSE 'power_off' END AS action,
           (ARRAY[2, 4, 8, 16])[1 + n / 3 % 4] AS vcpus
    FROM generate_series(${first}, ${first + RESOURCES_A_SLICE - 1}) i, generate_series(0, ${last}) n`);
  const state = `CASE action WHEN 'delete' THEN 'deleted' WHEN 'power_off' THEN 'shutoff' ELSE 'active' END`;
  const size = `jsonb_build_object('vcpus', vcpus, 'ram_gb', vcpus * 2, 'disk_gb', 40, 'flavor', 'm1.' || vcpus)`;
  const type = `'compute.' || type || '.' || action || '.end'`;
  await tx.unsafe(`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT at, at + interval '2 seconds', event_id, ${type}, '${PLATFORM}', '${CLOUD}', type, id, project, 'collector',
           jsonb_build_object('state', ${state}, 'size', ${size},
             'provider', jsonb_build_object('name', 'vm-' || i, 'az', 'az' || i % 3, 'image', md5(i::text)))
    FROM slice ORDER BY at, event_id`);
  await tx.unsafe(`
    INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud,
                                   resource_type, resource_id, platform, project_id, state, last_event_id,
                                   last_event_type, size)
    SELECT at - ${last} * ${step}::bigint * interval '1 microsecond', CASE WHEN action = 'delete' THEN at END,
           at - ${last} * ${step}::bigint * interval '1 microsecond', at, at + interval '2 seconds', '${CLOUD}', type, id,
           '${PLATFORM}', project, ${state}, event_id, ${type}, ${size}
    FROM slice WHERE n = ${last} ORDER BY at`);
}
