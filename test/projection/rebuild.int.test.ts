/** POST /internal/projection/rebuild: damage is repaired, what is sound stays, and the audit log tells of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { itemText } from "../ingest/items.ts";
import { ingestItems, projectionRows } from "../ingest/record.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(async () => {
  await server.stop();
});

/** Three instances and a volume in os-1, one instance in os-2, each with two events. */
let sound: string[] = [];
let round = 0;
beforeEach(async () => {
  round += 1;
  if (round > 1) return;
  for (const cloud of ["os-1", "os-2"]) {
    const named = (id: string, type: string) => ({
      cloud: `"${cloud}"`,
      resource_id: `"${id}"`,
      resource_type: `"${type}"`,
    });
    const resources = cloud === "os-1" ? ["a", "b", "c"] : ["a"];
    const items = resources.flatMap((id) => [
      itemText(named(id, "instance")),
      itemText({
        ...named(id, "instance"),
        event_type: '"i.off"',
        timestamp: '"2026-03-02T00:00:00Z"',
        payload: '{"state":"shutoff"}',
      }),
    ]);
    if (cloud === "os-1")
      items.push(itemText({ ...named("v", "robot"), payload: '{"state":"available","size":{"arms":2}}' }));
    await ingestItems(server.db.db, items, cloud);
  }
  sound = await projectionRows(server.db.db);
});

async function rebuild(body?: string): Promise<{ status: number; answer: unknown }> {
  const response = await server.request("/internal/projection/rebuild", {
    method: "POST",
    token: server.credentials.internal,
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, answer: await response.json() };
}

async function lastAudit(): Promise<unknown> {
  const [row]: { row: string }[] = await server.db.db`
    SELECT json_build_object('actor', actor, 'action', action, 'object_type', object_type, 'object_id', object_id,
                             'details', details)::text AS row FROM audit_log ORDER BY id DESC LIMIT 1`;
  return JSON.parse(row?.row ?? "null");
}

test("without a body every resource is replayed, and sound rows stay as they are", async () => {
  expect(await rebuild()).toEqual({ status: 200, answer: { rebuilt: 5 } });
  expect(await projectionRows(server.db.db)).toEqual(sound);
  expect(await lastAudit()).toEqual({
    actor: "internal",
    action: "projection.rebuild",
    object_type: "projection",
    object_id: "",
    details: { rebuilt: 5, removed: 0, completed: true },
  });
});

describe("filters", () => {
  test.each([
    ['{"cloud":"os-1"}', 4],
    ['{"cloud":"os-2"}', 1],
    ['{"resource_type":"robot"}', 1],
    ['{"cloud":"os-2","resource_type":"robot"}', 0],
    ["{}", 5],
  ])("%s replays %d", async (body, rebuilt) => {
    expect(await rebuild(body)).toEqual({ status: 200, answer: { rebuilt } });
  });

  test("leave what they don't name alone, damaged or not", async () => {
    await server.db.db`UPDATE current_resources SET state = 'damaged' WHERE resource_id = 'a'`;
    await rebuild('{"cloud":"os-2"}');
    const rows: { cloud: string; state: string }[] = await server.db.db`
      SELECT cloud, state FROM current_resources WHERE resource_id = 'a' ORDER BY cloud`;
    expect(rows.map(({ cloud, state }) => [cloud, state])).toEqual([
      ["os-1", "damaged"],
      ["os-2", "shutoff"],
    ]);
    await rebuild();
    expect(await projectionRows(server.db.db)).toEqual(sound);
  });
});

describe("damage", () => {
  test("wrong members are put right", async () => {
    await server.db.db`
      UPDATE current_resources SET state = 'x', size = '{}', project_id = 'y', platform = 'z', created_at = NULL,
        deleted_at = now(), first_event_at = now(), last_event_id = 'w', last_event_type = 'v.w'`;
    await rebuild();
    expect(await projectionRows(server.db.db)).toEqual(sound);
  });

  test("a missing row comes back", async () => {
    await server.db.db`DELETE FROM current_resources WHERE resource_type = 'instance'`;
    expect(await rebuild()).toEqual({ status: 200, answer: { rebuilt: 5 } });
    expect(await projectionRows(server.db.db)).toEqual(sound);
  });

  test("a row without events goes, before, between and behind the others", async () => {
    await server.db.db`
      INSERT INTO current_resources (first_event_at, last_event_at, last_received_at, cloud, resource_type, resource_id,
                                     platform, project_id, state, last_event_id, last_event_type, size)
      SELECT now(), now(), now(), c, 'instance', 'ghost', 'openstack', 'p', 's', 'e', 't.u', '{}'
      FROM unnest(ARRAY['aa', 'os-1', 'zz']) AS c`;
    await rebuild();
    expect(await projectionRows(server.db.db)).toEqual(sound);
    expect(await lastAudit()).toMatchObject({ details: { removed: 3 } });
  });
});

describe("ingest and rebuild meet at a row that no event stands behind", () => {
  const ghost = (id: string) => server.db.db`
    INSERT INTO current_resources (first_event_at, last_event_at, last_received_at, cloud, resource_type, resource_id,
                                   platform, project_id, state, last_event_id, last_event_type, size)
    VALUES (now(), now(), now(), 'os-1', 'instance', ${id}, 'openstack', 'p', 's', 'e', 't.u', '{}')`;
  const states = async (id: string) => {
    const rows: { state: string }[] = await server.db.db`
      SELECT state FROM current_resources WHERE cloud = 'os-1' AND resource_id = ${id}`;
    return rows.map(({ state }) => state);
  };
  /** Waits until another connection of this database waits for a lock. */
  const somebodyWaits = async () => {
    for (let waiting = 0; waiting === 0; await Bun.sleep(10)) {
      const rows: unknown[] = await server.db.db`
        SELECT 1 AS one FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()`;
      waiting = rows.length;
    }
  };

  test("the rebuild waits for the ingest: the row stays", async () => {
    await ghost("ghost-1");
    const locked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const blocker = server.db.db.begin(async (tx) => {
      await tx`LOCK TABLE audit_log IN SHARE MODE`;
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const item = itemText({ resource_id: '"ghost-1"', timestamp: '"2026-12-31T00:00:00Z"' });
    const ingest = ingestItems(server.db.db, [item]);
    await somebodyWaits();
    const rebuilding = rebuild('{"cloud":"os-1","resource_type":"instance"}');
    await Bun.sleep(200);
    release.resolve();
    await blocker;
    expect((await ingest).accepted).toBe(1);
    expect((await rebuilding).status).toBe(200);
    expect(await states("ghost-1")).toEqual(["active"]);
  });

  test("the ingest waits for the removal: the row comes back", async () => {
    await ghost("ghost-2");
    const removed = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const remover = server.db.db.begin(async (tx) => {
      await tx`DELETE FROM current_resources WHERE resource_id = 'ghost-2'`;
      removed.resolve();
      await release.promise;
    });
    await removed.promise;
    const ingest = ingestItems(server.db.db, [itemText({ resource_id: '"ghost-2"' })]);
    await somebodyWaits();
    release.resolve();
    await remover;
    expect((await ingest).accepted).toBe(1);
    expect(await states("ghost-2")).toEqual(["active"]);
  });
});

test("one history longer than a page of events is folded to its end", async () => {
  // 45,001 events: a create, then on and off in turn, a second apart; two pages and a bit.
  await server.db.db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-01-01T00:00:00Z' + n * interval '1 second', now(), 'long-' || n,
           CASE n WHEN 0 THEN 'i.create' ELSE 'i.power' END, 'openstack', 'os-3', 'instance', 'long', 'p' || n % 3,
           'collector', jsonb_build_object('state', 's' || n, 'size', jsonb_build_object('n', n))
    FROM generate_series(0, 45000) AS n`;
  expect(await rebuild('{"cloud":"os-3"}')).toEqual({ status: 200, answer: { rebuilt: 1 } });
  const [row]: { row: string }[] = await server.db.db`
    SELECT json_build_object('state', state, 'size', size, 'project', project_id, 'last', last_event_id,
                             'created', extract(epoch FROM created_at), 'newest', extract(epoch FROM last_event_at))::text AS row
    FROM current_resources WHERE cloud = 'os-3'`;
  // 2026-01-01T00:00:00Z is 20,454 days after the epoch; 45,000 = 3 × 15,000.
  expect(JSON.parse(row?.row ?? "null")).toEqual({
    state: "s45000",
    size: { n: 45_000 },
    project: "p0",
    last: "long-45000",
    created: 20_454 * 86_400,
    newest: 20_454 * 86_400 + 45_000,
  });
});

describe("refusals", () => {
  test.each([
    ['{"clouds":"os-1"}', "body.clouds"],
    ['{"cloud":7}', "body.cloud"],
    ['{"cloud":""}', "body.cloud"],
    ["[]", "body"],
  ])("%s", async (body, loc) => {
    const { status, answer } = await rebuild(body);
    expect(status).toBe(400);
    expect(answer).toMatchObject({ type: "urn:tally:error:validation", errors: [{ loc }] });
  });

  test("without the internal token", async () => {
    for (const token of [
      undefined,
      server.credentials.admin,
      await server.credentials.ingest("openstack", "os-1"),
    ]) {
      const response = await server.request("/internal/projection/rebuild", {
        method: "POST",
        ...(token === undefined ? {} : { token }),
      });
      expect(response.status).toBe(401);
    }
  });
});
