/** Refused items, once more through the pipeline. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readPage } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

let server: TestServer;
let collector: string;
beforeAll(async () => {
  server = await testServer();
  collector = await server.credentials.ingest("openstack", "eu1");
});
afterAll(() => server.stop());

/** Each test has a resource type of its own, which admits nothing until the test says otherwise. */
let type: string;
let made = 0;
beforeEach(async () => {
  type = `type-${++made}`;
  await server.db.db`DELETE FROM rejected_events`;
  await putSchema({ required: ["n"] });
});

async function putSchema(schema: object): Promise<void> {
  const answer = await server.request(`/api/v1/resource-types/openstack/${type}`, {
    method: "PUT",
    token: server.credentials.admin,
    body: JSON.stringify({ size_schema: schema }),
  });
  expect(answer.status).toBe(200);
}

/** An item that the schema refuses: its size has no `n`. */
function item(id: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    event_id: `${type}-${id}`,
    timestamp: "2026-03-01T00:00:00Z",
    event_type: "thing.create",
    platform: "openstack",
    cloud: "eu1",
    resource_type: type,
    resource_id: id,
    project_id: "p1",
    payload: { state: "on", size: { m: 1 } },
    ...changes,
  };
}

async function send(items: readonly unknown[], token = collector) {
  const answer = await server.request("/api/v1/events", {
    method: "POST",
    token,
    body: JSON.stringify(items),
  });
  const outcome: { accepted: number; duplicates: number; rejected: { reason: string }[] } = JSON.parse(
    await answer.text(),
  );
  return outcome;
}

async function post(path: string) {
  const answer = await server.request(`/api/v1/rejected-events${path}`, {
    method: "POST",
    token: server.credentials.admin,
  });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}

async function letters(query = ""): Promise<{ id: string; reason: string; raw: unknown }[]> {
  const page = await readPage(server, `/api/v1/rejected-events${query}`);
  return page.items.map(({ id, reason, raw }) => ({ id: String(id), reason: String(reason), raw }));
}

async function onlyLetter(): Promise<string> {
  const [first, ...others] = await letters();
  expect(others).toEqual([]);
  return first?.id ?? "";
}

async function storedIds(): Promise<unknown[]> {
  const { items } = await readPage(server, `/api/v1/events?resource_type=${type}`);
  return items.map(({ event_id }) => event_id);
}

/** What the metrics count as stored of the test's type. */
async function countedAsStored(): Promise<number> {
  const text = await server.metrics.registry.getSingleMetricAsString("tally_events_ingested_total");
  const lines = text.split("\n").filter((line) => line.includes(`resource_type="${type}"`));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** Has the database fail at that point. */
async function breakAt(point: string, condition = "true"): Promise<void> {
  await server.db.db.unsafe(`
    CREATE FUNCTION test_break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF ${condition} THEN RAISE EXCEPTION 'broken' USING ERRCODE = 'XX000'; END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER test_break ${point} FOR EACH STATEMENT EXECUTE FUNCTION test_break()`);
}

async function mend(): Promise<void> {
  await server.db.db.unsafe("DROP FUNCTION test_break CASCADE");
}

async function audited(): Promise<{ actor: string; object_id: string; details: Record<string, unknown> }[]> {
  return await server.db.db`
    SELECT actor, object_id, details FROM audit_log WHERE action = 'rejected_events.retry' ORDER BY id`;
}

const MISSING = "size_schema: 'n' is a required property";

describe("one letter's retry", () => {
  test("stores what is no longer refused: resolved, out of the list, in the record and the projection", async () => {
    await send([item("a")]);
    const id = await onlyLetter();
    await putSchema({ required: ["m"] });
    const before = (await audited()).length;
    const { status, body } = await post(`/${id}/retry`);
    expect({ status, body }).toMatchObject({ status: 200, body: { id, outcome: "stored", reason: null } });
    expect(Date.parse(body.resolved_at)).toBeGreaterThan(Date.now() - 60_000);

    expect(await letters()).toEqual([]);
    expect((await letters("?status=resolved")).map((letter) => letter.id)).toEqual([id]);
    expect((await letters("?status=all")).map((letter) => letter.id)).toEqual([id]);
    expect(await storedIds()).toEqual([`${type}-a`]);
    const { items } = await readPage(server, `/api/v1/resources?resource_type=${type}`);
    expect(items).toMatchObject([{ resource_id: "a", state: "on", size: { m: 1 } }]);
    const [source] = await readPage(server, `/api/v1/events?resource_type=${type}`).then(
      (page) => page.items,
    );
    expect(source?.source).toBe("collector");

    const entries = (await audited()).slice(before);
    const [token]: { id: string }[] = await server.db.db`
      SELECT id::text AS id FROM api_tokens WHERE role = 'admin'`;
    expect(entries).toEqual([
      {
        actor: token?.id ?? "",
        object_id: id,
        details: {
          source: "collector",
          credential: { platform: "openstack", cloud: "eu1" },
          accepted: 1,
          resolved: [id],
          refused: [],
        },
      },
    ]);
  });

  test("of an item that is refused again gives it its new reason, and makes no second letter", async () => {
    await send([item("a")]);
    const id = await onlyLetter();
    await putSchema({ required: ["k"] });
    const { status, body } = await post(`/${id}/retry`);
    const reason = "size_schema: 'k' is a required property";
    expect({ status, body }).toEqual({
      status: 200,
      body: { id, outcome: "refused", reason, resolved_at: null },
    });
    expect(await letters("?status=all")).toEqual([{ id, reason, raw: item("a") }]);
    expect(await storedIds()).toEqual([]);
  });

  test("of an item that was stored meanwhile resolves it, and changes nothing", async () => {
    await send([item("a")]);
    const id = await onlyLetter();
    await putSchema({});
    expect(await send([item("a", { payload: { state: "off", size: {} } })])).toMatchObject({ accepted: 1 });
    expect((await post(`/${id}/retry`)).body).toMatchObject({ outcome: "duplicate", reason: null });
    expect(await letters()).toEqual([]);
    const { items } = await readPage(server, `/api/v1/resources?resource_type=${type}`);
    expect(items).toMatchObject([{ state: "off", size: {} }]);
  });

  test("may be asked for again: it stays resolved when it was", async () => {
    await send([item("a")]);
    const id = await onlyLetter();
    await putSchema({});
    const first = (await post(`/${id}/retry`)).body;
    const entries = (await audited()).length;
    const again = await post(`/${id}/retry`);
    expect(again).toEqual({
      status: 200,
      body: { id, outcome: "already_resolved", reason: null, resolved_at: first.resolved_at },
    });
    expect((await audited()).length).toBe(entries);
  });

  test("holds the item to its credential's pair, and keeps it when that refuses it", async () => {
    // Refused by the schema stage, so that its cloud was never looked at.
    await send([item("a", { cloud: "eu2", payload: null })]);
    const id = await onlyLetter();
    const valid = JSON.stringify(item("a", { cloud: "eu2" }));
    await server.db.db`UPDATE rejected_events SET raw = ${valid} WHERE id = ${id}::text::uuid`;
    expect((await post(`/${id}/retry`)).body).toMatchObject({ outcome: "refused", reason: "scope" });
    expect((await letters("?reason=scope")).map((letter) => letter.id)).toEqual([id]);
    expect(await letters("?reason=schema")).toEqual([]);
    const [violation]: { details: object }[] = await server.db.db`
      SELECT details FROM audit_log WHERE action = 'events.scope_violation' ORDER BY id DESC LIMIT 1`;
    expect(violation?.details).toMatchObject({
      credential: { platform: "openstack", cloud: "eu1" },
      claimed: { platform: "openstack", cloud: "eu2" },
    });
  });

  test("works for a credential that is revoked by now", async () => {
    const token = await server.credentials.ingest("openstack", "eu3");
    await send([item("a", { cloud: "eu3" })], token);
    await server.db.db`UPDATE ingest_credentials SET revoked_at = now() WHERE cloud = 'eu3'`;
    const id = await onlyLetter();
    await putSchema({});
    expect((await post(`/${id}/retry`)).body.outcome).toBe("stored");
  });

  test("keeps the source that it was stored with", async () => {
    await send([item("a")]);
    const id = await onlyLetter();
    await server.db.db`
      UPDATE rejected_events SET source = 'reconciliation', credential_id = NULL, platform = NULL, cloud = NULL
       WHERE id = ${id}::text::uuid`;
    await putSchema({});
    expect((await post(`/${id}/retry`)).body.outcome).toBe("stored");
    const { items } = await readPage(server, `/api/v1/events?resource_type=${type}`);
    expect(items).toMatchObject([{ source: "reconciliation" }]);
  });

  test("of an item that held NULs stores it without them", async () => {
    await send([item("a", { project_id: "p\u00001" })]);
    const id = await onlyLetter();
    await putSchema({});
    expect((await post(`/${id}/retry`)).body.outcome).toBe("stored");
    const { items } = await readPage(server, `/api/v1/events?resource_type=${type}`);
    expect(items).toMatchObject([{ project_id: "p1" }]);
  });

  test("of digits loses none", async () => {
    const digits = JSON.stringify(item("a")).replace('"m":1', '"m":12345678901234567890.10');
    await server.request("/api/v1/events", { method: "POST", token: collector, body: digits });
    const id = await onlyLetter();
    await putSchema({});
    expect((await post(`/${id}/retry`)).body.outcome).toBe("stored");
    const answer = await server.request(`/api/v1/events?resource_type=${type}`, {
      token: server.credentials.admin,
    });
    expect(await answer.text()).toContain('"m": 12345678901234567890.10}');
  });

  test("of an item too large to keep is 409, of an unknown one 404, of no id 400", async () => {
    await send([item("a", { payload: { state: "on", size: {}, note: "x".repeat(70_000) } })]);
    const id = await onlyLetter();
    await putSchema({});
    expect(await post(`/${id}/retry`)).toMatchObject({
      status: 409,
      body: { type: "urn:tally:error:conflict" },
    });
    expect((await post("/00000000-0000-4000-8000-00000000dead/retry")).status).toBe(404);
    expect(await post("/nonsense/retry")).toMatchObject({
      status: 400,
      body: { errors: [{ loc: "path.id" }] },
    });
    expect(await post("/retry?limit=10")).toMatchObject({
      status: 200,
      body: { retried: 0, resolved: 0, refused: 0, remaining: 0, next_cursor: null },
    });
  });

  test("a letter that looks like one too large to keep is an item like any other", async () => {
    await send([{ not_stored: { bytes: 70000 } }]);
    const id = await onlyLetter();
    expect((await post(`/${id}/retry`)).body.outcome).toBe("refused");
  });

  test("at the same time from everywhere stores it once", async () => {
    await send([item("a")]);
    const id = await onlyLetter();
    await putSchema({});
    const entries = (await audited()).length;
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => post(n % 2 === 0 ? `/${id}/retry` : "/retry")),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
    const stored = answers.filter(({ body }) => body.outcome === "stored" || body.resolved === 1);
    expect(stored).toHaveLength(1);
    expect(await storedIds()).toEqual([`${type}-a`]);
    expect((await audited()).length).toBe(entries + 1);
  });

  test("while its schema changes to and fro: what is resolved is stored, what is open is not, and nothing fails", async () => {
    const all = Array.from({ length: 40 }, (_, n) => String(n));
    await send(all.map((name) => item(name)));
    const ids = (await letters()).map(({ id }) => id);
    expect(ids).toHaveLength(40);
    const changes = Array.from({ length: 12 }, (_, n) =>
      putSchema(n % 2 === 0 ? { required: ["m"] } : { required: ["k"] }),
    );
    const retries = [
      ...ids.slice(0, 20).map((id) => post(`/${id}/retry`)),
      ...Array.from({ length: 6 }, () => post("/retry?reason=size_schema&limit=25")),
    ];
    const answers = await Promise.all(retries);
    await Promise.all(changes);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const open = (await letters()).map(({ raw }) => (raw as { event_id: string }).event_id);
    const resolved = (await letters("?status=resolved")).map(
      ({ raw }) => (raw as { event_id: string }).event_id,
    );
    expect(open.length + resolved.length).toBe(40);
    expect((await storedIds()).toSorted()).toEqual(resolved.toSorted());
    await putSchema({});
    expect((await post("/retry")).body).toMatchObject({ retried: open.length, resolved: open.length });
    expect((await storedIds()).toSorted()).toEqual(all.map((name) => `${type}-${name}`).toSorted());
  });

  test.each(["BEFORE UPDATE ON rejected_events", "BEFORE INSERT ON audit_log", "AFTER INSERT ON events"])(
    "that fails %s leaves the letter open and nothing stored",
    async (point) => {
      await send([item("a")]);
      const id = await onlyLetter();
      await putSchema({});
      await breakAt(point);
      try {
        expect((await post(`/${id}/retry`)).status).toBe(500);
      } finally {
        await mend();
      }
      expect((await letters()).map((letter) => letter.id)).toEqual([id]);
      expect(await storedIds()).toEqual([]);
      expect((await post(`/${id}/retry`)).body.outcome).toBe("stored");
    },
  );
});

describe("the retry of a thousand", () => {
  /** In the order in which they are refused. */
  const THOUSAND = Array.from({ length: 1000 }, (_, n) => String(n));
  const eventIds = (resources: readonly string[]) => resources.map((name) => `${type}-${name}`).toSorted();
  const lettersOf = async (status: string) =>
    (await letters(`?limit=1000&status=${status}`)).map(({ raw }) => (raw as { event_id: string }).event_id);
  const resources = async () =>
    (await readPage(server, `/api/v1/resources?limit=1000&resource_type=${type}`)).items.length;
  const stored = async () => {
    const { items } = await readPage(server, `/api/v1/events?limit=1000&resource_type=${type}`);
    return items.map(({ event_id }) => event_id);
  };
  const auditRow = (details: object) => ({
    object_id: "",
    details: { source: "collector", credential: { platform: "openstack", cloud: "eu1" }, ...details },
  });

  test("after a schema is mended takes them in, 500 in one transaction with one audit row", async () => {
    await send(THOUSAND.map((name) => item(name)));
    const ids = (await letters("?limit=1000")).map(({ id }) => id);
    await send([{ nonsense: true }]);
    await putSchema({ required: ["m"] });
    const before = (await audited()).length;
    expect(await post("/retry?reason=size_schema")).toEqual({
      status: 200,
      body: { retried: 1000, resolved: 1000, refused: 0, remaining: 0, next_cursor: null },
    });
    expect((await stored()).toSorted()).toEqual(eventIds(THOUSAND));
    expect(await resources()).toBe(1000);
    expect((await letters()).map(({ raw }) => raw)).toEqual([{ nonsense: true }]);
    expect((await audited()).slice(before)).toMatchObject([
      auditRow({ accepted: 500, resolved: ids.slice(0, 500), refused: [] }),
      auditRow({ accepted: 500, resolved: ids.slice(500), refused: [] }),
    ]);
    const [{ n } = { n: 0 }]: { n: number }[] = await server.db.db`
      SELECT count(DISTINCT resolved_at)::int AS n FROM rejected_events WHERE resolved_at IS NOT NULL`;
    expect(n).toBe(2);
  });

  test.each(["BEFORE INSERT ON events", "AFTER UPDATE ON rejected_events", "BEFORE INSERT ON audit_log"])(
    "that fails %s in its second 500 keeps the first, and takes the rest when asked again",
    async (point) => {
      await send(THOUSAND.map((name) => item(name)));
      const ids = (await letters("?limit=1000")).map(({ id }) => id);
      await putSchema({ required: ["m"] });
      const before = (await audited()).length;
      // Letters that an earlier transaction resolved are there in the second one only.
      await breakAt(point, "EXISTS (SELECT FROM rejected_events WHERE resolved_at < now())");
      try {
        expect(await post("/retry")).toMatchObject({
          status: 500,
          body: { type: "urn:tally:error:internal" },
        });
      } finally {
        await mend();
      }
      const [first, rest] = [eventIds(THOUSAND.slice(0, 500)), eventIds(THOUSAND.slice(500))];
      expect((await lettersOf("resolved")).toSorted()).toEqual(first);
      expect((await lettersOf("open")).toSorted()).toEqual(rest);
      expect((await stored()).toSorted()).toEqual(first);
      expect(await resources()).toBe(500);
      expect(await countedAsStored()).toBe(500);
      const firstRow = auditRow({ accepted: 500, resolved: ids.slice(0, 500), refused: [] });
      expect((await audited()).slice(before)).toMatchObject([firstRow]);

      expect(await post("/retry")).toEqual({
        status: 200,
        body: { retried: 500, resolved: 500, refused: 0, remaining: 0, next_cursor: null },
      });
      expect(await lettersOf("open")).toEqual([]);
      expect((await stored()).toSorted()).toEqual(eventIds(THOUSAND));
      expect(await resources()).toBe(1000);
      expect(await countedAsStored()).toBe(1000);
      expect((await audited()).slice(before)).toMatchObject([
        firstRow,
        auditRow({ accepted: 500, resolved: ids.slice(500), refused: [] }),
      ]);
    },
  );
});

describe("the retry of many", () => {
  test("tries each once, and tells those refused again from the rest", async () => {
    await send([
      item("a"),
      item("b", { payload: { state: "on", size: { m: "x" } } }),
      "no object",
      item("a"),
    ]);
    await putSchema({ properties: { m: { type: "integer" } } });
    expect((await post("/retry")).body).toEqual({
      retried: 4,
      resolved: 2,
      refused: 2,
      remaining: 0,
      next_cursor: null,
    });
    expect((await letters()).map(({ reason }) => reason.split(":")[0])).toEqual(["size_schema", "schema"]);
    expect(await storedIds()).toEqual([`${type}-a`]);
  });

  test("takes no more than its limit, and goes on behind it", async () => {
    await send([item("a"), item("b"), item("c")]);
    const first = (await post("/retry?limit=2")).body;
    expect(first).toMatchObject({ retried: 2, resolved: 0, refused: 2, remaining: 1 });
    await putSchema({});
    const second = (await post(`/retry?limit=2&cursor=${first.next_cursor}`)).body;
    expect(second).toEqual({ retried: 1, resolved: 1, refused: 0, remaining: 0, next_cursor: null });
    expect(await storedIds()).toEqual([`${type}-c`]);
  });

  test("keeps to its filters, and each letter to its own sender", async () => {
    const other = await server.credentials.ingest("openstack", "eu2");
    await send([item("a")]);
    await send([item("b", { cloud: "eu2" })], other);
    await putSchema({});
    expect((await post("/retry?cloud=eu2")).body).toMatchObject({ retried: 1, resolved: 1 });
    expect((await letters("?cloud=eu1")).length).toBe(1);
    expect((await post("/retry?to=2026-01-01T00:00:00Z")).body).toMatchObject({ retried: 0 });
    expect((await post("/retry?from=2099-01-01T00:00:00Z")).body).toMatchObject({ retried: 0 });
    expect((await post("/retry?reason=schema")).body).toMatchObject({ retried: 0 });
    expect((await post("/retry")).body).toMatchObject({ retried: 1, resolved: 1 });
    const { items } = await readPage(server, `/api/v1/resources?resource_type=${type}`);
    expect(items.map(({ cloud, resource_id }) => [cloud, resource_id])).toEqual([
      ["eu1", "a"],
      ["eu2", "b"],
    ]);
  });

  test.each([
    ["limit=0", "query.limit"],
    ["limit=10001", "query.limit"],
    ["reason=none", "query.reason"],
    ["status=open", "query.status"],
    ["cursor=x", "query.cursor"],
    ["from=now", "query.from"],
    ["cloud=", "query.cloud"],
  ])("?%s is refused", async (query, loc) => {
    expect(await post(`/retry?${query}`)).toMatchObject({ status: 400, body: { errors: [{ loc }] } });
  });
});

describe("the list", () => {
  test("filters by the kind of reason, by the cloud that the item named, and by status", async () => {
    await send([
      item("a"),
      item("b", { cloud: "elsewhere", payload: null }),
      item("c", { cloud: 7 }),
      ["no object"],
      item("e", { cloud: "x".repeat(513) }),
    ]);
    const raws = async (query: string) =>
      (await letters(query)).map(({ raw }) => (raw as { resource_id?: string }).resource_id ?? "-");
    expect(await raws("")).toEqual(["a", "b", "c", "-", "e"]);
    expect(await raws("?reason=size_schema")).toEqual(["a"]);
    expect(await raws("?reason=schema")).toEqual(["b", "c", "-", "e"]);
    expect(await raws("?cloud=eu1")).toEqual(["a"]);
    expect(await raws("?cloud=elsewhere")).toEqual(["b"]);
    expect(await raws("?cloud=elsewhere&reason=size_schema")).toEqual([]);
    expect(await raws("?status=resolved")).toEqual([]);
  });

  test("the reason of the example is what its sender was told", async () => {
    const { rejected } = await send([item("a")]);
    expect(rejected.map(({ reason }) => reason)).toEqual([MISSING]);
    expect((await letters()).map(({ reason }) => reason)).toEqual([MISSING]);
  });
});
