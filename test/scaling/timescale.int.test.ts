/** Events in a TimescaleDB hypertable: what was compressed takes late events like any other. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openPool } from "../../src/database/pool.ts";
import { importAll } from "../../src/transfer/import.ts";
import { StreamReader } from "../../src/transfer/reader.ts";
import { verify } from "../../src/verify/verify.ts";
import { itemText } from "../ingest/items.ts";
import { emptyDatabase, type TestDatabase, testDatabase } from "../support/database.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { digests, fill, NEWEST, streaming, streamOf } from "../transfer/rich-database.ts";

/** Why there is nothing to test; null: the server offers it, and the hypertable is made. */
async function withoutTimescale(): Promise<string | null> {
  const url = process.env.TALLY_TEST_DB_URL;
  const hint =
    "point TALLY_TEST_DB_URL at a server with TimescaleDB 2.18.1 or newer in shared_preload_libraries";
  if (url === undefined) return `SKIPPED, not tested: the tests' own PostgreSQL has no TimescaleDB; ${hint}`;
  const db = openPool({ url }, { maxConnections: 1 });
  const [row] = await db`
    SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'timescaledb')
       AND current_setting('shared_preload_libraries') LIKE '%timescaledb%' AS there`;
  await db.close({ timeout: 0 });
  return row?.there === true
    ? null
    : `SKIPPED, not tested: the server of TALLY_TEST_DB_URL has no TimescaleDB; ${hint}`;
}

const WITHOUT = await withoutTimescale();
if (WITHOUT !== null) console.warn(WITHOUT);

describe.skipIf(WITHOUT !== null)("on TimescaleDB", () => {
  let own: TestDatabase;
  let server: TestServer;
  let token: string;
  beforeAll(async () => {
    own = await testDatabase();
    server = await testServer({ db: own });
    token = await server.credentials.ingest("openstack", "os-1");
  });
  afterAll(async () => {
    await server?.stop();
    await own?.drop();
  });

  /** Event `n` of a history that is a year old. */
  const old = (n: number) =>
    itemText({
      event_id: `"old-${n}"`,
      timestamp: `"2025-12-0${1 + (n % 5)}T08:${String(n).padStart(2, "0")}:00Z"`,
      event_type: n === 0 ? '"compute.instance.create.end"' : '"compute.instance.resize.end"',
      resource_id: `"vm-${n % 4}"`,
    });
  const send = async (items: readonly string[]): Promise<unknown> => {
    const answer = await server.request("/api/v1/events", {
      method: "POST",
      token,
      body: `[${items.join(",")}]`,
    });
    return await answer.json();
  };
  const compress = async (): Promise<void> => {
    await own.db.unsafe("SELECT compress_chunk(c, if_not_compressed => true) FROM show_chunks('events') c");
  };
  const faults = async (): Promise<unknown[]> => {
    const found: unknown[] = [];
    await verify(own.db, (fault) => found.push(fault));
    return found;
  };

  test("events is a hypertable, with a policy that compresses it", async () => {
    const [row] = await own.db`
      SELECT (SELECT count(*)::int FROM timescaledb_information.hypertables WHERE hypertable_name = 'events') AS tables,
             (SELECT count(*)::int FROM timescaledb_information.jobs
               WHERE proc_name = 'policy_compression' AND hypertable_name = 'events') AS policies`;
    expect({ ...row }).toEqual({ tables: 1, policies: 1 });
  });

  test("a late batch with a duplicate first, into compressed chunks: nothing is lost", async () => {
    const early = Array.from({ length: 20 }, (_, n) => old(n));
    const late = Array.from({ length: 20 }, (_, n) => old(20 + n));
    expect(await send(early)).toEqual({ accepted: 20, duplicates: 0, rejected: [] });
    await compress();
    const [chunks] = await own.db`
      SELECT count(*)::int AS n FROM timescaledb_information.chunks WHERE hypertable_name = 'events' AND is_compressed`;
    expect(chunks?.n).toBeGreaterThan(0);
    expect(await send([early[7] ?? "", ...late, early[3] ?? ""])).toEqual({
      accepted: 20,
      duplicates: 2,
      rejected: [],
    });
    const [row] =
      await own.db`SELECT count(*)::int AS rows, count(DISTINCT event_id)::int AS ids FROM events`;
    expect({ ...row }).toEqual({ rows: 40, ids: 40 });
    expect(await faults()).toEqual([]);
    // And once more, all of it, into chunks that are compressed in part.
    expect(await send([...early, ...late])).toEqual({ accepted: 0, duplicates: 40, rejected: [] });
    await compress();
    expect(await send([...late, ...early])).toEqual({ accepted: 0, duplicates: 40, rejected: [] });
    expect(await faults()).toEqual([]);
  });

  test("reads and a rebuild see what is compressed", async () => {
    const path = "/api/v1/resources/os-1/instance/vm-1/events";
    const answer = await server.request(path, { token: server.credentials.admin });
    expect((await answer.text()).match(/"event_id"/g)).toHaveLength(10);
    const page = await server.request("/api/v1/events?limit=1000", { token: server.credentials.admin });
    expect((await page.text()).match(/"event_id"/g)).toHaveLength(40);
    const rebuilt = await server.request("/internal/projection/rebuild", {
      method: "POST",
      token: server.credentials.internal,
    });
    expect(await rebuilt.json()).toEqual({ rebuilt: 4 });
  });

  test.each([
    ["events?cloud=os-1", 40],
    ["events?resource_type=instance", 40],
    ["events?platform=openstack", 40],
    ["events?platform=vmware", 0],
    ["events?cloud=os-1&source=reconciliation", 0],
    ["resources?resource_type=instance", 4],
    ["resources?platform=openstack", 4],
    ["resources?state=active", 4],
    ["resources?state=lost", 0],
  ])("%s are %i", async (list, count) => {
    const answer = await server.request(`/api/v1/${list}&limit=1000`, { token: server.credentials.admin });
    expect(JSON.parse(await answer.text()).items).toHaveLength(count);
  });

  test("no event is ever changed or removed, compressed or not", async () => {
    for (const statement of ["UPDATE events SET project_id = 'x'", "DELETE FROM events", "TRUNCATE events"])
      expect(own.db.unsafe(statement)).rejects.toThrow("events are never changed or removed");
    const [row] = await own.db`SELECT count(*)::int AS n FROM events`;
    expect(row?.n).toBe(40);
  });

  test("a stream takes compressed chunks along", async () => {
    const source = await testDatabase();
    await fill(source);
    await source.db.unsafe("SELECT compress_chunk(c) FROM show_chunks('events') c");
    const target = await emptyDatabase();
    await importAll(
      target.db,
      "t",
      await StreamReader.open(streaming(...(await streamOf(source.db))), NEWEST),
    );
    const { audit_log: _, ...rest } = await digests(target.db);
    expect(await digests(source.db)).toMatchObject(rest);
    await source.drop();
    await target.drop();
  });
});
