/** Batches as a whole: bounds, duplicates, digits, instants, order within a batch, size names. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestServer, testServer } from "../support/server.ts";
import { itemText, payloadText } from "./items.ts";
import { recordText } from "./record.ts";

let server: TestServer;
let token: string;
let admin: string;
beforeAll(async () => {
  server = await testServer();
  token = await server.credentials.ingest("openstack", "os-1");
  admin = server.credentials.admin;
});
afterAll(async () => {
  await server.stop();
});

async function postText(body: string): Promise<Response> {
  return await server.request("/api/v1/events", {
    method: "POST",
    token,
    headers: { "content-type": "application/json" },
    body,
  });
}

async function post(body: string): Promise<unknown> {
  const response = await postText(body);
  expect(response.status).toBe(200);
  return await response.json();
}

async function get(path: string): Promise<string> {
  const response = await server.request(path, { token: admin });
  expect(response.status).toBe(200);
  return await response.text();
}

const allAccepted = (accepted: number) => ({ accepted, duplicates: 0, rejected: [] });

describe("bounds of a batch", () => {
  test("an empty array: zeros", async () => {
    expect(await post("[]")).toEqual(allAccepted(0));
  });

  test("one event without an array", async () => {
    expect(await post(itemText())).toEqual(allAccepted(1));
  });

  test("1000 are taken", async () => {
    expect(await post(`[${Array.from({ length: 1000 }, () => itemText()).join(",")}]`)).toEqual(
      allAccepted(1000),
    );
  });

  test("1001: 413 and nothing stored", async () => {
    const before = await recordText(server.db.db);
    const response = await postText(`[${Array.from({ length: 1001 }, () => itemText()).join(",")}]`);
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ type: "urn:tally:error:payload_too_large", status: 413 });
    expect(await recordText(server.db.db)).toBe(before);
  });
});

describe("duplicates", () => {
  test("in one batch the first wins, and a differing body changes nothing", async () => {
    const first = itemText({ event_id: '"twice"', resource_id: '"dup-1"', project_id: '"first"' });
    const second = itemText({ event_id: '"twice"', resource_id: '"dup-2"', project_id: '"second"' });
    expect(await post(`[${first},${second}]`)).toEqual({ accepted: 1, duplicates: 1, rejected: [] });
    expect(await post(`[${second}]`)).toEqual({ accepted: 0, duplicates: 1, rejected: [] });
    const rows: { r: string; p: string }[] = await server.db.db`
      SELECT resource_id AS r, project_id AS p FROM events WHERE event_id = 'twice'`;
    expect(rows.map(({ r, p }) => ({ r, p }))).toEqual([{ r: "dup-1", p: "first" }]);
    const stray: unknown[] = await server.db.db`SELECT 1 FROM current_resources WHERE resource_id = 'dup-2'`;
    expect(stray).toHaveLength(0);
  });

  test("the same id at another timestamp is another event", async () => {
    const a = itemText({ event_id: '"again"', timestamp: '"2026-03-01T08:00:00Z"' });
    const b = itemText({ event_id: '"again"', timestamp: '"2026-03-01T08:00:00.000001Z"' });
    expect(await post(`[${a},${b}]`)).toEqual(allAccepted(2));
  });

  test("the same instant in another offset is the same event", async () => {
    const a = itemText({ event_id: '"offset"', timestamp: '"2026-03-01T08:00:00Z"' });
    const b = itemText({ event_id: '"offset"', timestamp: '"2026-03-01T13:30:00.0000009+05:30"' });
    expect(await post(`[${a},${b}]`)).toEqual({ accepted: 1, duplicates: 1, rejected: [] });
  });

  test("a whole batch replayed: all duplicates, every table byte-identical", async () => {
    const items = Array.from({ length: 200 }, () => itemText());
    expect(await post(`[${items.join(",")}]`)).toEqual(allAccepted(200));
    const before = await recordText(server.db.db);
    expect(await post(`[${items.join(",")}]`)).toEqual({ accepted: 0, duplicates: 200, rejected: [] });
    expect(await post(`[${items.toReversed().join(",")}]`)).toEqual({
      accepted: 0,
      duplicates: 200,
      rejected: [],
    });
    expect(await recordText(server.db.db)).toBe(before);
  });
});

describe("digits survive every path", () => {
  const size = '{"vcpus":2,"ram_gb":0.1000,"disk_gb":1e2,"flavor":"x","big":12345678901234567890,"neg":-0}';
  // What jsonb makes of it: members ordered by length, then bytes; exponents spelled out; no negative zero.
  const stored =
    '{"big": 12345678901234567890, "neg": 0, "vcpus": 2, "flavor": "x", "ram_gb": 0.1000, "disk_gb": 100}';
  const path = "/api/v1/resources/os-1/instance/digits";

  test("through ingest, projection, lifecycle and events", async () => {
    const payload = payloadText({ size, provider: '{"n":12345678901234567890}', extra: "[0.1000,1e2,-0]" });
    expect(await post(itemText({ resource_id: '"digits"', payload }))).toEqual(allAccepted(1));
    const lifecycle = await get(`${path}/lifecycle`);
    // The resource's size, the interval's, the event's, and the last payload's.
    expect(lifecycle.split(stored).length - 1).toBe(4);
    expect(lifecycle).toContain('"extra": [0.1000, 100, 0]');
    expect(lifecycle).toContain('"provider": {"n": 12345678901234567890}');
    expect(await get(`${path}/events`)).toContain(`"size": ${stored}`);
    expect(await get("/api/v1/events?resource_id=digits")).toContain(`"size": ${stored}`);
    expect(await get("/api/v1/resources?project_id=p1&limit=1000")).toContain(`"size":${stored}`);
  });

  test("in a dead letter, which is not normalized at all", async () => {
    const item = `{"event_id":"dead-digits", "x": [12345678901234567890,0.1000,1e2,-0, 1e400000]}`;
    await post(item);
    expect(await get("/api/v1/rejected-events?limit=1000")).toContain(`"raw":${item}`);
  });
});

describe("instants survive every path", () => {
  test("microseconds and offsets, from the request to the lifecycle", async () => {
    const create = itemText({ resource_id: '"micro"', timestamp: '"2026-03-01T13:30:00.123456+05:30"' });
    const off = itemText({
      resource_id: '"micro"',
      event_type: '"i.power_off"',
      timestamp: '"2026-03-01T08:00:00.123457Z"',
      payload: '{"state":"shutoff"}',
    });
    await post(`[${create},${off}]`);
    const lifecycle = JSON.parse(await get("/api/v1/resources/os-1/instance/micro/lifecycle"));
    expect(
      lifecycle.intervals.map(({ from, to }: { from: string; to: string | null }) => [from, to]),
    ).toEqual([
      ["2026-03-01T08:00:00.123456Z", "2026-03-01T08:00:00.123457Z"],
      ["2026-03-01T08:00:00.123457Z", null],
    ]);
    expect(lifecycle.resource.created_at).toBe("2026-03-01T08:00:00.123456Z");
    expect(lifecycle.resource.last_event_at).toBe("2026-03-01T08:00:00.123457Z");
  });

  test("years 0001 and 9999", async () => {
    await post(`[${itemText({ resource_id: '"old"', timestamp: '"0001-01-01T00:00:00Z"' })},
      ${itemText({ resource_id: '"late"', timestamp: '"9999-12-31T23:59:59.999999Z"' })}]`);
    const old = JSON.parse(await get("/api/v1/resources/os-1/instance/old/lifecycle"));
    expect(old.intervals[0].from).toBe("0001-01-01T00:00:00Z");
    const late = JSON.parse(await get("/api/v1/resources/os-1/instance/late/lifecycle"));
    expect(late.resource.first_event_at).toBe("9999-12-31T23:59:59.999999Z");
  });
});

test("events of one resource and one instant fold in the order they were sent, whatever their ids", async () => {
  const at = '"2026-03-02T08:00:00Z"';
  const update = (id: string, state: string) =>
    itemText({
      event_id: `"${id}"`,
      resource_id: '"ordered"',
      event_type: '"i.update"',
      timestamp: at,
      payload: `{"state":"${state}"}`,
    });
  await post(
    `[${itemText({ resource_id: '"ordered"', timestamp: at, event_id: '"zz"' })},${update("yy", "b")},${update("aa", "c")}]`,
  );
  const { resource } = JSON.parse(await get("/api/v1/resources/os-1/instance/ordered/lifecycle"));
  expect(resource.state).toBe("c");
});

test("five identifiers of 512 incompressible bytes and a state of 512 are stored and indexed", async () => {
  const long = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(256)), (b) => b.toString(16).padStart(2, "0")).join("");
  const [platform, cloud] = [long(), long()];
  const parts = {
    platform,
    cloud,
    resource_type: long(),
    resource_id: long(),
    project_id: long(),
    event_id: long().slice(0, 256),
  };
  const item = itemText({
    ...Object.fromEntries(Object.entries(parts).map(([name, value]) => [name, JSON.stringify(value)])),
    event_type: JSON.stringify(`${"a".repeat(255)}.${"b".repeat(249)}.create`.slice(0, 512)),
    payload: payloadText({ state: JSON.stringify(long()) }),
  });
  const long512 = await server.credentials.ingest(platform, cloud);
  const response = await server.request("/api/v1/events", {
    method: "POST",
    token: long512,
    headers: { "content-type": "application/json" },
    body: `[${item}]`,
  });
  expect(await response.json()).toEqual(allAccepted(1));
  const path = `/api/v1/resources/${cloud}/${parts.resource_type}/${parts.resource_id}/events`;
  expect(JSON.parse(await get(path)).items).toHaveLength(1);
});

test("lengths at their bounds: 256 and 512 bytes are in, in one byte and in many", async () => {
  const one = itemText({
    event_id: `"${"a".repeat(256)}"`,
    resource_id: `"${"ü".repeat(256)}"`,
    project_id: `"${"😀".repeat(128)}"`,
    payload: payloadText({ state: `"${"s".repeat(512)}"` }),
  });
  expect(await post(`[${one},${itemText({ event_id: `"${"ü".repeat(128)}"` })}]`)).toEqual(allAccepted(2));
});

test("of a far too long event id the first 1024 bytes are echoed, by whole characters", async () => {
  // A byte, then characters of two: the 1024th byte is the first half of one.
  const long = `a${"ü".repeat(100_000)}`;
  expect(await post(itemText({ event_id: JSON.stringify(long) }))).toEqual({
    accepted: 0,
    duplicates: 0,
    rejected: [
      {
        index: 0,
        event_id: `a${"ü".repeat(511)}`,
        reason: "schema: event_id: must be 1 to 256 bytes, got 200001",
      },
    ],
  });
});

test("a delete needs no payload, and unknown members at the top are ignored", async () => {
  const created = itemText({ resource_id: '"plain"', surprise: '{"a":[1]}' });
  const gone = (id: string, payload: string | null) =>
    itemText({
      event_id: `"${id}"`,
      resource_id: '"plain"',
      event_type: '"i.delete"',
      timestamp: '"2026-03-05T00:00:00Z"',
      payload,
    });
  expect(await post(`[${created},${gone("d1", null)},${gone("d2", "null")},${gone("d3", "{}")}]`)).toEqual(
    allAccepted(4),
  );
  const { resource, events } = JSON.parse(await get("/api/v1/resources/os-1/instance/plain/lifecycle"));
  expect(resource).toMatchObject({ state: "deleted", deleted_at: "2026-03-05T00:00:00Z", last_payload: {} });
  expect(events.map(({ payload }: { payload: unknown }) => payload)).toEqual([
    expect.objectContaining({ state: "active" }),
    null,
    null,
    {},
  ]);
  expect(JSON.stringify(events)).not.toContain("surprise");
});

test("a collector's event is stored as a collector's, whatever it claims", async () => {
  await post(itemText({ event_id: '"claims"', source: '"reconciliation"' }));
  const { items } = JSON.parse(
    await get("/api/v1/events?source=collector&limit=1000&resource_type=instance&from=2026-03-01T00:00:00Z"),
  );
  expect(items.find((item: { event_id: string }) => item.event_id === "claims")).toMatchObject({
    source: "collector",
  });
});

describe("sizes", () => {
  const volume = (id: string, size: string, provider: string | null = null) =>
    itemText({
      resource_type: '"volume"',
      resource_id: `"${id}"`,
      payload: payloadText({ state: '"available"', size, provider }),
    });

  test("an id becomes the name that the cloud's listing gives it, and what came is kept", async () => {
    await server.db.db`
      INSERT INTO size_names (cloud, resource_type, member, value, name)
      VALUES ('os-1', 'volume', 'type', '09d8', 'ssd'), ('os-2', 'volume', 'type', '7777', 'other cloud')`;
    await post(
      `[${volume("v1", '{"size_gb":10.50,"type":"09d8"}', '{"a":1.0,"size_as_reported":{"forged":1}}')},` +
        `${volume("v2", '{"size_gb":10,"type":"7777"}', '{"size_as_reported":{"own":1}}')},` +
        `${volume("v3", '{"size_gb":10,"type":"09d8"}')}]`,
    );
    const read = async (id: string) => JSON.parse(await get(`/api/v1/resources/os-1/volume/${id}/lifecycle`));
    const v1 = await read("v1");
    expect(v1.resource.size).toEqual({ size_gb: 10.5, type: "ssd" });
    expect(v1.events[0].payload).toEqual({
      state: "available",
      size: { size_gb: 10.5, type: "ssd" },
      provider: { a: 1, size_as_reported: { type: "09d8" } },
    });
    expect(await get("/api/v1/resources/os-1/volume/v1/events")).toContain('"size_gb": 10.50');
    // Nothing was replaced: what came stays, its own size_as_reported too.
    expect((await read("v2")).events[0].payload.provider).toEqual({ size_as_reported: { own: 1 } });
    expect((await read("v3")).events[0].payload.provider).toEqual({ size_as_reported: { type: "09d8" } });
  });

  test("a type that nobody registered is taken and counted", async () => {
    expect(
      await post(itemText({ resource_type: '"robot"', payload: payloadText({ size: '{"arms":6}' }) })),
    ).toEqual(allAccepted(1));
    const metrics = await (await server.request("/metrics", {})).text();
    expect(metrics).toContain(
      'tally_ingest_unvalidated_size_total{platform="openstack",resource_type="robot"} 1',
    );
  });

  test("a schema counts from the next event on", async () => {
    const gadget = () =>
      itemText({ resource_type: '"gadget"', payload: payloadText({ size: '{"teeth":1}' }) });
    expect(await post(gadget())).toEqual(allAccepted(1));
    const put = await server.request("/api/v1/resource-types/openstack/gadget", {
      method: "PUT",
      token: admin,
      headers: { "content-type": "application/json" },
      body: '{"size_schema":{"type":"object","required":["wheels"]}}',
    });
    expect(put.status).toBe(200);
    expect(await post(gadget())).toMatchObject({
      accepted: 0,
      rejected: [{ reason: "size_schema: 'wheels' is a required property" }],
    });
  });
});

test("a registered document that cannot be applied refuses its own type's items only", async () => {
  await server.db.db`
    INSERT INTO resource_types (platform, resource_type, size_schema)
    VALUES ('openstack', 'broken', '{"type":"no such type"}')`;
  const broken = itemText({ resource_type: '"broken"', payload: payloadText({ size: '{"a":1}' }) });
  expect(await post(`[${itemText()},${broken},${itemText()}]`)).toEqual({
    accepted: 2,
    duplicates: 0,
    rejected: [
      {
        index: 1,
        event_id: JSON.parse(broken).event_id,
        reason: expect.stringMatching(/^size_schema: the registered schema cannot be applied: /),
      },
    ],
  });
});

test("with the checks off, of one event under two clouds the first sent wins", async () => {
  const open = await testServer({ settings: { auth: { mode: "disabled", internalToken: null } } });
  try {
    const same = { event_id: '"same"', timestamp: '"2026-03-01T08:00:00Z"' };
    const first = itemText({ ...same, cloud: '"zz"', resource_id: '"first"' });
    const second = itemText({ ...same, cloud: '"aa"', resource_id: '"second"' });
    const response = await open.request("/api/v1/events", { method: "POST", body: `[${first},${second}]` });
    expect(await response.json()).toEqual({ accepted: 1, duplicates: 1, rejected: [] });
    const rows: { r: string }[] = await open.db.db`SELECT resource_id AS r FROM events`;
    expect(rows.map(({ r }) => r)).toEqual(["first"]);
  } finally {
    await open.stop();
  }
});

test("without a registered schema, TALLY_INGEST_REQUIRE_SIZE_SCHEMA refuses", async () => {
  const strict = await testServer({ settings: { requireSizeSchema: true } });
  try {
    const collector = await strict.credentials.ingest("openstack", "os-1");
    const response = await strict.request("/api/v1/events", {
      method: "POST",
      token: collector,
      headers: { "content-type": "application/json" },
      body: itemText({ resource_type: '"robot"', payload: payloadText({ size: '{"arms":6}' }) }),
    });
    expect(await response.json()).toMatchObject({
      accepted: 0,
      rejected: [{ reason: "size_schema: no size schema is registered for (openstack, robot)" }],
    });
  } finally {
    await strict.stop();
  }
});

test("each batch leaves one audit row that counts it", async () => {
  const [before]: { n: number }[] = await server.db.db`SELECT count(*)::int AS n FROM audit_log`;
  await post(`[${itemText({ event_id: '"au-1"' })},${itemText({ event_id: '"au-1"' })},7]`);
  const rows: { details: string; actor: string; object_id: string }[] = await server.db.db`
    SELECT details::text AS details, actor, object_id FROM audit_log ORDER BY id DESC LIMIT 1`;
  const [after]: { n: number }[] = await server.db.db`SELECT count(*)::int AS n FROM audit_log`;
  expect((after?.n ?? 0) - (before?.n ?? 0)).toBe(1);
  expect(JSON.parse(rows[0]?.details ?? "null")).toEqual({
    source: "collector",
    accepted: 1,
    duplicates: 1,
    rejected: 1,
  });
});
