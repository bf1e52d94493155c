import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeAudit } from "../../src/access/audit.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const entry = (action: string, details: object) => ({
  actor: "admin-cli",
  action,
  objectType: "thing",
  objectId: 'a "thing" – 😀',
  details,
});

test("entries are written in their order, with one statement's instant", async () => {
  const { db } = database;
  await writeAudit(db, [
    entry("thing.b", { n: 1 }),
    entry("thing.a", { deep: [{ "": null }] }),
    entry("thing.c", {}),
  ]);
  const rows = await db`
    SELECT actor, action, object_type, object_id, details::text AS details, at = min(at) OVER () AS same
      FROM audit_log ORDER BY id`;
  const rest = { actor: "admin-cli", object_type: "thing", object_id: 'a "thing" – 😀', same: true };
  expect([...rows]).toEqual([
    { ...rest, action: "thing.b", details: '{"n": 1}' },
    { ...rest, action: "thing.a", details: '{"deep": [{"": null}]}' },
    { ...rest, action: "thing.c", details: "{}" },
  ]);
});

test("an entry goes when its transaction does", async () => {
  const { db } = database;
  const failed = db.begin(async (tx) => {
    await writeAudit(tx, [entry("thing.lost", {})]);
    throw new Error("the write failed");
  });
  await expect(failed).rejects.toThrow("the write failed");
  await failed.catch(() => {});
  expect([...(await db`SELECT FROM audit_log WHERE action = 'thing.lost'`)]).toHaveLength(0);
});

test("no entry is no statement", async () => {
  const closed = database.pool(1);
  await closed.close({ timeout: 0 });
  await writeAudit(closed, []);
});
