/** Events and rows spread over a Citus cluster by their cloud: what ingest, the reads and the checker make of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Database } from "../../src/database/connection.ts";
import { migrateDown, migrateUp, schemaState } from "../../src/database/migrations.ts";
import { openPool } from "../../src/database/pool.ts";
import { importAll } from "../../src/transfer/import.ts";
import { StreamReader } from "../../src/transfer/reader.ts";
import type { Fault } from "../../src/verify/fault.ts";
import { verify } from "../../src/verify/verify.ts";
import { itemText } from "../ingest/items.ts";
import type { TestDatabase } from "../support/database.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { digests, NEWEST, streaming, streamOf } from "../transfer/rich-database.ts";

const CLUSTER = process.env.TALLY_TEST_CITUS_URL;
if (CLUSTER === undefined) {
  console.warn(
    "SKIPPED, not tested: point TALLY_TEST_CITUS_URL at a server with citus in shared_preload_libraries",
  );
}

/** A database of the cluster's, with Citus in it and nothing else. */
async function clusterDatabase(name: string): Promise<TestDatabase> {
  const admin = openPool({ url: CLUSTER ?? "" }, { maxConnections: 1 });
  await admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await admin.unsafe(`CREATE DATABASE ${name}`);
  const url = new URL(CLUSTER ?? "");
  url.pathname = `/${name}`;
  const target = { url: url.href };
  const pools: Database[] = [];
  const pool = (maxConnections: number) => {
    const opened = openPool(target, { maxConnections });
    pools.push(opened);
    return opened;
  };
  const db = pool(10);
  await db.unsafe("CREATE EXTENSION citus");
  const drop = async () => {
    await Promise.all(pools.map((opened) => opened.close({ timeout: 0 })));
    await admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await admin.close({ timeout: 0 });
  };
  return { db, target, url: url.href, pool, drop };
}

describe.skipIf(CLUSTER === undefined)("on Citus", () => {
  let own: TestDatabase;
  let server: TestServer;
  const tokens = new Map<string, string>();
  const clouds = ["os-1", "os-2", "os-3", "os-4"];
  beforeAll(async () => {
    own = await clusterDatabase(`tally_test_${process.pid}_citus`);
    await migrateUp(own.db);
    server = await testServer({ db: own });
    for (const cloud of clouds) tokens.set(cloud, await server.credentials.ingest("openstack", cloud));
  });
  afterAll(async () => {
    await server?.stop();
    await own?.drop();
  });

  const send = async (cloud: string, items: readonly string[]): Promise<unknown> => {
    const token = tokens.get(cloud) ?? "";
    const answer = await server.request("/api/v1/events", {
      method: "POST",
      token,
      body: `[${items.join(",")}]`,
    });
    return await answer.json();
  };
  const item = (cloud: string, n: number) =>
    itemText({
      cloud: `"${cloud}"`,
      event_id: `"e-${n}"`,
      // Every third comes late.
      timestamp: `"2026-03-01T08:${String(n % 3 === 2 ? 60 - n : n).padStart(2, "0")}:00Z"`,
      event_type: n < 8 ? '"compute.instance.create.end"' : '"compute.instance.resize.end"',
      resource_id: `"vm-${n % 8}"`,
    });
  /** Whether a rebuild, which replays every history, finds every row as it is. */
  const rebuildChanges = async (): Promise<boolean> => {
    const { current_resources: before } = await digests(own.db);
    const rebuilt = await server.request("/internal/projection/rebuild", {
      method: "POST",
      token: server.credentials.internal,
    });
    expect([rebuilt.status, await rebuilt.text()]).toEqual([200, '{"rebuilt":32}']);
    return (await digests(own.db)).current_resources !== before;
  };

  test("events and rows are spread by cloud, and lie together", async () => {
    const rows = await own.db`
      SELECT logicalrelid::text AS name, partmethod::text AS by, dense_rank() OVER (ORDER BY colocationid)::int AS place
        FROM pg_dist_partition ORDER BY 1`;
    expect([...rows]).toEqual([
      { name: "current_resources", by: "h", place: 1 },
      { name: "events", by: "h", place: 1 },
    ]);
    expect(await schemaState(own.db)).toBe("current");
    expect((await server.request("/readyz")).status).toBe(200);
  });

  test("batches of several clouds at once: new, known, late, twice", async () => {
    const half = await Promise.all(
      clouds.map((cloud) =>
        send(
          cloud,
          Array.from({ length: 25 }, (_, n) => item(cloud, n)),
        ),
      ),
    );
    expect(half).toEqual(clouds.map(() => ({ accepted: 25, duplicates: 0, rejected: [] })));
    const all = await Promise.all(
      clouds.flatMap((cloud) => {
        const items = Array.from({ length: 50 }, (_, n) => item(cloud, n));
        return [send(cloud, items), send(cloud, items.toReversed())];
      }),
    );
    const accepted = all.map((answer) => Number(/"accepted":(\d+)/.exec(JSON.stringify(answer))?.[1]));
    expect(accepted.reduce((sum, n) => sum + n, 0)).toBe(4 * 25);
    const [row] = await own.db`SELECT count(*)::int AS events FROM events`;
    // One id at one instant in two clouds is two events here.
    expect(row?.events).toBe(200);
    expect(await rebuildChanges()).toBe(false);
  });

  test("the checker reads all of it, and finds what is damaged", async () => {
    const faults: Fault[] = [];
    const sound = await verify(own.db, (fault) => faults.push(fault));
    expect(faults).toEqual([]);
    expect(sound).toMatchObject({ resources: 32, events: 200, projects: 4 });
    const damage = (state: string) => own.db`
      UPDATE current_resources SET state = ${state}
      WHERE cloud = 'os-3' AND resource_type = 'instance' AND resource_id = 'vm-5'`;
    await damage("damaged");
    await verify(own.db, (fault) => faults.push(fault));
    await damage("active");
    expect(faults).toEqual([
      {
        where: "resource os-3/instance/vm-5",
        what: 'its row\'s state is "damaged", and by its history "active"',
      },
    ]);
  });

  test("the routes read them", async () => {
    const { admin } = server.credentials;
    const get = async (path: string) => {
      const answer = await server.request(path, { token: admin });
      return [path, answer.status, answer.status === 200 ? "" : await answer.text()];
    };
    const window = "from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z";
    const paths = [
      "/api/v1/events?limit=10",
      "/api/v1/events?cloud=os-2&project_id=p1&limit=10",
      "/api/v1/events?event_type=compute.instance.create.end&limit=10",
      "/api/v1/resources?limit=10",
      "/api/v1/resources?cloud=os-3&status=all&limit=10",
      "/api/v1/resources/os-1/instance/vm-1/events",
      "/api/v1/resources/os-1/instance/vm-1/lifecycle",
      "/api/v1/stats/resources?group_by=cloud,resource_type,state",
      `/api/v1/stats/events?group_by=cloud,event_type&interval=1h&${window}`,
      "/api/v1/rejected-events",
      "/metrics",
    ];
    const answers = [];
    for (const path of paths) answers.push(await get(path));
    expect(answers).toEqual(paths.map((path) => [path, 200, ""]));
  });

  test.each([
    ["events?cloud=os-2", 50],
    ["events?resource_type=instance", 200],
    ["events?platform=openstack", 200],
    ["events?platform=vmware", 0],
    ["events?cloud=os-2&source=reconciliation", 0],
    ["resources?resource_type=instance", 32],
    ["resources?platform=openstack", 32],
    ["resources?state=active", 32],
    ["resources?state=active&cloud=os-2", 8],
    ["resources?state=lost", 0],
  ])("%s are %i", async (list, count) => {
    const answer = await server.request(`/api/v1/${list}&limit=1000`, { token: server.credentials.admin });
    expect(JSON.parse(await answer.text()).items).toHaveLength(count);
  });

  test("no event is ever changed or removed, on any node", async () => {
    for (const statement of [
      "UPDATE events SET project_id = 'x'",
      "DELETE FROM events WHERE cloud = 'os-1'",
      "TRUNCATE events",
    ])
      expect(own.db.unsafe(statement)).rejects.toThrow("events are never changed or removed");
  });

  test("a stream goes out of a cluster and into one", async () => {
    const target = await clusterDatabase(`tally_test_${process.pid}_citus_in`);
    await importAll(target.db, "t", await StreamReader.open(streaming(...(await streamOf(own.db))), NEWEST));
    const { audit_log: _, ...rest } = await digests(target.db);
    expect(await digests(own.db)).toMatchObject(rest);
    await target.drop();
  });

  test("the way back: the tables are whole on one node", async () => {
    const own = await clusterDatabase(`tally_test_${process.pid}_citus_down`);
    await migrateUp(own.db);
    await migrateDown(own.db, 10);
    const spread = async () => (await own.db`SELECT count(*)::int AS n FROM pg_dist_partition`)[0]?.n;
    expect(await spread()).toBe(0);
    await migrateUp(own.db);
    expect(await spread()).toBe(2);
    await own.drop();
  });
});
