/** A database that falls silent: nothing waits for ever, and everything works again when it speaks. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { FaultyNetwork } from "../../scripts/drills/rig/proxy.ts";
import { parseDatabaseUrl } from "../../src/database/address.ts";
import { NoRoom, refusingWrites, roomFinding } from "../../src/database/embedded/room.ts";
import { faultOf } from "../../src/database/faults.ts";
import { openBeside } from "../../src/database/pool.ts";
import { openWatchedPool } from "../../src/database/watched-pool.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

let database: TestDatabase;
let network: FaultyNetwork;
let url: string;

beforeAll(async () => {
  database = await testDatabase();
  const address = parseDatabaseUrl(database.url);
  if (typeof address === "string") throw new Error(address);
  const { host, port, user, password } = address;
  const unix = host.startsWith("/");
  network = await FaultyNetwork.start(unix ? { path: join(host, `.s.PGSQL.${port}`) } : { host, port });
  url = `postgres://${user}:${password}@127.0.0.1:${network.port}/${address.database}?sslmode=disable`;
});
afterAll(async () => {
  await network.stop();
  await database.drop();
});

test("statements, transactions and those that wait for a connection fail as unavailable, and then all is well", async () => {
  let silences = 0;
  const pool = openWatchedPool(
    { url },
    { maxConnections: 2, silenceMs: 300, everyMs: 50, onSilence: () => silences++ },
  );
  await Promise.all([pool.db`SELECT pg_sleep(0.1)`, pool.db`SELECT pg_sleep(0.1)`]);
  network.swallowing = true;
  const from = performance.now();
  const faults = await Promise.all(
    [
      (async () => await pool.db`SELECT 1`)(),
      pool.db.begin(async (tx) => await tx`SELECT 1`),
      pool.db.unsafe("SELECT 1").then((rows) => rows),
      pool.db.begin(async (tx) => await tx`SELECT 1`),
    ].map((work) =>
      work.then(
        () => "none",
        (error) => faultOf(error),
      ),
    ),
  );
  expect(faults).toEqual(["unavailable", "unavailable", "unavailable", "unavailable"]);
  expect(performance.now() - from).toBeLessThan(3_000);
  expect(silences).toBe(1);
  network.swallowing = false;
  // Connections that were begun while nothing went through are waited for, at most as long as one may take to open.
  const [row] = await pool.db`SELECT 1 AS one`;
  expect(row.one).toBe(1);
  const beside = openBeside(pool.db);
  expect(await beside`SELECT 1`).toHaveLength(1);
  await beside.close({ timeout: 0 });
  await pool.close(1);
}, 20_000);

test("a statement that takes its time is no silence", async () => {
  let silences = 0;
  const pool = openWatchedPool(
    { url },
    { maxConnections: 1, silenceMs: 300, everyMs: 50, onSilence: () => silences++ },
  );
  await pool.db`SELECT pg_sleep(1.2)`;
  expect(silences).toBe(0);
  await pool.close(1);
});

test("without room what may write is refused, and what reads is not", async () => {
  let full: string | null = null;
  const db = refusingWrites(database.db, () => full);
  expect(await db.begin(async (tx) => await tx`SELECT 1`)).toHaveLength(1);
  full = "full";
  const refused = await db.begin(async () => 1).catch((error) => error);
  expect(refused).toBeInstanceOf(NoRoom);
  expect(faultOf(refused)).toBe("unavailable");
  expect(await db`SELECT 1`).toHaveLength(1);
  expect(await db.begin("read only", async (tx) => await tx`SELECT 1`)).toHaveLength(1);
});

test("what is left on a disk, in words", () => {
  expect(roomFinding("/", 0)).toBeNull();
  expect(roomFinding("/", Number.MAX_SAFE_INTEGER)).toStartWith("the disk that holds the database is full: ");
});
