/**
 * One of several processes that share the clouds of a database: a scheduler, and a line on stdout for each run. A
 * cloud that it is told to hang on never answers it.
 *
 *   bun scheduler-process.ts DATABASE_URL CLOUDS INTERVAL_S [HANGS_ON]
 */
import { openPool } from "../../src/database/pool.ts";
import { instantFromMicros } from "../../src/event/instant.ts";
import { startScheduler } from "../../src/reconcile/scheduler.ts";
import { runServices } from "./runs.ts";
import { scriptedCloud } from "./scripted-adapter.ts";

const [url = "", clouds = "", interval = "", hangsOn] = process.argv.slice(2);
const db = openPool({ url }, { maxConnections: 4 });
const services = { ...runServices(db), now: () => instantFromMicros(`${Date.now()}000`) };
const configured = Array.from({ length: Number(clouds) }, (_, i) => {
  const name = `cloud-${i}`;
  const { cloud, script } = scriptedCloud(name, [], Number(interval));
  script.beforeListing = async () => {
    console.log(name === hangsOn ? `hangs ${name}` : `runs ${name}`);
    await (name === hangsOn ? new Promise(() => {}) : Bun.sleep(10));
  };
  return cloud;
});
const scheduler = startScheduler(services, configured);
process.on("SIGTERM", async () => {
  await scheduler.stop(5);
  await db.close({ timeout: 1 });
});
