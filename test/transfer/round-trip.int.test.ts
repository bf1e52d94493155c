/** What went out comes back in, row by row. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Database } from "../../src/database/connection.ts";
import { MIGRATIONS } from "../../src/database/migration-files.ts";
import { migrateUp, migrationStatus, schemaState } from "../../src/database/migrations.ts";
import { rebuild } from "../../src/projection/rebuild.ts";
import { probeDatabase } from "../../src/telemetry/probe.ts";
import { compressed, decompressed } from "../../src/transfer/compression.ts";
import { exportAll } from "../../src/transfer/export.ts";
import { importAll } from "../../src/transfer/import.ts";
import { StreamReader } from "../../src/transfer/reader.ts";
import { CARRIED, DERIVED } from "../../src/transfer/tables.ts";
import { itemText } from "../ingest/items.ts";
import { emptyDatabase, type TestDatabase, testDatabase } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { digests, fill, NEWEST, SMALL, streaming, streamOf } from "./rich-database.ts";

let source: TestDatabase;
let before: Record<string, string>;
let parts: Uint8Array[];
beforeAll(async () => {
  source = await testDatabase();
  await fill(source);
  before = await digests(source.db);
  parts = await streamOf(source.db);
});
afterAll(() => source.drop());

test("every table of the schema is carried, or known to be derived", async () => {
  const rows: { name: string }[] = await source.db`
    SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1`;
  expect(rows.map(({ name }) => name)).toEqual([...CARRIED, ...DERIVED].sort());
});

describe("a rich database, through zstd and back", () => {
  let target: TestDatabase;
  beforeAll(async () => {
    target = await emptyDatabase();
    const frames = compressed(streaming(...parts));
    const reader = await StreamReader.open(decompressed(frames), NEWEST);
    const imported = await importAll(target.db, "tester", reader);
    // 40 ids of resources, and one refused item made none.
    expect(imported.rebuilt).toBe(40);
    expect(imported.resumedAt).toBe(0);
  });
  afterAll(() => target.drop());

  test("every table is the same, the rows that were folded too", async () => {
    // The import's own doings are no part of the source's log.
    const own = await target.db`
      DELETE FROM audit_log WHERE action IN ('database.import', 'projection.rebuild') RETURNING action, actor`;
    expect([...own].map((row) => `${row.action} ${row.actor}`).sort()).toEqual([
      "database.import tester",
      "projection.rebuild tester",
    ]);
    expect(await digests(target.db)).toEqual(before);
    // Something is in each of them.
    expect(Object.values(before).filter((digest) => digest.startsWith("0 "))).toEqual([]);
  });

  test("digits are the same", async () => {
    const [row] = await target.db`
      SELECT payload #>> '{provider,n}' AS n, payload #>> '{provider,text}' AS text FROM events LIMIT 1`;
    expect(row).toEqual({
      n: "[12345678901234567890123456789, 0.1000, 1000000000000000000000000000000, 0.0, 0.00000000000000000001]",
      text: 'a\n"\\\u0001🙂',
    });
  });

  test("the database is ready, and nothing of the import is left", async () => {
    expect(await schemaState(target.db)).toBe("current");
    expect(await probeDatabase(target.db)).toBeNull();
  });

  test("numbers that the database hands out go on behind the highest", async () => {
    const [row] = await target.db`
      WITH added AS (INSERT INTO audit_log (actor, action, object_type, object_id) VALUES ('a', 'b', 'c', 'd') RETURNING id)
      SELECT added.id > (SELECT max(id) FROM audit_log) AS behind FROM added`;
    expect(row?.behind).toBe(true);
  });

  test("sending its events again adds nothing", async () => {
    const server = await testServer({ db: target });
    const token = await server.credentials.ingest("openstack", "os-1");
    const [event]: { id: string; at: string }[] = await target.db`
      SELECT event_id AS id, to_char(timestamp AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at
        FROM events LIMIT 1`;
    const body = itemText({ event_id: JSON.stringify(event?.id), timestamp: `"${event?.at}"` });
    const answer = await server.request("/api/v1/events", { method: "POST", token, body });
    expect(await answer.json()).toEqual({ accepted: 0, duplicates: 1, rejected: [] });
    await server.stop();
  });
});

test("two streams of one unchanged database have the same blocks", async () => {
  const again = await streamOf(source.db);
  expect(again.slice(1, -1)).toEqual(parts.slice(1, -1));
});

test("a stream is of one moment: what is written while it is made is not in it", async () => {
  const own = await testDatabase();
  await fill(own);
  const held = await digests(own.db);
  const made: Uint8Array[] = [];
  await exportAll(
    own.db,
    "x",
    async (stream) => {
      for await (const part of stream) {
        if (made.length === 0) {
          await own.db`INSERT INTO projects (platform, cloud, external_id) VALUES ('p', 'c', 'late')`;
          await own.db`INSERT INTO events SELECT now(), received_at, event_id, event_type, platform, cloud, resource_type,
            resource_id, project_id, source, payload FROM events LIMIT 10`;
        }
        made.push(part);
      }
    },
    undefined,
    SMALL,
  );
  const target = await emptyDatabase();
  await importAll(target.db, "t", await StreamReader.open(streaming(...made), NEWEST));
  const found = await digests(target.db);
  expect([found.projects, found.events, found.current_resources]).toEqual([
    held.projects,
    held.events,
    held.current_resources,
  ]);
  await own.drop();
  await target.drop();
});

test("a stream of an older schema goes in as it was made, and is migrated then", async () => {
  const old = await emptyDatabase();
  await migrateUp(
    old.db,
    MIGRATIONS.filter(({ version }) => version <= 8),
  );
  await old.db`
    INSERT INTO rejected_events (received_at, reason, reason_kind, source, raw)
    VALUES (now(), 'x', 'schema', 'collector', '{"cloud":"os-7"}')`;
  const made: Uint8Array[] = [];
  await exportAll(
    old.db,
    "0.0.8",
    async (stream) => {
      for await (const part of stream) made.push(part);
    },
    undefined,
    SMALL,
  );
  // One that already has this Tally's schema, and one that has none.
  for (const target of [await testDatabase(), await emptyDatabase()]) {
    await importAll(target.db, "t", await StreamReader.open(streaming(...made), NEWEST));
    expect(await schemaState(target.db)).toBe("current");
    // What migration 9 reads out of each dead letter.
    const [letter] = await target.db`SELECT item_cloud, whole FROM rejected_events`;
    expect(letter).toEqual({ item_cloud: "os-7", whole: true });
    await target.drop();
  }
  await old.drop();
});

/** A row in each table that a migration changes, and each kind of event there is. */
async function furnish(db: Database): Promise<void> {
  await db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-03-01 08:00:00+00' + n * interval '1 hour', now(), 'e' || n,
           CASE n WHEN 0 THEN 'a.create' WHEN 3 THEN 'a.delete' ELSE 'a.update' END, 'p', 'c', 'volume', 'v', 'p',
           'collector', CASE WHEN n < 3 THEN '{"state":"s","size":{"n":0.10}}'::jsonb END
      FROM generate_series(0, 3) n`;
  await db`
    INSERT INTO rejected_events (received_at, reason, reason_kind, source, raw)
    VALUES (now(), 'x', 'schema', 'collector', '{"cloud":"os-7"}'), (now(), 'x', 'schema', 'collector', '1e400000')`;
  await db`INSERT INTO projects (platform, cloud, external_id) VALUES ('p', 'c', 'a'), ('p', 'c', 'b')`;
  await db`INSERT INTO ingest_credentials (platform, cloud, token_sha256) VALUES ('p', 'c', sha256('x'))`;
  await db`INSERT INTO audit_log (actor, action, object_type, object_id) VALUES ('a', 'b', 'c', 'd')`;
}

test.each(MIGRATIONS.slice(0, -1).map(({ version }) => version))(
  "a database that stopped at migration %d goes out as it is, and in as migrating it would have left it",
  async (version) => {
    const [old, target] = [await emptyDatabase(), await emptyDatabase()];
    await migrateUp(
      old.db,
      MIGRATIONS.filter((migration) => migration.version <= version),
    );
    await furnish(old.db);
    const stream = await streamOf(old.db);
    expect(JSON.parse(Buffer.from(stream[0] ?? []).toString()).schema).toBe(version);
    expect(await migrationStatus(old.db)).toContainEqual(expect.objectContaining({ state: "pending" }));
    await importAll(target.db, "t", await StreamReader.open(streaming(...stream), NEWEST));
    await migrateUp(old.db);
    await rebuild(old.db, "t", { cloud: null, resourceType: null });
    for (const { db } of [old, target]) {
      await db`DELETE FROM audit_log WHERE actor = 't'`;
      // When the pending migrations put their size schemas there is each database's own.
      await db`UPDATE resource_types SET updated_at = '2026-01-01T00:00:00Z'`;
    }
    const migrated = await digests(old.db);
    expect(await digests(target.db)).toEqual(migrated);
    expect([migrated.events, migrated.current_resources]).toEqual([
      expect.stringMatching(/^4 /),
      expect.stringMatching(/^1 /),
    ]);
    await old.drop();
    await target.drop();
  },
);

test("an empty database goes out and in, too", async () => {
  const [from, to] = [await testDatabase(), await emptyDatabase()];
  const reader = await StreamReader.open(streaming(...(await streamOf(from.db))), NEWEST);
  const { tables } = await importAll(to.db, "t", reader);
  // The seeded size schemas.
  expect(tables.get("resource_types")?.rows).toBe(5);
  expect(await digests(to.db)).toMatchObject({ resource_types: (await digests(from.db)).resource_types });
  await from.drop();
  await to.drop();
});
