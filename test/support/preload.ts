/**
 * Once a process of `bun test`: a server for all of its files. Where files run in several processes, hooks run for
 * each file, so the server ends with the process, whatever way that ends.
 */
import { afterAll, beforeAll } from "bun:test";
import { startTestServer, stopTestServer } from "./database.ts";

// Here and not at the first use: a test file's own hooks have five seconds, and a cold, busy machine needs more.
beforeAll(startTestServer, 120_000);
// On another's server a template would stay behind; making it anew for each file costs little there.
if (process.env.TALLY_TEST_DB_URL !== undefined) afterAll(stopTestServer, 60_000);
