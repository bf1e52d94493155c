/** Lists that are read from the places that their filters allow hold what they always held, however many places. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { migrateDown, migrateUp } from "../../src/database/migrations.ts";
import { emptyDatabase, type TestDatabase } from "../support/database.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { column, readPage, send } from "./calls.ts";

/** Every id of a list, walked through in pages of that many. */
async function walked(server: TestServer, path: string, member: string, limit: number): Promise<unknown[]> {
  const found: unknown[] = [];
  let cursor: string | null = null;
  do {
    const place: string = cursor === null ? "" : `&cursor=${cursor}`;
    const page = await readPage(server, `${path}&limit=${limit}${place}`);
    found.push(...page.items.map((item) => item[member]));
    cursor = page.next_cursor;
  } while (cursor !== null);
  return found;
}

// Few are read one by one, more than thirty by going through all, more than 250 aren't even listed.
describe.each([3, 40, 260])("with %i clouds", (clouds) => {
  let server: TestServer;
  const nameOf = (n: number) => `c${String(n).padStart(3, "0")}`;
  const numbers = Array.from({ length: clouds }, (_, n) => n);

  beforeAll(async () => {
    server = await testServer();
    // Two events a cloud: a disk's at minute n, and a port's at minute n from the end.
    await server.db.db`
      INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                          project_id, source)
      SELECT timestamptz '2026-03-01Z' + minute * interval '1 minute', now(), type || n, type || '.create',
             CASE n % 2 WHEN 0 THEN 'even' ELSE 'odd' END, 'c' || lpad(n::text, 3, '0'), type, 'r', 'p1', 'collector'
        FROM generate_series(0, ${clouds - 1}::int) n
       CROSS JOIN LATERAL (VALUES ('disk', n), ('port', ${clouds}::int - n)) two(type, minute)`;
    await server.db.db`
      INSERT INTO current_resources (created_at, first_event_at, last_event_at, last_received_at, cloud, resource_type,
                                     resource_id, platform, project_id, state, last_event_id, last_event_type, size)
      SELECT timestamp, timestamp, timestamp, now(), cloud, resource_type, resource_id, platform, project_id,
             CASE resource_type WHEN 'disk' THEN 'in-use' ELSE 'up' END, event_id, event_type, '{}' FROM events`;
  });
  afterAll(() => server.stop());

  const disks = numbers.map((n) => `disk${n}`);
  const ports = numbers.map((n) => `port${n}`).reverse();
  const ofParity = <T>(list: readonly T[], parity: number, from = 0) =>
    list.filter((_, at) => Math.abs(from - at) % 2 === parity);

  test("a type's events come from every cloud, by their time", async () => {
    for (const limit of [1, 7, 1000]) {
      if (clouds > 100 && limit === 1) continue;
      expect(await walked(server, "/api/v1/events?resource_type=disk", "event_id", limit)).toEqual(disks);
      expect(await walked(server, "/api/v1/events?resource_type=port", "event_id", limit)).toEqual(ports);
    }
  });

  test("a platform's events of a type come from its clouds alone", async () => {
    const last = clouds - 1;
    expect(await walked(server, "/api/v1/events?platform=odd&resource_type=disk", "event_id", 9)).toEqual(
      ofParity(disks, 1),
    );
    expect(await walked(server, "/api/v1/events?platform=even&resource_type=port", "event_id", 9)).toEqual(
      ofParity(ports, 0, last),
    );
    expect(await walked(server, "/api/v1/events?platform=both&resource_type=port", "event_id", 9)).toEqual(
      [],
    );
  });

  test("a cloud's events are those of all its types", async () => {
    // Disk 1 at minute 1, port 1 a minute before the end.
    expect(await walked(server, "/api/v1/events?cloud=c001", "event_id", 1)).toEqual(["disk1", "port1"]);
    expect(await walked(server, "/api/v1/events?cloud=c001&resource_type=tape", "event_id", 1)).toEqual([]);
    expect(await walked(server, "/api/v1/events?cloud=c999", "event_id", 1)).toEqual([]);
  });

  test("resources by platform, type and state come from every cloud, by their key", async () => {
    const names = numbers.map(nameOf);
    expect(await walked(server, "/api/v1/resources?resource_type=disk", "cloud", 9)).toEqual(names);
    expect(await walked(server, "/api/v1/resources?state=in-use", "cloud", 9)).toEqual(names);
    expect(await walked(server, "/api/v1/resources?platform=odd&state=up", "cloud", 9)).toEqual(
      ofParity(names, 1),
    );
    expect(await walked(server, "/api/v1/resources?resource_type=disk&state=up", "cloud", 9)).toEqual([]);
    expect(await walked(server, "/api/v1/resources?cloud=c002&state=up", "cloud", 9)).toEqual(["c002"]);
    expect(await walked(server, "/api/v1/resources?cloud=c002&state=lost", "cloud", 9)).toEqual([]);
  });

  test("what comes from a new place is there at once", async () => {
    const at = "2026-03-20T00:00:00Z";
    const payload = '{"state":"odd one"}';
    await send(server, [{ id: "new", at, cloud: "zz", resourceType: "lamp", resource: "l", payload }]);
    for (const filter of ["cloud=zz", "resource_type=lamp", "cloud=zz&resource_type=lamp"]) {
      expect(await column(server, `/api/v1/events?${filter}`, "event_id"), filter).toEqual(["new"]);
      expect(await column(server, `/api/v1/resources?${filter}`, "resource_id"), filter).toEqual(["l"]);
    }
    expect(await column(server, "/api/v1/resources?state=odd%20one", "resource_id")).toEqual(["l"]);
  });
});

describe("where a state is", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await testServer();
  });
  afterAll(() => server.stop());
  const inState = (state: string, more = "") =>
    column(server, `/api/v1/resources?state=${state}${more}`, "resource_id");

  test("follows each change, a death and a return", async () => {
    const event = (n: number, type: string, payload: string | null) => ({
      id: `s${n}`,
      at: `2026-03-01T00:00:0${n}Z`,
      type,
      resource: "vm",
      payload,
    });
    await send(server, [event(1, "x.create", '{"state":"building","size":{}}')]);
    expect([await inState("building"), await inState("running")]).toEqual([["vm"], []]);
    await send(server, [event(2, "x.update", '{"state":"running"}')]);
    expect([await inState("building"), await inState("running")]).toEqual([[], ["vm"]]);
    await send(server, [event(3, "x.delete", null)]);
    expect([await inState("running"), await inState("deleted", "&status=all")]).toEqual([[], ["vm"]]);
    await send(server, [event(4, "x.create", '{"state":"building","size":{}}')]);
    expect([await inState("building"), await inState("deleted", "&status=all")]).toEqual([["vm"], []]);
    // What lives may say of itself that it is deleted.
    await send(server, [event(5, "x.update", '{"state":"deleted"}')]);
    expect([await inState("deleted"), await inState("deleted", "&status=all")]).toEqual([["vm"], ["vm"]]);
  });

  test("is known of rows that were written in any way, and of those that were there before", async () => {
    const own = await emptyDatabase();
    const states = async () => {
      const rows: { state: string; resource_type: string }[] = await own.db`
        SELECT state, resource_type FROM living_states ORDER BY 1, 2`;
      return rows.map(({ state, resource_type }) => `${state} ${resource_type}`);
    };
    await migrateUp(own.db);
    await own.db`
      INSERT INTO current_resources (deleted_at, first_event_at, last_event_at, last_received_at, cloud, resource_type,
                                     resource_id, platform, project_id, state, last_event_id, last_event_type, size)
      SELECT CASE n WHEN 9 THEN now() END, now(), now(), now(), 'c', 't' || n % 2, n::text, 'p', 'p1',
             CASE n WHEN 9 THEN 'deleted' ELSE 's' || n % 3 END, 'e' || n, 'x', '{}' FROM generate_series(1, 9) n`;
    expect(await states()).toEqual(["s0 t0", "s0 t1", "s1 t0", "s1 t1", "s2 t0", "s2 t1"]);
    await own.db`UPDATE current_resources SET state = 'new' WHERE resource_id IN ('1', '3')`;
    expect(await states()).toEqual(["new t1", "s0 t0", "s0 t1", "s1 t0", "s1 t1", "s2 t0", "s2 t1"]);
    await migrateDown(own.db, 12);
    await migrateUp(own.db);
    // Nobody is in s0 of t1 any more: 3 is new, and 9 is dead.
    expect(await states()).toEqual(["new t1", "s0 t0", "s1 t0", "s1 t1", "s2 t0", "s2 t1"]);
    await own.drop();
  });

  test("is told once by two transactions that see it first", async () => {
    const own: TestDatabase = server.db;
    const insert = (db: TestDatabase["db"], id: string) => db`
      INSERT INTO current_resources (first_event_at, last_event_at, last_received_at, cloud, resource_type, resource_id,
                                     platform, project_id, state, last_event_id, last_event_type, size)
      VALUES (now(), now(), now(), 'eu1', 'twin', ${id}, 'openstack', 'p1', 'first', ${id}, 'x', '{}')`;
    const one = own.pool(1);
    const other = own.pool(1);
    const begun = Promise.withResolvers<void>();
    const first = one.begin(async (tx) => {
      await insert(tx, "a");
      begun.resolve();
      await Bun.sleep(200);
    });
    await begun.promise;
    await Promise.all([first, insert(other, "b")]);
    expect(await inState("first")).toEqual(["a", "b"]);
  });

  test("is added by two senders in any order, and neither waits for the other in a circle", async () => {
    const tokens = [
      await server.credentials.ingest("openstack", "eu1"),
      await server.credentials.ingest("openstack", "eu1"),
    ];
    const event = (id: string, at: string, resource: string, state: string) => ({
      ...{ event_id: id, timestamp: at, event_type: "x.update", platform: "openstack", cloud: "eu1" },
      ...{ resource_type: "thing", resource_id: resource, project_id: "p1", payload: { state, size: {} } },
    });
    const numbers = Array.from({ length: 200 }, (_, n) => n);
    const post = async (sender: number, round: number) => {
      const at = `2026-04-01T00:00:${String(round).padStart(2, "0")}Z`;
      const [fresh, known] = sender === 0 ? ["x", "y"] : ["y", "x"];
      // New resources are in the state that the other sender's known ones come to, and the other way round.
      const items = numbers.flatMap((n) => [
        event(`f${sender}-${round}-${n}`, at, `f${sender}-${round}-${n}`, `${fresh}${round}`),
        event(`k${sender}-${round}-${n}`, at, `k${sender}-${n}`, `${known}${round}`),
      ]);
      const body = JSON.stringify(items);
      const answer = await server.request("/api/v1/events", {
        method: "POST",
        token: tokens[sender] ?? "",
        body,
      });
      expect(await answer.text()).toBe('{"accepted":400,"duplicates":0,"rejected":[]}');
    };
    for (let round = 0; round < 10; round++) await Promise.all([post(0, round), post(1, round)]);
    // A server process tells its counts when it has been idle for a second.
    await Bun.sleep(1_500);
    const [counted]: { deadlocks: number }[] = await server.db.db`
      SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()`;
    expect(counted?.deadlocks).toBe(0);
    expect(await column(server, "/api/v1/resources?state=x9&limit=1000", "resource_id")).toHaveLength(400);
  }, 30_000);

  test("is kept whatever the session's search path is", async () => {
    const [path] = await server.db.db`SELECT current_schema() AS schema`;
    await server.db.db.begin(async (tx) => {
      await tx`SET LOCAL search_path = pg_catalog`;
      await tx.unsafe(
        `UPDATE ${path?.schema}.current_resources SET state = 'by hand' WHERE resource_id = 'a'`,
      );
    });
    expect(await inState("by%20hand")).toEqual(["a"]);
  });
});
