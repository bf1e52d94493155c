/** Once a `bun test` run: whatever way it ends, no server and no temporary directory stays behind. */
import { afterAll } from "bun:test";
import { abandonTestServer, stopTestServer } from "./database.ts";

afterAll(stopTestServer);
// `afterAll` doesn't run when the run is interrupted.
process.on("exit", abandonTestServer);
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.on(signal, () => process.exit(code));
