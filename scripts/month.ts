/**
 * A month in a fake cloud: every ten minutes of it a reconciliation run, with a tenth of the events lost, some doubled
 * and some late. In the end the record must be what is true, and no resource may be billed further from the truth
 * than one interval for each event of its that was lost. `bun run month -- --help`.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { startInstance } from "../src/commands/instance.ts";
import { makePlace } from "../src/demo/instance.ts";
import { openStackAdapter } from "../src/reconcile/openstack/adapter.ts";
import { USUAL_PACE } from "../src/reconcile/openstack/transport.ts";
import { readSettings } from "../src/settings.ts";
import { createLogger } from "../src/telemetry/log.ts";
import { machineLine } from "./bench/machine.ts";
import { startFakeCloud } from "./fake-openstack/fake-cloud.ts";
import { instant } from "./fake-openstack/furnishing.ts";
import { liveThrough, overdrawn } from "./fake-openstack/month.ts";
import { packPostgres } from "./pack-postgres.ts";

function number(text: string): number {
  const value = Number(text);
  if (!(value >= 0)) throw new InvalidArgumentError("must be a number of at least 0");
  return value;
}

const options = new Command("month")
  .description(
    "lives through a span of a fake cloud's time; fails where the record is further from the truth than allowed",
  )
  .option("--seed <n>", "what everything is drawn from (default: another one each time)", number)
  .option("--resources <n>", "how many resources there are", number, 500)
  .option("--changes <n>", "how many things happen to a resource in a day", number, 1)
  .option("--days <n>", "how long it is", number, 30)
  .option("--lost <share>", "of the events, of one", number, 0.1)
  .option("--doubled <share>", "of the events, of one", number, 0.05)
  .option("--late <share>", "of the events, of one: they come up to two hours late", number, 0.3)
  .option("--settle <s>", "the settle window; a difference inside it waits for the next run", number, 0)
  .parse()
  .opts<{
    seed?: number;
    resources: number;
    changes: number;
    days: number;
    lost: number;
    doubled: number;
    late: number;
    settle: number;
  }>();

const INTERVAL_SECONDS = 600;
const CLOUD = "fake-1";
const seed = options.seed ?? Math.floor(Math.random() * 2 ** 31);

await packPostgres();
const place = makePlace();
const settings = readSettings({
  HOME: place.directory,
  TALLY_DATA_DIR: join(place.directory, "data"),
  TALLY_REPORTING_HTTP_HOST: "127.0.0.1",
  TALLY_REPORTING_HTTP_PORT: "0",
  TALLY_LOG_LEVEL: "ERROR",
  TALLY_REPORTING_SYNC_SETTLE_S: String(options.settle),
  TALLY_REPORTING_SYNC_INTERVAL_S: "0",
});
const cloud = startFakeCloud({
  seed,
  resources: options.resources,
  changesPerDay: options.changes,
  start: instant("2026-11-01T00:00:00Z"),
  cloud: CLOUD,
});
const clouds = join(place.directory, "clouds.yaml");
writeFileSync(clouds, cloud.cloudsYaml(CLOUD));
const tally = await startInstance(
  settings,
  createLogger("ERROR", (line) => process.stderr.write(line)),
);
let failed = false;
try {
  console.log(`${machineLine()}; Bun ${Bun.version}; seed ${seed}`);
  const adapter = openStackAdapter(
    { osCloud: CLOUD, includeOctavia: true },
    { HOME: place.directory, OS_CLIENT_CONFIG_FILE: clouds },
    USUAL_PACE,
  );
  const begun = performance.now();
  const lived = await liveThrough(
    cloud,
    { cloud: CLOUD, platform: "openstack", intervalSeconds: 0, adapter },
    tally.services,
    {
      seed,
      hours: options.days * 24,
      intervalSeconds: INTERVAL_SECONDS,
      losses: { lost: options.lost, doubled: options.doubled, late: options.late, latest: 7_200 },
    },
    (day) => console.error(`day ${day} after ${((performance.now() - begun) / 1_000).toFixed(0)} s`),
  );
  const { events, corrections, verdict } = lived;
  const seconds = (performance.now() - begun) / 1_000;
  const off = verdict.deviations.map(({ micros }) => Number(micros) / 6e7);
  console.log(
    [
      `${options.days} days, ${lived.runs} runs in ${seconds.toFixed(0)} s; ${cloud.living.lives.length} resources were there, ${cloud.living.living} are`,
      `${events.told} events: ${events.lost} lost, ${events.doubled} doubled, ${events.late} late`,
      `corrections: ${corrections.created} created, ${corrections.updated} updated, ${corrections.deleted} deleted`,
      `failed runs and refused events: ${lived.failures.length}`,
      `rows that say something else than is true: ${verdict.wrong.length}`,
      `resources billed otherwise than they were: ${off.length}, ${off.reduce((sum, each) => sum + each, 0).toFixed(0)} minutes in all, ${Math.max(0, ...off).toFixed(1)} the most`,
    ].join("\n"),
  );
  const wrong = [...lived.failures, ...verdict.wrong, ...overdrawn(lived, INTERVAL_SECONDS + options.settle)];
  for (const line of wrong.slice(0, 20)) console.log(`WRONG: ${line}`);
  console.log(wrong.length === 0 ? "As it should be." : `${wrong.length} things are wrong.`);
  failed = wrong.length > 0;
} finally {
  await tally.stop();
  await cloud.stop();
  rmSync(place.directory, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
