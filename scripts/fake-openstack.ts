/**
 * A fake OpenStack cloud to develop against: Keystone, nova, cinder, neutron, glance and octavia over one world that
 * is made from a seed and goes on changing by its own clock. `bun run fake-openstack -- --help`; docs/development.md tells more.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { SERVICES, type ServiceName } from "../src/demo/openstack/service.ts";
import { type Instant, instantFromMicros, parseInstant } from "../src/event/instant.ts";
import {
  FAULT_KINDS,
  fail,
  NotUnderstood,
  parseFault,
  parseService,
  startControl,
} from "./fake-openstack/control.ts";
import { type AccountName, cloudsYaml, startFakeCloud } from "./fake-openstack/fake-cloud.ts";
import { later } from "./fake-openstack/furnishing.ts";

function whole(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < least) {
      throw new InvalidArgumentError(`must be a whole number of at least ${least}`);
    }
    return value;
  };
}

function amount(text: string): number {
  const value = Number(text);
  if (!(value >= 0)) throw new InvalidArgumentError("must be a number of at least 0");
  return value;
}

function startOf(text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant === "string") throw new InvalidArgumentError(instant);
  return instant;
}

function understood<T>(parse: (text: string) => T): (text: string, before: T[]) => T[] {
  return (text, before) => {
    try {
      return [...before, parse(text)];
    } catch (error) {
      if (error instanceof NotUnderstood) throw new InvalidArgumentError(error.message);
      throw error;
    }
  };
}

const ACCOUNTS: readonly AccountName[] = ["collector", "credential", "reader", "halfway"];

function account(text: string): AccountName {
  const name = ACCOUNTS.find((known) => known === text);
  if (name === undefined) throw new InvalidArgumentError(`is none of ${ACCOUNTS.join(", ")}`);
  return name;
}

const options = new Command("fake-openstack")
  .description("a fake OpenStack cloud on the loopback address; ends with Ctrl-C")
  .option(
    "--port <n>",
    `Keystone's port; ${SERVICES.slice(1).join(", ")} and the control follow (0: free ones)`,
    whole(0),
    0,
  )
  .option("--seed <n>", "what the cloud is made from", whole(0), 1)
  .option("--resources <n>", "how many resources there are", whole(0), 500)
  .option("--changes <n>", "how many things happen to a resource in a day", amount, 1)
  .option("--soft-delete", "deleted servers can be restored for an hour first")
  .option("--start <instant>", "what the cloud's clock says at first (default: now)", startOf)
  .option("--speed <factor>", "how fast that clock runs; 0: it stands still", amount, 1)
  .option("--clock-off <s>", "seconds by which the clock is ahead (below 0: behind)", Number, 0)
  .option("--page-limit <n>", "the most items of a page", whole(1))
  .option("--token-seconds <s>", "how long a token lasts", whole(1), 3_600)
  .option(
    "--absent <service>",
    "a service that the catalog leaves out (repeatable)",
    understood(parseService),
    [],
  )
  .option(
    "--fault <rule>",
    `SERVICE:KIND[=VALUE][:containing=TEXT][:skip=N][:times=N], like nova:status=503:times=2 or cinder:slow=9000; kinds: ${FAULT_KINDS.join(", ")} (repeatable)`,
    understood(parseFault),
    [],
  )
  .option("--cloud <name>", "the cloud's name in Tally and its entry's in clouds.yaml", "fake-1")
  .option("--account <name>", `whose account the files name: ${ACCOUNTS.join(", ")}`, account, "collector")
  .option("--write <dir>", "writes clouds.yaml and tally-clouds.yaml there")
  .parse()
  .opts<{
    port: number;
    seed: number;
    resources: number;
    changes: number;
    softDelete?: boolean;
    start?: Instant;
    speed: number;
    clockOff: number;
    pageLimit?: number;
    tokenSeconds: number;
    absent: ServiceName[];
    fault: unknown[];
    cloud: string;
    account: AccountName;
    write?: string;
  }>();

const wallStart = Date.now();
const cloudStart = later(options.start ?? instantFromMicros(`${wallStart}000`), options.clockOff);
const cloud = startFakeCloud({
  seed: options.seed,
  resources: options.resources,
  changesPerDay: options.changes,
  softDelete: options.softDelete === true,
  start: cloudStart,
  cloud: options.cloud,
  port: options.port,
  absent: options.absent,
  ...(options.pageLimit === undefined ? {} : { pageLimit: options.pageLimit }),
  tick: () => {
    if (options.speed === 0) return;
    cloud.living.advance(later(cloudStart, ((Date.now() - wallStart) / 1_000) * options.speed));
  },
});
cloud.services.keystone.tokenSeconds = options.tokenSeconds;
for (const rule of options.fault) await fail(cloud, rule);
const control = startControl(cloud, options.port === 0 ? 0 : options.port + SERVICES.length);

const yaml = cloudsYaml(cloud.services.authUrl, options.cloud, options.account);
const tallyYaml = [
  "clouds:",
  `  - cloud: ${options.cloud}`,
  "    platform: openstack",
  "    adapter: openstack",
  "    adapter_config:",
  `      os_cloud: ${options.cloud}`,
  "      include_octavia: true",
  "",
].join("\n");
console.log(
  `${options.resources} resources, seed ${options.seed}; control: http://127.0.0.1:${control.port}/`,
);
if (options.write === undefined) {
  console.log(`\n# clouds.yaml\n${yaml}\n# what TALLY_REPORTING_CLOUDS_CONFIG names\n${tallyYaml}`);
} else {
  mkdirSync(options.write, { recursive: true });
  const directory = resolve(options.write);
  writeFileSync(join(directory, "clouds.yaml"), yaml, { mode: 0o600 });
  writeFileSync(join(directory, "tally-clouds.yaml"), tallyYaml);
  console.log(`OS_CLIENT_CONFIG_FILE=${join(directory, "clouds.yaml")}`);
  console.log(`TALLY_REPORTING_CLOUDS_CONFIG=${join(directory, "tally-clouds.yaml")}`);
}
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(0));
