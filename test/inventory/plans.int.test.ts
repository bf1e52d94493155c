import { afterAll, beforeAll, expect, test } from "bun:test";
import { pageOfEvents } from "../../src/inventory/list-queries.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  // A hundred projects of ten events, and one of twenty thousand.
  await database.db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source, payload)
    SELECT timestamptz '2026-01-01T00:00:00Z' + i * interval '1 second', now(), 'e' || i, 'x.update', 'openstack',
           'eu1', 'thing', 'r' || i % 100, CASE WHEN i <= 1000 THEN 'small-' || i % 100 ELSE 'large' END,
           'collector', '{"state":"on"}'
      FROM generate_series(1, 21000) i`;
  await database.db`ANALYZE events`;
});
afterAll(() => database.drop());

const NO_FILTER = {
  cloud: null,
  platform: null,
  projectId: null,
  resourceType: null,
  resourceId: null,
  eventType: null,
  source: null,
  from: null,
  to: null,
};

test("a page is planned for its own projects, however often others were read before", async () => {
  const db = database.pool(1);
  const read = (projectId: string) => {
    const scope = [
      { cloud: "eu1", projectId },
      { cloud: "eu1", projectId: "small-0" },
    ];
    return pageOfEvents(db, scope, NO_FILTER, { limit: 10, after: null });
  };
  const full = { items: expect.any(Buffer), last: expect.any(String) };
  for (let i = 1; i <= 10; i++) expect(await read(`small-${i}`)).toEqual(full);
  expect(await read("large")).toEqual(full);
  const [plans]: { custom: string; generic: string }[] = await db`
    SELECT sum(custom_plans)::text AS custom, sum(generic_plans)::text AS generic
      FROM pg_prepared_statements WHERE statement LIKE '%UNION ALL%' AND statement LIKE '%events%'
       AND statement NOT LIKE '%pg_prepared_statements%'`;
  expect(plans).toEqual({ custom: "11", generic: "0" });
});
