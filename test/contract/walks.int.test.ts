/**
 * Walks over 5,000 rows while others are written and removed in front of and behind the walk's place: each row that
 * stood at its start and stands at its end comes exactly once, and none comes twice.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { Database } from "../../src/database/connection.ts";
import { pick, randomFrom, seedOfRun } from "../ingest/history-generator.ts";
import { projectToken, readPage } from "../inventory/calls.ts";
import { type TestServer, testServer } from "../support/server.ts";

const STANDING = 5_000;
const DOOMED = 500;

let server: TestServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(() => server.stop());

/** Whose a row is. Lists that know no owners take no notice of it. */
interface Owner {
  readonly cloud: string;
  readonly project: string;
}

interface Row extends Owner {
  readonly name: string;
}

/** One list. Rows are told apart by a name; where lists are by instants, only 64 of them are shared by all rows. */
interface List {
  /** Its filter leaves out the rows of the clouds that project tokens walk. */
  readonly path: string;
  /** The member that carries a row's name. */
  readonly member: string;
  /** @param rows JSON text of `Row[]`. */
  insert(db: Database, rows: string): Promise<unknown>;
  /** Null where the database refuses to remove rows. @param names JSON text of their names. */
  readonly remove: ((db: Database, names: string) => Promise<unknown>) | null;
}

const EVENTS: List = {
  path: "/api/v1/events?cloud=eu1",
  member: "event_id",
  insert: (db, rows) => db`
    INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id,
                        project_id, source)
    SELECT timestamptz '2026-03-01Z' + (hashtext(name) & 63) * interval '1 microsecond', now(), name, 'walk.update',
           'openstack', cloud, 'walk', name, project, 'collector'
      FROM json_to_recordset(${rows}::text::json) AS r(name text, cloud text, project text)`,
  remove: null,
};

const RESOURCES: List = {
  path: "/api/v1/resources?cloud=eu1",
  member: "resource_id",
  insert: (db, rows) => db`
    INSERT INTO current_resources (first_event_at, last_event_at, last_received_at, cloud, resource_type,
                                   resource_id, platform, project_id, state, last_event_id, last_event_type, size)
    SELECT now(), now(), now(), cloud, 'walk', name, 'openstack', project, 'on', name, 'walk.update', '{}'
      FROM json_to_recordset(${rows}::text::json) AS r(name text, cloud text, project text)`,
  remove: (db, names) => db`
    DELETE FROM current_resources WHERE resource_id IN (SELECT json_array_elements_text(${names}::text::json))`,
};

const OTHERS: readonly List[] = [
  {
    path: "/api/v1/projects?cloud=eu1",
    member: "external_id",
    insert: (db, rows) => db`
      INSERT INTO projects (platform, cloud, external_id)
      SELECT 'openstack', cloud, name FROM json_to_recordset(${rows}::text::json) AS r(name text, cloud text)`,
    remove: (db, names) => db`
      DELETE FROM projects WHERE external_id IN (SELECT json_array_elements_text(${names}::text::json))`,
  },
  {
    path: "/api/v1/rejected-events?status=open",
    member: "reason",
    insert: (db, rows) => db`
      INSERT INTO rejected_events (received_at, reason, reason_kind, source, raw)
      SELECT timestamptz '2026-03-01Z' + (hashtext(name) & 63) * interval '1 microsecond', name, 'schema',
             'collector', '1'
        FROM json_to_recordset(${rows}::text::json) AS r(name text)`,
    // A retry takes a letter out of the list.
    remove: (db, names) => db`
      UPDATE rejected_events SET resolved_at = now()
       WHERE reason IN (SELECT json_array_elements_text(${names}::text::json))`,
  },
  {
    path: "/api/v1/audit-log?action=walk",
    member: "object_id",
    insert: (db, rows) => db`
      INSERT INTO audit_log (at, actor, action, object_type, object_id)
      SELECT timestamptz '2026-03-01Z' + (hashtext(name) & 63) * interval '1 microsecond', 'a', 'walk', 'row', name
        FROM json_to_recordset(${rows}::text::json) AS r(name text)`,
    remove: (db, names) => db`
      DELETE FROM audit_log WHERE object_id IN (SELECT json_array_elements_text(${names}::text::json))`,
  },
  {
    path: "/api/v1/sync-runs?status=failed",
    member: "cloud",
    insert: (db, rows) => db`
      INSERT INTO sync_runs (started_at, finished_at, cloud, platform, status)
      SELECT timestamptz '2026-03-01Z' + (hashtext(name) & 63) * interval '1 microsecond', now(), name, 'openstack',
             'failed'
        FROM json_to_recordset(${rows}::text::json) AS r(name text)`,
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

/** Who walks, and which rows are the walker's: the owners' in turn, and none of the strangers'. */
interface Walker {
  /** Begins the names of the walker's rows. */
  readonly name: string;
  /** Gives the path of a list as the walker asks for it. */
  pathOf(list: List): string;
  token(): string;
  readonly owners: readonly Owner[];
  readonly strangers: readonly Owner[];
}

/** What happened while a list was walked, by the names of the rows. */
interface Walk {
  /** In the order in which they came. */
  readonly seen: readonly string[];
  readonly pages: number;
  /** Written before the walk, and doomed. */
  readonly doomed: readonly string[];
  readonly written: readonly string[];
  readonly removed: ReadonlySet<string>;
  /** How often the row that the cursor names was removed. */
  readonly cursorsRemoved: number;
}

/** A list's rows, and walks over them, one after the other. */
class Walked {
  readonly #list: List;
  readonly #walker: Walker;
  readonly #standing: string[];
  #made = 0;

  constructor(list: List, walker: Walker) {
    this.#list = list;
    this.#walker = walker;
    this.#standing = names(`${walker.name}-standing`, 0, STANDING);
  }

  async fill(): Promise<void> {
    await this.#write(this.#standing, this.#walker.owners);
    await this.#write(names(`${this.#walker.name}-strange`, 0, STANDING), this.#walker.strangers);
  }

  async #write(rows: readonly string[], owners: readonly Owner[]): Promise<void> {
    const owned = rows.flatMap((name, n): Row[] => {
      const owner = owners[n % owners.length];
      return owner === undefined ? [] : [{ name, ...owner }];
    });
    await this.#list.insert(server.db.db, JSON.stringify(owned));
  }

  /**
   * Walks, and every so often writes some rows anywhere and removes some that no walk need see; the row that the
   * cursor names among them.
   */
  async #walk(limit: number, random: () => number): Promise<Walk> {
    const { member, remove } = this.#list;
    const { name: walker, owners, strangers } = this.#walker;
    const doomed = names(`${walker}-doomed${limit}-`, 0, DOOMED);
    await this.#write(doomed, owners);
    const every = limit === 1000 ? 1 : limit === 1 ? 100 : 20;
    const path = `${this.#walker.pathOf(this.#list)}limit=${limit}`;
    const seen: string[] = [];
    const written: string[] = [];
    const removed = new Set<string>();
    let left = doomed;
    let cursorsRemoved = 0;
    for (let pages = 1, cursor = ""; ; pages++) {
      const page = await readPage(server, path + cursor, this.#walker.token());
      seen.push(...page.items.map((item) => String(item[member])));
      if (page.next_cursor === null) return { seen, pages, doomed, written, removed, cursorsRemoved };
      cursor = `&cursor=${page.next_cursor}`;
      if (pages % every !== 0) continue;
      this.#made += 5;
      const fresh = names(`${walker}-fresh`, this.#made, 5);
      await this.#write(fresh, owners);
      await this.#write(names(`${walker}-strange-fresh`, this.#made, 5), strangers);
      written.push(...fresh);
      if (remove === null) continue;
      const gone = new Set(Array.from({ length: 5 }, () => pick(random, left)));
      const last = seen.at(-1) ?? "";
      if (left.includes(last)) {
        gone.add(last);
        cursorsRemoved += 1;
      }
      await remove(server.db.db, JSON.stringify([...gone]));
      for (const name of gone) removed.add(name);
      left = [...left.filter((name) => !gone.has(name)), ...fresh];
    }
  }

  /** Walks, and looks at what came. @returns how often the row that the cursor names was removed. */
  async walk(limit: number): Promise<number> {
    const seed = seedOfRun();
    const walk = await this.#walk(limit, randomFrom(seed));
    const what = `${this.#list.path} ${this.#walker.name} TEST_SEED=${seed}`;
    const seen = new Set(walk.seen);
    const came = (name: string) => seen.has(name);
    const gone = (name: string) => walk.removed.has(name);
    const stayed = [...this.#standing, ...walk.doomed].filter((name) => !gone(name));
    expect(seen.size, what).toBe(walk.seen.length);
    expect(
      stayed.filter((name) => !came(name)),
      what,
    ).toEqual([]);
    expect(
      walk.seen.filter((name) => name.includes("strange")),
      what,
    ).toEqual([]);
    expect(walk.pages, what).toBeGreaterThanOrEqual(Math.ceil(STANDING / limit));

    // What is written in front of the place comes, and what is removed there doesn't.
    const sides = {
      writtenInFront: walk.written.some(came),
      writtenBehind: walk.written.some((name) => !came(name) && !gone(name)),
      removedInFront: walk.doomed.some((name) => gone(name) && !came(name)),
      removedBehind: walk.doomed.some((name) => gone(name) && came(name)),
    };
    const removes = this.#list.remove !== null;
    expect(sides, what).toEqual({
      writtenInFront: true,
      writtenBehind: true,
      removedInFront: removes,
      removedBehind: removes,
    });
    return walk.cursorsRemoved;
  }
}

/** Fills all of them, and has the database take its statistics, which it would do by itself after a while. */
async function fillAll(walks: readonly Walked[]): Promise<void> {
  for (const walked of walks) await walked.fill();
  await server.db.db`ANALYZE`;
}

/** Walks all of them at once. @returns how often a row that a cursor names was removed. */
async function walkAll(walks: readonly Walked[], limit: number): Promise<number> {
  const removals = await Promise.all(walks.map((walked) => walked.walk(limit)));
  return removals.reduce((sum, count) => sum + count, 0);
}

describe("an administrator's walk of each list", () => {
  const walker: Walker = {
    name: "admin",
    pathOf: ({ path }) => `${path}&`,
    token: () => server.credentials.admin,
    owners: [{ cloud: "eu1", project: "p1" }],
    strangers: [],
  };
  const walks = [EVENTS, RESOURCES, ...OTHERS].map((list) => new Walked(list, walker));
  beforeAll(() => fillAll(walks));

  // At 1, 33,000 requests.
  test.each([1, 7])(
    "%i at a time, the cursor's own row removed now and then",
    async (limit) => {
      expect(await walkAll(walks, limit)).toBeGreaterThan(0);
    },
    120_000,
  );

  test("1000 at a time", async () => {
    await walkAll(walks, 1000);
  }, 120_000);
});

// The statement reads each project by itself, and puts them together.
describe("a token's walk of two projects, strangers' rows between theirs", () => {
  let token: string;
  const walker: Walker = {
    name: "token",
    pathOf: ({ path }) => path.replace(/\?.*/, "?"),
    token: () => token,
    owners: [
      { cloud: "eu2", project: "p1" },
      { cloud: "eu2", project: "p2" },
    ],
    strangers: [
      { cloud: "eu2", project: "p3" },
      { cloud: "eu3", project: "p1" },
    ],
  };
  const walks = [EVENTS, RESOURCES].map((list) => new Walked(list, walker));
  beforeAll(async () => {
    token = await projectToken(server, ["eu2", "p1"], ["eu2", "p2"]);
    await fillAll(walks);
  });

  test.each([7, 1000])(
    "%i at a time",
    async (limit) => {
      await walkAll(walks, limit);
    },
    120_000,
  );
});
