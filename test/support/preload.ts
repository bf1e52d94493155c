/** Once a `bun test` run: a server for all, and whatever way the run ends, nothing stays behind. */
import { afterAll, beforeAll } from "bun:test";
import { abandonTestServer, startTestServer, stopTestServer } from "./database.ts";

// Here and not at the first use: a test file's own hooks have five seconds, and a cold, busy machine needs more.
beforeAll(startTestServer, 120_000);
afterAll(stopTestServer, 60_000);
// `afterAll` doesn't run when the run is interrupted.
process.on("exit", abandonTestServer);
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.on(signal, () => process.exit(code));
