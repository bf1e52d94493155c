/** A whole fake cloud in this process: a living world behind its services, and the faults that it is told to have. */
import { FakeServices, type ServerOptions } from "../../src/demo/openstack/server.ts";
import type { ServiceName } from "../../src/demo/openstack/service.ts";
import type { World } from "../../src/demo/openstack/world.ts";
import { Faults } from "./faults.ts";
import { OWN_PROJECT } from "./furnishing.ts";
import { LivingWorld, type WorldOptions } from "./living-world.ts";

/** How a cloud is started. */
export interface FakeCloudOptions extends WorldOptions, Pick<ServerOptions, "port" | "absent" | "tick"> {
  /** The most items of a page; without it 1000, and no limit in neutron. */
  readonly pageLimit?: number;
}

/** The accounts that a fake cloud has; see `addAccounts`. */
export type AccountName = "collector" | "credential" | "reader" | "halfway";

/** What a service was asked for. */
export interface Asked {
  readonly service: ServiceName;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
}

/** A running cloud. */
export interface FakeCloud {
  readonly living: LivingWorld;
  readonly world: World;
  readonly services: FakeServices;
  readonly faults: Faults;
  /** How many requests there were so far. */
  requests: number;
  /** Called with each request before it is answered: the moment for something to happen in between. */
  meanwhile: (asked: Asked) => void;
  /** An entry of a clouds.yaml, by the name `entry`, for one of its accounts. */
  cloudsYaml(entry: string, account?: AccountName): string;
  stop(): Promise<void>;
}

/** Starts a cloud. Its clock stands still until somebody calls `living.advance`. */
export function startFakeCloud(options: FakeCloudOptions): FakeCloud {
  const living = new LivingWorld(options);
  const { world } = living;
  world.pageLimit = options.pageLimit ?? null;
  const faults = new Faults(
    () => services.keystone.revokeAll(),
    (service) => services.hangUp(service),
  );
  const services: FakeServices = new FakeServices(world, {
    ...(options.port === undefined ? {} : { port: options.port }),
    ...(options.absent === undefined ? {} : { absent: options.absent }),
    ...(options.tick === undefined ? {} : { tick: options.tick }),
    intercept: (exchange) => {
      const { method, path, query } = exchange.request;
      const target = `${path}${query.size > 0 ? `?${query}` : ""}`;
      const asked = { service: exchange.service, method, target };
      cloud.requests++;
      cloud.meanwhile(asked);
      return faults.strike(exchange);
    },
  });
  const cloud: FakeCloud = {
    living,
    world,
    services,
    faults,
    requests: 0,
    meanwhile: () => {},
    cloudsYaml: (entry, account = "collector") => cloudsYaml(services.authUrl, entry, account),
    stop: () => services.stopAll(),
  };
  return cloud;
}

/** A clouds.yaml with one entry. */
export function cloudsYaml(authUrl: string, entry: string, account: AccountName): string {
  const lines =
    account === "credential"
      ? [
          "    auth_type: v3applicationcredential",
          "    auth:",
          `      auth_url: ${authUrl}`,
          "      application_credential_id: collector-credential",
          "      application_credential_secret: collector-secret",
        ]
      : [
          "    auth:",
          `      auth_url: ${authUrl}`,
          `      username: ${account}`,
          `      password: ${account}-password`,
          `      project_name: ${account === "collector" ? "collector" : OWN_PROJECT.name}`,
          "      user_domain_name: Default",
          "      project_domain_name: Default",
        ];
  return [
    "clouds:",
    `  ${entry}:`,
    ...lines,
    "    region_name: RegionOne",
    "    identity_api_version: 3",
    "",
  ].join("\n");
}
