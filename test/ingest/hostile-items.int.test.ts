/** Whatever an item holds, it can't fail its neighbours: each hostile item is sent between two good ones. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { byteLength } from "../../src/event/bounds.ts";
import { scrubNul } from "../../src/event/json-text.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { HOSTILE_ITEMS } from "./hostile-items.ts";
import { itemText } from "./items.ts";
import { ingestItems } from "./record.ts";

let server: TestServer;
let token: string;
beforeAll(async () => {
  server = await testServer();
  token = await server.credentials.ingest("openstack", "os-1");
});
afterAll(async () => {
  await server.stop();
});

async function post(body: string): Promise<{ status: number; answer: unknown }> {
  const response = await server.request("/api/v1/events", {
    method: "POST",
    token,
    headers: { "content-type": "application/json" },
    body,
  });
  return { status: response.status, answer: await response.json() };
}

async function counts(): Promise<{ events: number; letters: number; violations: number }> {
  const [row]: { events: number; letters: number; violations: number }[] = await server.db.db`
    SELECT (SELECT count(*)::int FROM events) AS events, (SELECT count(*)::int FROM rejected_events) AS letters,
           (SELECT count(*)::int FROM audit_log WHERE action = 'events.scope_violation') AS violations`;
  if (row === undefined) throw new Error("no counts");
  return row;
}

function eventIdOf(item: string): string {
  const parsed: unknown = JSON.parse(item);
  if (typeof parsed !== "object" || parsed === null || !("event_id" in parsed)) return "";
  return typeof parsed.event_id === "string" ? parsed.event_id : "";
}

describe("an item that breaks a rule is refused with its reason, its neighbours are stored", () => {
  for (const { name, item, reason, deadLetter } of HOSTILE_ITEMS) {
    test(name, async () => {
      const before = await counts();
      const { status, answer } = await post(`[${itemText()},${item},${itemText()}]`);
      expect(status).toBe(200);
      expect(answer).toEqual({
        accepted: 2,
        duplicates: 0,
        rejected: [
          {
            index: 1,
            event_id: eventIdOf(item),
            reason: typeof reason === "string" ? reason : expect.stringMatching(reason),
          },
        ],
      });
      const kept = deadLetter !== false;
      expect(await counts()).toEqual({
        events: before.events + 2,
        letters: before.letters + (kept ? 1 : 0),
        violations: before.violations + (kept ? 0 : 1),
      });
      if (!kept) return;
      const [letter]: { raw: string; cloud: string }[] = await server.db.db`
        SELECT raw, cloud FROM rejected_events ORDER BY received_at DESC, id DESC LIMIT 1`;
      // What is kept is the item as it came, to the byte, up to 64 KiB.
      const scrubbed = scrubNul(item);
      const bytes = byteLength(scrubbed);
      expect(letter).toEqual({
        raw: bytes <= 65_536 ? scrubbed : `{"not_stored":{"bytes":${bytes}}}`,
        cloud: "os-1",
      });
    });
  }
});

test("a refused item alone still commits and is answered 200", async () => {
  expect(await post('"nothing"')).toEqual({
    status: 200,
    answer: {
      accepted: 0,
      duplicates: 0,
      rejected: [{ index: 0, event_id: "", reason: "schema: the item must be a JSON object, got a string" }],
    },
  });
});

test("a scope violation is in the audit log with both pairs", async () => {
  await post(`[${itemText({ cloud: '"os-9"', event_id: '"stray"' })}]`);
  const [row]: { details: string }[] = await server.db.db`
    SELECT details::text AS details FROM audit_log WHERE action = 'events.scope_violation' ORDER BY id DESC LIMIT 1`;
  expect(JSON.parse(row?.details ?? "null")).toEqual({
    index: 0,
    credential: { platform: "openstack", cloud: "os-1" },
    claimed: { platform: "openstack", cloud: "os-9" },
  });
});

test("the database's own refusal of one item is found, told, and fails nobody else", async () => {
  // A rule that no screening knows, standing for any that a database may have.
  await server.db.db.unsafe(`
    CREATE FUNCTION test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.resource_id LIKE 'cursed%' THEN RAISE EXCEPTION 'value out of range' USING ERRCODE = '22003'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER test_refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION test_refuse();`);
  try {
    const items = Array.from({ length: 40 }, (_, n) =>
      itemText(n === 7 || n === 31 ? { resource_id: `"cursed-${n}"`, event_id: `"cursed-${n}"` } : {}),
    );
    const { status, answer } = await post(`[${items.join(",")}]`);
    expect(status).toBe(200);
    expect(answer).toEqual({
      accepted: 38,
      duplicates: 0,
      rejected: [7, 31].map((index) => ({
        index,
        event_id: `cursed-${index}`,
        reason: "schema: the database cannot store the item: value out of range",
      })),
    });
  } finally {
    await server.db.db.unsafe("DROP TRIGGER test_refuse ON events; DROP FUNCTION test_refuse();");
  }
});

test("a database that refuses hundreds of items is asked no more often than for one", async () => {
  await server.db.db.unsafe(`
    CREATE FUNCTION test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.resource_id LIKE 'cursed%' THEN RAISE EXCEPTION 'value out of range' USING ERRCODE = '22003'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER test_refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION test_refuse();`);
  let begun = 0;
  const counting = new Proxy(server.db.db, {
    get(db, name) {
      const value: unknown = Reflect.get(db, name);
      if (name === "begin") begun++;
      return typeof value === "function" ? value.bind(db) : value;
    },
  });
  try {
    const items = Array.from({ length: 1000 }, (_, n) =>
      itemText(n % 2 === 1 ? { resource_id: `"cursed-${n}"`, event_id: `"many-${n}"` } : {}),
    );
    const { accepted, rejected } = await ingestItems(counting, items, "os-1");
    expect([accepted, rejected.length]).toEqual([500, 500]);
    expect(rejected[499]).toEqual({
      index: 999,
      event_id: "many-999",
      reason: "schema: the database cannot store the item: value out of range",
    });
    // The batch, the one trial, and the batch without them.
    expect(begun).toBe(3);
  } finally {
    await server.db.db.unsafe("DROP TRIGGER test_refuse ON events; DROP FUNCTION test_refuse();");
  }
});
