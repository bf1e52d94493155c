/** Running a scripted cloud against a real database, and reading what is there afterwards. */
import type { Database } from "../../src/database/connection.ts";
import { ingest } from "../../src/ingest/pipeline.ts";
import type { ConfiguredCloud } from "../../src/reconcile/adapter.ts";
import type { SyncOutcome } from "../../src/reconcile/outcome.ts";
import type { RunRequest, RunServices } from "../../src/reconcile/request.ts";
import { runSync } from "../../src/reconcile/run.ts";
import { readSettings, type SyncSettings } from "../../src/settings.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { at, SMALL } from "./scripted-adapter.ts";

/** What the tests take for now, unless a request says otherwise. */
export const NOW = at("2026-03-02T12:00:00Z");

/** The `deferred` of a run that left nothing to the next one. */
export const NONE_DEFERRED = { transitional: 0, recent: 0 };

/** Services over a database; every line that is logged goes into `logged`. */
export function runServices(
  db: Database,
  sync: Partial<SyncSettings> = {},
): RunServices & { readonly logged: Record<string, unknown>[] } {
  const settings = readSettings({ HOME: "/nowhere" });
  const logged: Record<string, unknown>[] = [];
  return {
    db,
    settings: { ...settings, sync: { ...settings.sync, ...sync } },
    now: () => NOW,
    log: createLogger("DEBUG", (line) => logged.push(JSON.parse(line))),
    metrics: createMetrics(),
    logged,
  };
}

/** Runs a cloud, uncancelled. */
export async function run(
  services: RunServices,
  cloud: ConfiguredCloud,
  request: RunRequest = {},
): Promise<SyncOutcome> {
  return await runSync(services, cloud, request, new AbortController().signal);
}

/** What a collector sends of an instance. */
export function collected(
  resourceId: string,
  eventType: string,
  timestamp: string,
  changed: {
    readonly state?: string;
    readonly size?: string | null;
    readonly projectId?: string;
    readonly cloud?: string;
    readonly resourceType?: string;
  } = {},
): string {
  const {
    state = "active",
    size = SMALL,
    projectId = "shop",
    cloud = "eu1",
    resourceType = "instance",
  } = changed;
  const payload = eventType.endsWith("delete.end")
    ? "null"
    : `{"state":"${state}"${size === null ? "" : `,"size":${size}`}}`;
  return (
    `{"event_id":"${resourceId} ${eventType} ${timestamp}","timestamp":"${timestamp}","event_type":"${eventType}"` +
    `,"platform":"openstack","cloud":"${cloud}","resource_type":"${resourceType}","resource_id":"${resourceId}"` +
    `,"project_id":"${projectId}","payload":${payload}}`
  );
}

/** What a collector sends of an instance that begins with the month. */
export function created(resourceId: string): string {
  return collected(resourceId, "compute.instance.create.end", "2026-03-01T00:00:00Z");
}

/** Forgets everything: the next test begins with an empty record. */
export async function emptied(db: Database): Promise<void> {
  await db.unsafe("ALTER TABLE events DISABLE TRIGGER events_are_immutable");
  await db.unsafe("TRUNCATE events, current_resources, sync_runs, size_names, rejected_events, audit_log");
  await db.unsafe("ALTER TABLE events ENABLE TRIGGER events_are_immutable");
}

/** Hands items in as a collector would. */
export async function collect(
  services: Pick<RunServices, "db" | "metrics">,
  ...items: string[]
): Promise<void> {
  const { db, metrics } = services;
  for (let from = 0; from < items.length; from += 1_000) {
    const text = `[${items.slice(from, from + 1_000).join(",")}]`;
    const sender = { actor: "collector", scope: null, source: "collector" } as const;
    const outcome = await ingest({ db, metrics, requireSizeSchema: false }, sender, text, JSON.parse(text));
    if (outcome.rejected.length > 0) throw new Error(JSON.stringify(outcome.rejected));
  }
}

/** A row of the record, as far as the tests look at it. */
export interface Row {
  readonly id: string;
  readonly state: string;
  readonly project: string;
  readonly flavor: string | null;
  readonly deleted: string | null;
}

/** The instances of cloud eu1 as the record has them, by id. */
export async function rows(db: Database): Promise<Row[]> {
  const found: Row[] = await db`
    SELECT resource_id AS id, state, project_id AS project, size ->> 'flavor' AS flavor,
           to_char(deleted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS deleted
    FROM current_resources WHERE cloud = 'eu1' AND resource_type = 'instance' ORDER BY resource_id`;
  return [...found];
}

/** The events that reconciliation booked: `<type> <id> <timestamp>`, by timestamp and id. */
export async function booked(db: Database): Promise<string[]> {
  const found: { line: string }[] = await db`
    SELECT event_type || ' ' || resource_id || ' ' ||
           to_char(timestamp AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS line
    FROM events WHERE source = 'reconciliation' ORDER BY timestamp, resource_id`;
  return found.map(({ line }) => line);
}

/** The rows of sync_runs, oldest first. */
export async function syncRuns(
  db: Database,
): Promise<{ id: string; status: string; stats: Record<string, unknown> }[]> {
  const found: { id: string; status: string; stats: string }[] = await db`
    SELECT id::text AS id, status, stats::text AS stats FROM sync_runs ORDER BY started_at, finished_at NULLS LAST`;
  return found.map(({ id, status, stats }) => ({ id, status, stats: JSON.parse(stats) }));
}

/** The payloads of the events that reconciliation booked, by event id. */
export async function payloads(db: Database): Promise<Record<string, unknown>> {
  const found: { id: string; payload: string }[] = await db`
    SELECT event_id AS id, payload::text AS payload FROM events WHERE source = 'reconciliation'`;
  return Object.fromEntries(found.map(({ id, payload }) => [id, JSON.parse(payload)]));
}

/** The audit log, oldest first, but for what the collector of these tests did. */
export async function auditRows(
  db: Database,
): Promise<{ actor: string; action: string; object: string; details: unknown }[]> {
  const found: { actor: string; action: string; object: string; details: string }[] = await db`
    SELECT actor, action, object_type || ' ' || object_id AS object, details::text AS details
    FROM audit_log WHERE actor <> 'collector' ORDER BY id`;
  return found.map(({ details, ...row }) => ({ ...row, details: JSON.parse(details) }));
}
