/** A database with something in every table, awkward values among it; streams of it, and what tables hold. */
import type { Database, Queryable } from "../../src/database/connection.ts";
import { MIGRATIONS } from "../../src/database/migration-files.ts";
import { type BlockSize, exportAll } from "../../src/transfer/export.ts";
import { CARRIED } from "../../src/transfer/tables.ts";
import { itemText, payloadText } from "../ingest/items.ts";
import type { TestDatabase } from "../support/database.ts";
import { testServer } from "../support/server.ts";

export const NEWEST = Math.max(...MIGRATIONS.map(({ version }) => version));

/** What a text column may hold: everything that COPY or JSON wants escaped, and more. */
const AWKWARD = 'tab\t newline\n return\r backslash\\ "quote" \u0001\b\f\v\u007f \\N \\. null ü 🙂 \u2028';
const DIGITS = '{"n":[12345678901234567890123456789,0.1000,1e30,-0.0,1E-20],"text":"a\\n\\"\\\\\\u0001🙂"}';

/** Fills it: over the API where that writes rows, else by statements. */
export async function fill(own: TestDatabase): Promise<void> {
  const server = await testServer({ db: own });
  const token = await server.credentials.ingest("openstack", "os-1");
  const at = (n: number) => `"2026-03-0${1 + (n % 9)}T08:00:00.${String(n).padStart(6, "0")}+02:00"`;
  const items = Array.from({ length: 300 }, (_, n) =>
    itemText({
      event_id: JSON.stringify(`event ${n} ${n % 50 === 0 ? AWKWARD : ""}`),
      timestamp: at((n * 7919) % 1000),
      resource_id: JSON.stringify(`vm/${n % 40} ${n % 40 === 3 ? AWKWARD : ""}`),
      event_type: n % 9 === 8 ? '"compute.instance.delete.end"' : '"compute.instance.create.end"',
      payload: payloadText({ state: `"state ${n % 4}"`, provider: DIGITS }),
    }),
  );
  const refused = [
    itemText({ event_id: '""' }),
    itemText({ cloud: '"elsewhere"' }),
    '{"n":1e400000,"\\u0000":"\\ud800"}',
  ];
  for (const body of [items.slice(0, 100), items.slice(100), refused]) {
    const answer = await server.request("/api/v1/events", {
      method: "POST",
      token,
      body: `[${body.join(",")}]`,
    });
    if (answer.status !== 200) throw new Error(await answer.text());
  }
  await server.stop();
  const { db } = own;
  await db`
    INSERT INTO projects (platform, cloud, external_id, name, metadata)
    SELECT 'openstack', 'os-1', 'p' || n, CASE WHEN n > 1 THEN ${AWKWARD} || n END, ${DIGITS}::text::jsonb
      FROM generate_series(1, 5) n`;
  await db`
    INSERT INTO project_relations (valid_from, valid_to, source_id, target_id, relation_type)
    SELECT timestamptz '2026-01-01 00:00:00.000001+00', NULL, a.id, b.id, 'infrastructure_tenant'
      FROM projects a, projects b WHERE a.external_id = 'p1' AND b.external_id = 'p2'`;
  await db`INSERT INTO api_tokens (role, project_ids, description, token_sha256)
    SELECT 'project', array_agg(id), ${AWKWARD}, sha256('x') FROM projects`;
  await db`UPDATE ingest_credentials SET revoked_at = now(), description = ${AWKWARD}`;
  await db`INSERT INTO size_names VALUES ('os-1', 'volume', 'type', ${AWKWARD}, ${AWKWARD})`;
  await db`INSERT INTO resource_types (platform, resource_type, size_schema)
    VALUES ('openstack', 'share', ${'{ "type":\n\t"object",\r\n "a\\\\b": 0.1000, "type": "object" }'}::text::json)`;
  await db`INSERT INTO sync_runs (started_at, finished_at, cloud, platform, status, stats)
    VALUES (now(), NULL, 'os-1', 'openstack', 'running', '{}'),
           (now(), now(), 'os-1', 'openstack', 'completed', ${DIGITS}::text::jsonb)`;
}

/** Small blocks, so that a small database makes many. */
export const SMALL: BlockSize = { rows: 20, bytes: 16_384 };

/** A stream, uncompressed, in the parts that it is written in: the header, each block, the end. */
export async function streamOf(db: Database, size: BlockSize = SMALL): Promise<Uint8Array[]> {
  const parts: Uint8Array[] = [];
  const write = async (stream: AsyncIterable<Uint8Array>) => {
    for await (const part of stream) parts.push(part);
  };
  await exportAll(db, "0.0.0-test", write, undefined, size);
  return parts;
}

export async function* streaming(...parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield part;
}

/** A digest of every row of every table that a stream carries, and of what is derived, by table. */
export async function digests(db: Queryable): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const table of [...CARRIED, "current_resources"]) {
    const [row]: { digest: string }[] = await db.unsafe(
      `SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, E'\\n' ORDER BY t::text COLLATE "C")), '') AS digest
         FROM ${table} t`,
    );
    found[table] = row?.digest ?? "";
  }
  return found;
}
