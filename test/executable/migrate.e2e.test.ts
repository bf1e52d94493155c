import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ownServer, temporaryDirectory } from "../database/own-server.ts";
import { emptyDatabase } from "../support/database.ts";
import { place, readiness, run, serve, tally } from "./tally.ts";

const MINUTE = 60_000;
/** Every migration that the repository holds, so that none is forgotten in the executable. */
const NAMES = readdirSync(join(import.meta.dir, "../../migrations/reporting"))
  .filter((file) => file.endsWith(".sql"))
  .map((file) => file.slice(0, -".sql".length))
  .sort();

/** What taking these back prints, the newest first. */
function takenBack(names: readonly string[]): string {
  return names
    .map((name) => `${name} taken back\n`)
    .reverse()
    .join("");
}

function states(status: string): string[] {
  return status.split("\n").flatMap((line) => /^\d{4} +\S+ +(\S+)/.exec(line)?.slice(1) ?? []);
}

test(
  "the embedded database: up, down to 4, down to 0, up again",
  async () => {
    const at = place();
    expect((await tally(at, "migrate", "status")).stderr).toStartWith(
      `tally: there is no database in ${at.dataDir}: `,
    );
    const up = await tally(at, "migrate", "up");
    expect([up.code, up.stdout]).toEqual([0, NAMES.map((name) => `${name} applied\n`).join("")]);
    expect((await tally(at, "migrate", "up")).stdout).toBe("nothing to apply\n");
    const some = await tally(at, "migrate", "down", "--to", "4", "--yes");
    expect(some.stdout).toBe(takenBack(NAMES.slice(4)));
    expect(states((await tally(at, "migrate", "status")).stdout)).toEqual([
      ...Array(4).fill("applied"),
      ...NAMES.slice(4).map(() => "pending"),
    ]);
    const all = await tally(at, "migrate", "down", "--to", "0", "--yes");
    expect(all.stdout).toBe(takenBack(NAMES.slice(0, 4)));
    expect((await tally(at, "migrate", "down", "--to", "0", "--yes")).stdout).toBe("nothing to take back\n");
    const served = await serve(at);
    await readiness(served.url, 200);
    expect(states((await tally(at, "migrate", "status")).stdout)).toEqual(NAMES.map(() => "applied"));
    expect(await served.stop()).toBe(0);
    await at.remove();
  },
  MINUTE,
);

describe("an external PostgreSQL", () => {
  const at = place();
  afterAll(at.remove);

  test(
    "is not migrated unasked; commands and readiness say so; migrate up mends it",
    async () => {
      const database = await emptyDatabase();
      const env = { TALLY_REPORTING_DB_URL: database.url };
      const refused = await run(at, { args: ["token", "list"], env });
      expect(refused).toEqual({
        code: 1,
        stdout: "",
        stderr: "tally: the database's schema is older than this Tally: run tally migrate up\n",
      });
      const served = await serve(at, env);
      await readiness(served.url, 503);
      expect((await run(at, { args: ["migrate", "up"], env })).stdout).toBe(
        NAMES.map((name) => `${name} applied\n`).join(""),
      );
      await readiness(served.url, 200);
      // Without a token of its own in the settings, nobody is let into the internal routes.
      const internal = await fetch(`${served.url}/internal/projection/rebuild`, { method: "POST" });
      expect(internal.status).toBe(401);
      expect(await served.stop()).toBe(0);
      await database.drop();
    },
    MINUTE,
  );

  test(
    "is migrated at start when the settings say so",
    async () => {
      const database = await emptyDatabase();
      const served = await serve(at, {
        TALLY_REPORTING_DB_URL: database.url,
        TALLY_REPORTING_AUTO_MIGRATE: "true",
      });
      await readiness(served.url, 200);
      expect(await served.stop()).toBe(0);
      await database.drop();
    },
    MINUTE,
  );

  test(
    "that is down at start, comes, goes and comes back: tally waits and recovers",
    async () => {
      const directory = temporaryDirectory();
      const socket = encodeURIComponent(join(directory.path, "run"));
      const env = {
        TALLY_REPORTING_DB_URL: `postgres://tally@/tally?host=${socket}`,
        TALLY_REPORTING_AUTO_MIGRATE: "true",
      };
      const refused = await run(at, { args: ["token", "list"], env });
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toMatch(/^tally: the database can't be reached: [^\n]+\n$/);
      const served = await serve(at, env);
      await readiness(served.url, 503);
      expect((await fetch(`${served.url}/healthz`)).status).toBe(200);
      for (let round = 1; round <= 2; round++) {
        const server = await ownServer(directory.path);
        await readiness(served.url, 200);
        await server.stop();
        await readiness(served.url, 503);
      }
      expect(await served.stop()).toBe(0);
      directory.remove();
    },
    MINUTE,
  );
});
