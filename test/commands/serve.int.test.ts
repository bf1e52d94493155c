import { expect, test } from "bun:test";
import { testDatabase } from "../support/database.ts";

test("any free port is told, however little is logged", async () => {
  const database = await testDatabase();
  const child = Bun.spawn([process.execPath, "src/main.ts", "serve"], {
    env: {
      TALLY_REPORTING_DB_URL: database.url,
      TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
      TALLY_REPORTING_HTTP_PORT: "0",
      TALLY_LOG_LEVEL: "ERROR",
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  let url: string | undefined;
  for await (const chunk of child.stderr) {
    url = /^tally listens on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(new TextDecoder().decode(chunk))?.[1];
    break;
  }
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect(await child.stdout.text()).toBe("");
  await database.drop();
}, 60_000);
