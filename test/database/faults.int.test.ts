import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Database, Queryable } from "../../src/database/connection.ts";
import type { EmbeddedDatabase } from "../../src/database/embedded/embedded.ts";
import { type Fault, faultOf, sqlStateOf } from "../../src/database/faults.ts";
import { openPool } from "../../src/database/pool.ts";
import { transaction } from "../../src/database/transaction.ts";
import { ownServer, temporaryDirectory } from "./own-server.ts";

const directory = temporaryDirectory();
let server: EmbeddedDatabase;
let db: Database;

beforeAll(async () => {
  server = await ownServer(directory.path);
  db = openPool(server.target, { maxConnections: 10 });
  await db.unsafe(`
    CREATE TABLE pairs (id int PRIMARY KEY, amount int NOT NULL CHECK (amount > 0), label text);
    INSERT INTO pairs VALUES (1, 1, 'a'), (2, 2, 'b')`);
}, 30_000);

afterAll(async () => {
  await db.close({ timeout: 0 });
  await server.stop();
  directory.remove();
});

/** What a rejected statement was: its fault and its SQLSTATE. */
async function outcome(work: Promise<unknown>): Promise<[Fault, string | null] | "no error"> {
  try {
    await work;
    return "no error";
  } catch (error) {
    return [faultOf(error), sqlStateOf(error)];
  }
}

describe("what lies in the data", () => {
  const cases: [string, string, string][] = [
    ["a number that is none", "SELECT 'x'::int", "22P02"],
    ["a number that is too large", "SELECT 10000000000::int", "22003"],
    ["a time that is too late", "SELECT '300000-01-01'::timestamptz", "22008"],
    ["JSON that jsonb can't hold", `SELECT '"\\u0000"'::jsonb`, "22P05"],
    ["a broken CHECK", "INSERT INTO pairs VALUES (3, 0, 'c')", "23514"],
    ["a duplicate key", "INSERT INTO pairs VALUES (1, 1, 'c')", "23505"],
    ["a missing value", "INSERT INTO pairs VALUES (3, null, 'c')", "23502"],
  ];
  for (const [what, statement, state] of cases) {
    test(what, async () => {
      expect(await outcome(db.unsafe(statement))).toEqual(["data", state]);
    });
  }

  test("a value that is too long for an index", async () => {
    await db.unsafe("CREATE TABLE long (label text PRIMARY KEY)");
    // md5 doesn't compress, so that the row really is 9,600 bytes.
    const insert = "INSERT INTO long SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) n";
    expect(await outcome(db.unsafe(insert))).toEqual(["data", "54000"]);
  });
});

describe("what is a fault of ours", () => {
  test("a statement that is none", async () => {
    expect(await outcome(db.unsafe("SELEKT"))).toEqual(["other", "42601"]);
  });
  test("a table that isn't there", async () => {
    expect(await outcome(db`SELECT * FROM nowhere`)).toEqual(["other", "42P01"]);
  });
  test("errors that are no database's", () => {
    expect(faultOf(new TypeError("x"))).toBe("other");
    expect(faultOf(Object.assign(new Error("x"), { code: "ABORT_ERR" }))).toBe("other");
    expect(faultOf("ECONNREFUSED")).toBe("other");
    expect(faultOf(undefined)).toBe("other");
  });
});

describe("what took too long", () => {
  test("a statement over its limit", async () => {
    const limited = openPool(server.target, { maxConnections: 1, statementTimeoutMs: 50 });
    expect(await outcome(limited`SELECT pg_sleep(5)`)).toEqual(["timeout", "57014"]);
    await limited.close({ timeout: 0 });
  });

  test("a wait for a lock over its limit", async () => {
    const limited = openPool(server.target, { maxConnections: 1, lockTimeoutMs: 50 });
    await db.begin(async (tx) => {
      await tx`SELECT 1 FROM pairs WHERE id = 1 FOR UPDATE`;
      const waiting = limited`SELECT 1 FROM pairs WHERE id = 1 FOR UPDATE`;
      expect(await outcome(waiting)).toEqual(["timeout", "55P03"]);
    });
    await limited.close({ timeout: 0 });
  });
});

describe("what is tried again", () => {
  /** Two transactions that lock two rows in opposite order, or the same row on old snapshots. */
  async function collide(run: (step: (tx: Queryable, first: number) => Promise<void>) => Promise<unknown[]>) {
    let arrived = 0;
    const both = Promise.withResolvers<void>();
    return await run(async (tx, first) => {
      await tx`UPDATE pairs SET amount = amount + 1 WHERE id = ${first}`;
      if (++arrived === 2) both.resolve();
      await both.promise;
      await tx`UPDATE pairs SET amount = amount + 1 WHERE id = ${3 - first}`;
    });
  }

  test("one of two that deadlock is told so", async () => {
    const outcomes = await collide((step) =>
      Promise.all([1, 2].map((first) => outcome(db.begin((tx) => step(tx, first))))),
    );
    expect(outcomes.sort()).toEqual(["no error", ["retry", "40P01"]].sort());
  });

  test("transaction() carries both through", async () => {
    await db`UPDATE pairs SET amount = 10`;
    let attempts = 0;
    await collide((step) =>
      Promise.all(
        [1, 2].map((first) =>
          transaction(db, async (tx) => {
            attempts++;
            await step(tx, first);
          }),
        ),
      ),
    );
    expect(attempts).toBe(3);
    const rows = await db`SELECT amount FROM pairs ORDER BY id`;
    expect(rows.map((row: { amount: number }) => row.amount)).toEqual([12, 12]);
  });

  test("a serialization failure is one of them", async () => {
    const attempt = db.begin("ISOLATION LEVEL REPEATABLE READ", async (tx) => {
      await tx`SELECT amount FROM pairs WHERE id = 1`;
      await db`UPDATE pairs SET amount = amount + 1 WHERE id = 1`;
      await tx`UPDATE pairs SET amount = amount + 1 WHERE id = 1`;
    });
    expect(await outcome(attempt)).toEqual(["retry", "40001"]);
  });

  test("but not for ever", async () => {
    let attempts = 0;
    const failing = transaction(db, async (tx) => {
      attempts++;
      await tx.unsafe("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$");
    });
    expect(await outcome(failing)).toEqual(["retry", "40001"]);
    expect(attempts).toBe(5);
  });

  test("nothing else is", async () => {
    let attempts = 0;
    const failing = transaction(db, async (tx) => {
      attempts++;
      await tx`INSERT INTO pairs VALUES (1, 1, 'c')`;
    });
    expect(await outcome(failing)).toEqual(["data", "23505"]);
    expect(attempts).toBe(1);
  });

  test("what the work throws rolls back and comes through", async () => {
    const failing = transaction(db, async (tx) => {
      await tx`INSERT INTO pairs VALUES (7, 7, 'rolled back')`;
      throw new RangeError("mine");
    });
    await expect(failing).rejects.toThrow(new RangeError("mine"));
    expect(await db`SELECT 1 FROM pairs WHERE id = 7`).toHaveLength(0);
  });
});

describe("a server that is not to be had", () => {
  test("a backend that was terminated in mid-statement, and the pool recovers", async () => {
    const own = openPool(server.target, { maxConnections: 1 });
    const [me] = await own`SELECT pg_backend_pid() AS pid`;
    const sleeping = outcome(own`SELECT pg_sleep(10)`);
    await Bun.sleep(100);
    await db`SELECT pg_terminate_backend(${me.pid})`;
    expect((await sleeping)[0]).toBe("unavailable");
    expect(await outcome(own`SELECT 1`)).toBe("no error");
    await own.close({ timeout: 0 });
  });

  test("a backend that was terminated inside a transaction", async () => {
    const broken = transaction(db, async (tx) => {
      const [me] = await tx`SELECT pg_backend_pid() AS pid`;
      await tx`INSERT INTO pairs VALUES (8, 8, 'lost')`;
      await db`SELECT pg_terminate_backend(${me.pid})`;
      await tx`SELECT 1`;
    });
    expect((await outcome(broken))[0]).toBe("unavailable");
    expect(await db`SELECT 1 FROM pairs WHERE id = 8`).toHaveLength(0);
  });

  test("a read-only server", async () => {
    const own = openPool(server.target, { maxConnections: 1 });
    await own`SET default_transaction_read_only = on`;
    expect(await outcome(own`INSERT INTO pairs VALUES (9, 9, 'x')`)).toEqual(["unavailable", "25006"]);
    await own.close({ timeout: 0 });
  });

  test("a database that doesn't exist", async () => {
    const own = openPool({ ...server.target, database: "nowhere" }, { maxConnections: 1 });
    expect(await outcome(own`SELECT 1`)).toEqual(["unavailable", "3D000"]);
    await own.close({ timeout: 0 });
  });

  test("a user that isn't let in", async () => {
    const own = openPool({ ...server.target, user: "nobody" }, { maxConnections: 1 });
    expect(await outcome(own`SELECT 1`)).toEqual(["unavailable", "28000"]);
    await own.close({ timeout: 0 });
  });

  test("more connections than the server has", async () => {
    // One pool would share the connections that it got.
    const pools = Array.from({ length: 40 }, () => openPool(server.target, { maxConnections: 1 }));
    const outcomes = await Promise.all(pools.map((own) => outcome(own`SELECT pg_sleep(1)`)));
    await Promise.all(pools.map((own) => own.close({ timeout: 0 })));
    expect(outcomes).toContainEqual(["unavailable", "53300"]);
  });

  for (const [what, url] of [
    ["a port where nobody listens", "postgres://u@127.0.0.1:1/d"],
    ["a socket that isn't there", "postgres://u@/d?host=/nowhere"],
    ["a host that isn't there", "postgres://u@nowhere.invalid/d"],
  ] as const) {
    test(what, async () => {
      const own = openPool({ url }, { maxConnections: 1 });
      expect(await outcome(own`SELECT 1`)).toEqual(["unavailable", null]);
      await own.close({ timeout: 0 });
    });
  }

  test("a server without TLS, where TLS is required", async () => {
    const listener = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      // What a PostgreSQL without TLS answers to the request for it.
      socket: { data: (socket) => void socket.write("N") },
    });
    const own = openPool(
      { url: `postgres://u@127.0.0.1:${listener.port}/d?sslmode=require` },
      { maxConnections: 1 },
    );
    expect(await outcome(own`SELECT 1`)).toEqual(["unavailable", null]);
    await own.close({ timeout: 0 });
    listener.stop(true);
  });

  test("a server that takes the connection and never answers", async () => {
    const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
    const own = openPool({ url: `postgres://u@127.0.0.1:${listener.port}/d` }, { maxConnections: 1 });
    const from = performance.now();
    expect(await outcome(own`SELECT 1`)).toEqual(["unavailable", null]);
    expect(performance.now() - from).toBeLessThan(7_000);
    await own.close({ timeout: 0 });
    listener.stop(true);
  }, 10_000);

  test("a server that was stopped, and comes back", async () => {
    const sleeping = outcome(db`SELECT pg_sleep(10)`);
    await Bun.sleep(100);
    await server.stop();
    expect((await sleeping)[0]).toBe("unavailable");
    expect((await outcome(db`SELECT 1`))[0]).toBe("unavailable");
    server = await ownServer(directory.path);
    expect(await outcome(db`SELECT 1`)).toBe("no error");
  }, 30_000);
});
