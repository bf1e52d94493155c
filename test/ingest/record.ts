/** What ingest tests read back: the tables as they stand, and the pipeline without HTTP. */
import type { Database } from "../../src/database/connection.ts";
import { type IngestOutcome, ingest } from "../../src/ingest/pipeline.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";

const metrics = createMetrics();

/** Hands a batch of item texts to the pipeline as the collector of (platform, cloud) would. */
export async function ingestItems(
  db: Database,
  items: readonly string[],
  cloud = "os-1",
  platform = "openstack",
): Promise<IngestOutcome> {
  const text = `[${items.join(",")}]`;
  const sender = {
    actor: "00000000-0000-4000-8000-000000000001",
    scope: { platform, cloud },
    source: "collector",
  } as const;
  return await ingest({ db, metrics, requireSizeSchema: false }, sender, text, JSON.parse(text));
}

/** Every projection row as one JSON text a resource, in key order. */
export async function projectionRows(db: Database): Promise<string[]> {
  const rows: { row: string }[] = await db`
    SELECT to_jsonb(c)::text AS row FROM current_resources c ORDER BY cloud, resource_type, resource_id`;
  return rows.map(({ row }) => row);
}

/** Every table that ingest writes, but for the audit log, as text. */
export async function recordText(db: Database): Promise<string> {
  const [row]: { text: string }[] = await db`
    SELECT (SELECT coalesce(string_agg(e::text, E'\n' ORDER BY timestamp, event_id), '') FROM events e)
        || E'\n\n' ||
           (SELECT coalesce(string_agg(c::text, E'\n' ORDER BY cloud, resource_type, resource_id), '') FROM current_resources c)
        || E'\n\n' ||
           (SELECT coalesce(string_agg(r::text, E'\n' ORDER BY received_at, id), '') FROM rejected_events r) AS text`;
  return row?.text ?? "";
}
