/**
 * The fleet that reads are measured on: 100,000 resources of two clouds with ten events each, spread over days or
 * months of one year, one more with a thousand, and 2,000 of a cloud that was connected in the year's last week. Every value is computed from the numbers of its resource and
 * event and from one seed, inside the server (`INSERT … SELECT`, which needs no client and no file), so that the
 * same seed always gives the same rows. Beside them stand a registry that holds every project, refused items, and a log.
 */
import type { Database, Transaction } from "../../src/database/connection.ts";

/** How large the fleet is. */
export const FLEET = { resources: 100_000, eventsEach: 10, longHistory: 1_000 } as const;
/** The fleet's year begins here. */
const START = "2025-12-01T00:00:00Z";
/** The fleet's clouds; the second has a third of the resources. */
export const CLOUDS = ["bench-1", "bench-2"] as const;
/** Connected when all of those events were there already; its platform and its type of resource are its own. */
export const LATE = { cloud: "late-1", platform: "vmware", resourceType: "vm", resources: 2_000 } as const;
/** A project with a thousand resources of the first cloud, or some more. */
export const LARGE_PROJECT = "project-large";
/** One of five hundred projects with two hundred resources, more or less. */
export const SMALL_PROJECT = "project-7";
/** Refused items, entries of the log, and projects that own nothing. */
export const BESIDE = 50_000;
/** The one resource with a thousand events. */
export const LONG = { cloud: CLOUDS[0], resourceType: "instance", resourceId: "r-long" } as const;

/** A whole number from 0 to `below` - 1, drawn by the seed for a number; `use` tells draws for one number apart. */
function draw(seed: number, number: string, use: number, below: number | string): string {
  return `mod(abs(hashint8extended(${number}, ${seed} * 1000 + ${use}) >> 8), ${below})`;
}

/** Fills empty tables. @returns the seconds it took, indexes and statistics included. */
export async function loadFleet(db: Database, seed: number): Promise<number> {
  const begun = performance.now();
  await db.begin(async (tx) => {
    await tx`SET LOCAL statement_timeout = 0`;
    // Sorting once is cheaper than a million searches.
    const rebuild = await dropIndexes(tx);
    await fill(tx, seed);
    await fillLate(tx);
    await fillBeside(tx);
    for (const statement of rebuild) await tx.unsafe(statement);
  });
  await db`VACUUM (ANALYZE) events, current_resources, projects, rejected_events, audit_log, sync_runs`;
  await db`CHECKPOINT`;
  return (performance.now() - begun) / 1000;
}

/** @returns the statements that make them again. */
async function dropIndexes(tx: Transaction): Promise<string[]> {
  const indexes: { name: string; definition: string }[] = await tx`
    SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
      FROM pg_index WHERE indrelid IN ('events'::regclass, 'current_resources'::regclass) AND NOT indisunique`;
  for (const { name } of indexes) await tx.unsafe(`DROP INDEX ${name}`);
  return indexes.map(({ definition }) => definition);
}

async function fill(tx: Transaction, seed: number): Promise<void> {
  const { resources, eventsEach, longHistory } = FLEET;
  const days = `1 + ${draw(seed, "i", 5, 30)}`;
  // The long history is resource 0: as old as the year, in steps of eight hours.
  await tx.unsafe(`
    CREATE TEMP TABLE fleet ON COMMIT DROP AS
    WITH drawn AS (
      SELECT i, ${draw(seed, "i", 1, 3)} AS c, ${draw(seed, "i", 2, 100)} AS t, ${draw(seed, "i", 3, 60)} AS large,
             ${draw(seed, "i", 4, 500)} AS p, ${days} AS days, ${draw(seed, "i", 6, 10)} < 4 AS dies,
             ${draw(seed, "i", 7, 20)} = 0 AS moves
        FROM generate_series(0::bigint, ${resources}) i)
    SELECT i, CASE WHEN i = 0 OR c > 0 THEN '${CLOUDS[0]}' ELSE '${CLOUDS[1]}' END AS cloud,
           CASE WHEN i = 0 OR t < 45 THEN 'instance' WHEN t < 75 THEN 'volume' WHEN t < 90 THEN 'floating_ip'
                ELSE 'image' END AS type,
           CASE WHEN i = 0 THEN '${LONG.resourceId}' ELSE 'r-' || md5(i::text) END AS id,
           CASE WHEN c > 0 AND large = 0 THEN '${LARGE_PROJECT}' ELSE 'project-' || p END AS project, days,
           timestamptz '${START}' + CASE WHEN i = 0 THEN 0
             ELSE ${draw(seed, "i", 8, "(355 - 10 * days) * 86400")} END * interval '1 second' AS born,
           i <> 0 AND dies AS dies, moves
      FROM drawn`);
  const last = `CASE WHEN i = 0 THEN ${longHistory} ELSE ${eventsEach} END - 1`;
  await tx.unsafe(`
    CREATE TEMP TABLE history ON COMMIT DROP AS
    SELECT i, cloud, type, id, n, md5(i || ' ' || n) AS event_id,
           born + CASE WHEN i = 0 THEN n * interval '8 hours'
                       ELSE n * days * interval '1 day'
                            + least(n, 1) * ${draw(seed, "i * 1000 + n", 9, 86_400_000)} * interval '1 millisecond'
                  END AS at,
           CASE WHEN n = 0 THEN 'create' WHEN dies AND n = ${eventsEach - 1} THEN 'delete'
                WHEN (i + n) % 3 = 0 THEN 'resize' WHEN (i + n) % 2 = 0 THEN 'power_on' ELSE 'power_off' END AS action,
           CASE WHEN moves AND n >= 5 THEN 'project-' || mod(i, 500) ELSE project END AS project,
           (ARRAY[2, 4, 8, 16])[1 + n / 3 % 4] AS vcpus
      FROM fleet CROSS JOIN LATERAL generate_series(0, ${last}) n`);
  await tx`ANALYZE fleet, history`;
  // In order of time, as they would have come.
  await tx.unsafe(`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT at, at + interval '2 seconds', event_id, 'compute.' || type || '.' || action || '.end', 'openstack', cloud,
           type, id, project, CASE WHEN mod(i + n, 50) = 0 THEN 'reconciliation' ELSE 'collector' END,
           jsonb_build_object(
             'state', CASE action WHEN 'delete' THEN 'deleted' WHEN 'power_off' THEN 'shutoff' ELSE 'active' END,
             'size', jsonb_build_object('vcpus', vcpus, 'ram_gb', vcpus * 2, 'disk_gb', 40, 'flavor', 'm1.' || vcpus),
             'provider', jsonb_build_object('name', 'vm-' || i, 'az', 'az' || i % 3, 'image', md5(i::text)))
      FROM history ORDER BY at, event_id`);
  await tx.unsafe(`
    INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud,
                                   resource_type, resource_id, platform, project_id, state, last_event_id,
                                   last_event_type, size)
    SELECT f.born, CASE WHEN f.dies THEN e.timestamp END, f.born, e.timestamp, e.received_at, f.cloud, f.type, f.id,
           'openstack', e.project_id, e.payload ->> 'state', e.event_id, e.event_type, e.payload -> 'size'
      FROM fleet f
      JOIN history h USING (i)
      JOIN events e ON e.timestamp = h.at AND e.event_id = h.event_id
     WHERE h.n = CASE WHEN f.i = 0 THEN ${longHistory} ELSE ${eventsEach} END - 1
     ORDER BY f.born, f.i`);
}

/** The late cloud, ten events a resource; as steady as the others aren't. */
async function fillLate(tx: Transaction): Promise<void> {
  const { cloud, platform, resourceType, resources } = LATE;
  const at = (i: string) => `timestamptz '2026-11-24T00:00:00Z' + ${i} * interval '20 seconds'`;
  await tx.unsafe(`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT ${at("i")}, ${at("i")} + interval '2 seconds', md5('late ' || i), 'vm.update', '${platform}', '${cloud}',
           '${resourceType}', 'vm-' || i % ${resources}, 'tenant-' || i % 20, 'collector',
           '{"state": "poweredOn", "size": {"vcpus": 2}}'
      FROM generate_series(0, ${resources * 10 - 1}) i`);
  const last = `(${resources * 9} + i)`;
  await tx.unsafe(`
    INSERT INTO current_resources (created_at, first_event_at, last_event_at, last_received_at, cloud, resource_type,
                                   resource_id, platform, project_id, state, last_event_id, last_event_type, size)
    SELECT ${at("i")}, ${at("i")}, ${at(last)}, ${at(last)} + interval '2 seconds', '${cloud}', '${resourceType}',
           'vm-' || i, '${platform}', 'tenant-' || i % 20, 'poweredOn', md5('late ' || ${last}), 'vm.update',
           '{"vcpus": 2}'
      FROM generate_series(0, ${resources - 1}) i`);
}

/** The registry; every tenth refused item resolved; a log of batches mostly; runs of which none failed. */
async function fillBeside(tx: Transaction): Promise<void> {
  const when = `timestamptz '${START}' + i * interval '10 minutes'`;
  const series = `generate_series(1, ${BESIDE}) i`;
  await tx.unsafe(`
    INSERT INTO projects (platform, cloud, external_id, name, metadata)
    SELECT platform, cloud, project_id, project_id, '{"cost_centre": "4711", "contact": {"name": "a", "mail": "a@b.example"}}'
      FROM (SELECT DISTINCT platform, cloud, project_id FROM current_resources) known`);
  await tx.unsafe(`
    INSERT INTO projects (platform, cloud, external_id, metadata)
    SELECT 'openstack', 'bench-' || 3 + i % 5, 'idle-' || i, '{"cost_centre": "4711"}' FROM ${series}`);
  await tx.unsafe(`
    INSERT INTO rejected_events (received_at, reason, reason_kind, source, platform, cloud, item_cloud, raw, resolved_at)
    SELECT ${when}, 'size_schema: ''vcpus'' is a required property', 'size_schema', 'collector', 'openstack',
           '${CLOUDS[0]}', '${CLOUDS[0]}',
           json_build_object('event_id', md5(i::text), 'timestamp', ${when}, 'event_type', 'compute.instance.create.end',
             'platform', 'openstack', 'cloud', '${CLOUDS[0]}', 'resource_type', 'instance', 'resource_id', md5('r' || i),
             'project_id', 'project-7', 'payload', json_build_object('state', 'active', 'size', '{}'::json))::text,
           CASE WHEN i % 10 = 0 THEN now() END
      FROM ${series}`);
  await tx.unsafe(`
    INSERT INTO audit_log (at, actor, action, object_type, object_id, details)
    SELECT ${when}, 'collector-' || i % 20, CASE i % 100 WHEN 0 THEN 'project.create' ELSE 'events.ingest' END,
           CASE i % 100 WHEN 0 THEN 'project' ELSE 'batch' END, '${CLOUDS[0]}',
           '{"source": "collector", "accepted": 998, "duplicates": 1, "rejected": 1}'
      FROM ${series}`);
  await tx.unsafe(`
    INSERT INTO sync_runs (started_at, finished_at, cloud, platform, status, stats)
    SELECT ${when}, ${when} + interval '20 seconds', '${CLOUDS[0]}', 'openstack', 'completed',
           '{"created": 1, "updated": 2, "deleted": 0, "deferred": {"transitional": 0, "recent": 1}, "errors": [], "error_count": 0}'
      FROM ${series}`);
}
