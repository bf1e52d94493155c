/** Lists are written by the database and histories by us: whatever texts and instants there are, byte for byte alike. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { get, readPage } from "./calls.ts";

let database: TestDatabase;
let server: TestServer;
beforeAll(async () => {
  database = await testDatabase();
  // Sessions that write instants in no way of ours, unless they are told to.
  await database.db.unsafe(`
    DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Kolkata''', current_database());
      EXECUTE format('ALTER DATABASE %I SET datestyle = ''German''', current_database());
    END $$`);
  await database.db.close({ timeout: 0 });
  server = await testServer({ db: { ...database, db: database.pool(4) } });
});
afterAll(async () => {
  await server.stop();
  await database.drop();
});

const FORGED = (name: string) =>
  `x","timestamp":"2026-03-01T00:00:00Z","event_type":"a.b","platform":"p","cloud":"eu1","resource_type":"t","resource_id":"r","project_id":"p","source":"${name}`;
/** Texts that mean something to JSON, to SQL, or to whoever puts texts together. */
const TEXTS = [
  "plain",
  'quo"te',
  '"',
  '","',
  "back\\slash",
  "\\",
  '\\"',
  "tab\there",
  "line\nbreak\r",
  "bell\u0007 escape\u001b unit\u001f",
  "delete\u007f next\u0085 line\u2028",
  "ü😀\u202e",
  "it's",
  "%s $1 {} }",
  FORGED("collector"),
  `{"event_id":"${FORGED("collector")}`,
];
const INSTANTS = [
  "2026-03-01T00:00:00Z",
  "2026-03-01T08:00:00.25Z",
  "2026-03-01T23:59:59.999999Z",
  "2026-10-25T00:30:00.000001Z",
  "0001-01-01T00:00:00Z",
  "1883-11-18T12:03:58.1Z",
  "9999-12-31T23:59:59.999999Z",
];

async function send(texts: readonly string[]): Promise<void> {
  const [cloud = ""] = texts;
  const token = await server.credentials.ingest("openstack", cloud);
  const items = INSTANTS.map((timestamp, n) => ({
    event_id: texts[n % texts.length],
    timestamp,
    event_type: n === 0 ? "thing.create" : "thing.update",
    platform: "openstack",
    cloud,
    resource_type: texts.at(-1),
    resource_id: texts[1] ?? cloud,
    project_id: texts[2] ?? cloud,
    payload: { state: texts[0], size: { [cloud]: cloud }, provider: { texts } },
  }));
  const answer = await server.request("/api/v1/events", {
    method: "POST",
    token,
    body: JSON.stringify(items),
  });
  expect(await answer.json()).toEqual({ accepted: items.length, duplicates: 0, rejected: [] });
}

/** The items' texts of a page, as it was answered. */
function itemsOf(page: string): string {
  return page.slice('{"items":['.length, page.indexOf('],"next_cursor":'));
}

describe.each(TEXTS.map((text, n) => ({ text, n, name: JSON.stringify(text) })))("$name", ({ text, n }) => {
  const mine = (name: string) => `${encodeURIComponent(text)}${name}`;
  beforeAll(() => send([text, ...TEXTS.slice(n + 1), ...TEXTS.slice(0, n), text]));

  test("in a page of events as in the history, and where the walk goes on", async () => {
    const path = `/api/v1/events?cloud=${mine("")}`;
    const page = await get(server, `${path}&limit=1000`);
    const [first] = (await readPage(server, path)).items;
    expect(first).toMatchObject({ cloud: text, resource_type: text, timestamp: "0001-01-01T00:00:00Z" });
    const key = [text, text, TEXTS[(n + 1) % TEXTS.length] ?? ""].map(encodeURIComponent).join("/");
    const history = await get(server, `/api/v1/resources/${key}/events`);
    expect(itemsOf(page.text)).toBe(itemsOf(history.text));
    const walked: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const step: { items: unknown[]; next_cursor: string | null } = JSON.parse(
        (await get(server, `${path}&limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`)).text,
      );
      walked.push(...step.items.map((item) => JSON.stringify(item)));
      cursor = step.next_cursor;
    }
    expect(walked).toEqual(JSON.parse(page.text).items.map((item: unknown) => JSON.stringify(item)));
  });

  test("in a page of resources as in the lifecycle", async () => {
    const page = await get(server, `/api/v1/resources?cloud=${mine("")}`);
    const key = [text, text, TEXTS[(n + 1) % TEXTS.length] ?? ""].map(encodeURIComponent).join("/");
    const lifecycle = await get(server, `/api/v1/resources/${key}/lifecycle`);
    const resource = itemsOf(page.text);
    expect(JSON.parse(resource)).toMatchObject({ cloud: text, state: text, size: { [text]: text } });
    expect(lifecycle.text.startsWith(`{"resource":${resource},"events":[`)).toBe(true);
    const one = await get(server, `/api/v1/resources?cloud=${mine("")}&limit=1`);
    expect(itemsOf(one.text)).toBe(resource);
  });
});
