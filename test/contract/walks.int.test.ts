/**
 * Walks over 5,000 rows while others are written and removed in front of and behind the walk's place: each row that
 * stood at its start and stands at its end comes exactly once, and none comes twice.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { Database } from "../../src/database/connection.ts";
import { pick, randomFrom, seedOfRun } from "../ingest/history-generator.ts";
import { readPage } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

const STANDING = 5_000;
const DOOMED = 500;

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

/** One list. Rows are told apart by a name; where lists are by instants, only 64 of them are shared by all rows. */
interface List {
  readonly path: string;
  /** The member that carries a row's name. */
  readonly member: string;
  insert(db: Database, names: string): Promise<unknown>;
  /** Null where the database refuses to remove rows. */
  readonly remove: ((db: Database, names: string) => Promise<unknown>) | null;
}

const LISTS: readonly List[] = [
  {
    path: "/api/v1/events?event_type=walk.update",
    member: "event_id",
    insert: (db, names) => db`
      INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                          project_id, source)
      SELECT timestamptz '2026-03-01Z' + (hashtext(n) & 63) * interval '1 microsecond', now(), n, 'walk.update',
             'openstack', 'eu1', 'walk', n, 'p1', 'collector'
        FROM json_array_elements_text(${names}::text::json) AS n`,
    remove: null,
  },
  {
    path: "/api/v1/resources?resource_type=walk",
    member: "resource_id",
    insert: (db, names) => db`
      INSERT INTO current_resources (first_event_at, last_event_at, last_received_at, cloud, resource_type,
                                     resource_id, platform, project_id, state, last_event_id, last_event_type, size)
      SELECT now(), now(), now(), 'eu1', 'walk', n, 'openstack', 'p1', 'on', n, 'walk.update', '{}'
        FROM json_array_elements_text(${names}::text::json) AS n`,
    remove: (db, names) => db`
      DELETE FROM current_resources WHERE resource_type = 'walk'
         AND resource_id IN (SELECT json_array_elements_text(${names}::text::json))`,
  },
  {
    path: "/api/v1/projects?platform=openstack",
    member: "external_id",
    insert: (db, names) => db`
      INSERT INTO projects (platform, cloud, external_id)
      SELECT 'openstack', 'eu1', n FROM json_array_elements_text(${names}::text::json) AS n`,
    remove: (db, names) => db`
      DELETE FROM projects WHERE external_id IN (SELECT json_array_elements_text(${names}::text::json))`,
  },
  {
    path: "/api/v1/rejected-events?status=open",
    member: "reason",
    insert: (db, names) => db`
      INSERT INTO rejected_events (received_at, reason, reason_kind, source, raw)
      SELECT timestamptz '2026-03-01Z' + (hashtext(n) & 63) * interval '1 microsecond', n, 'schema', 'collector', '1'
        FROM json_array_elements_text(${names}::text::json) AS n`,
    // A retry takes a letter out of the list.
    remove: (db, names) => db`
      UPDATE rejected_events SET resolved_at = now()
       WHERE reason IN (SELECT json_array_elements_text(${names}::text::json))`,
  },
  {
    path: "/api/v1/audit-log?action=walk",
    member: "object_id",
    insert: (db, names) => db`
      INSERT INTO audit_log (at, actor, action, object_type, object_id)
      SELECT timestamptz '2026-03-01Z' + (hashtext(n) & 63) * interval '1 microsecond', 'a', 'walk', 'row', n
        FROM json_array_elements_text(${names}::text::json) AS n`,
    remove: (db, names) => db`
      DELETE FROM audit_log WHERE object_id IN (SELECT json_array_elements_text(${names}::text::json))`,
  },
  {
    path: "/api/v1/sync-runs?status=failed",
    member: "cloud",
    insert: (db, names) => db`
      INSERT INTO sync_runs (started_at, finished_at, cloud, platform, status)
      SELECT timestamptz '2026-03-01Z' + (hashtext(n) & 63) * interval '1 microsecond', now(), n, 'openstack', 'failed'
        FROM json_array_elements_text(${names}::text::json) AS n`,
    remove: (db, names) => db`
      DELETE FROM sync_runs WHERE cloud IN (SELECT json_array_elements_text(${names}::text::json))`,
  },
];

/** Names all over the order of names. */
function names(kind: string, from: number, count: number): string[] {
  return Array.from({ length: count }, (_, n) => {
    const name = `${kind}${from + n}`;
    return `${createHash("sha256").update(name).digest("hex").slice(0, 8)}-${name}`;
  });
}

/** A list's rows, and walks over them, one after the other. */
class Walked {
  readonly #list: List;
  readonly #standing = names("standing", 0, STANDING);
  #doomed: string[] = [];
  #made = 0;

  constructor(list: List) {
    this.#list = list;
  }

  async fill(): Promise<void> {
    await this.#list.insert(server.db.db, JSON.stringify(this.#standing));
  }

  /** Writes some rows anywhere, and removes some that no walk need see; the row that the cursor names among them. */
  async #disturb(random: () => number, last: string): Promise<void> {
    const { insert, remove } = this.#list;
    this.#made += 5;
    const fresh = names("fresh", this.#made, 5);
    await insert(server.db.db, JSON.stringify(fresh));
    if (remove === null) return;
    const gone = [...Array.from({ length: 5 }, () => pick(random, this.#doomed))];
    if (this.#doomed.includes(last)) gone.push(last);
    await remove(server.db.db, JSON.stringify(gone));
    this.#doomed = [...this.#doomed.filter((name) => !gone.includes(name)), ...fresh];
  }

  async walk(limit: number): Promise<void> {
    const { path, member, insert } = this.#list;
    const seed = seedOfRun();
    const random = randomFrom(seed);
    this.#doomed = names(`doomed${limit}-`, 0, DOOMED);
    await insert(server.db.db, JSON.stringify(this.#doomed));
    const seen: unknown[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const place: string = cursor === null ? "" : `&cursor=${cursor}`;
      const page = await readPage(server, `${path}&limit=${limit}${place}`);
      const found = page.items.map((item) => item[member]);
      seen.push(...found);
      cursor = page.next_cursor;
      pages += 1;
      const last = String(found.at(-1));
      if (limit === 1000 || pages % (limit === 1 ? 100 : 20) === 0) await this.#disturb(random, last);
    } while (cursor !== null);
    const distinct = new Set(seen);
    const what = `${path} TEST_SEED=${seed}`;
    expect(distinct.size, what).toBe(seen.length);
    expect(
      this.#standing.filter((name) => !distinct.has(name)),
      what,
    ).toEqual([]);
    expect(pages, what).toBeGreaterThanOrEqual(Math.ceil(STANDING / limit));
  }
}

const walks = LISTS.map((list) => new Walked(list));
beforeAll(async () => {
  for (const walked of walks) await walked.fill();
});

test.each([7, 1000])(
  "each list, %i at a time",
  async (limit) => {
    await Promise.all(walks.map((walked) => walked.walk(limit)));
  },
  120_000,
);

// 5,500 requests a list: events, and of the others another one with each seed.
test("events and one more list, 1 at a time", async () => {
  const [events, ...others] = walks;
  const chosen = pick(randomFrom(seedOfRun()), others);
  await Promise.all([events?.walk(1), chosen.walk(1)]);
}, 120_000);
