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

/** A running cloud. */
export interface FakeCloud {
  readonly living: LivingWorld;
  readonly world: World;
  readonly services: FakeServices;
  readonly faults: Faults;
  /** What was asked so far, in order. */
  readonly requests: { readonly service: ServiceName; readonly method: string; readonly target: string }[];
  /** An entry of a clouds.yaml, by the name `entry`, for one of its accounts. */
  cloudsYaml(entry: string, account?: AccountName): string;
  stop(): Promise<void>;
}

/** Starts a cloud. Its clock stands still until somebody calls `living.advance`. */
export function startFakeCloud(options: FakeCloudOptions): FakeCloud {
  const living = new LivingWorld(options);
  const { world } = living;
  world.pageLimit = options.pageLimit ?? null;
  const requests: FakeCloud["requests"] = [];
  const faults = new Faults(() => services.keystone.revokeAll());
  const services: FakeServices = new FakeServices(world, {
    ...(options.port === undefined ? {} : { port: options.port }),
    ...(options.absent === undefined ? {} : { absent: options.absent }),
    ...(options.tick === undefined ? {} : { tick: options.tick }),
    intercept: (exchange) => {
      const { method, path, query } = exchange.request;
      requests.push({
        service: exchange.service,
        method,
        target: `${path}${query.size > 0 ? `?${query}` : ""}`,
      });
      return faults.strike(exchange);
    },
  });
  return {
    living,
    world,
    services,
    faults,
    requests,
    cloudsYaml: (entry, account = "collector") => cloudsYaml(services.authUrl, entry, account),
    stop: () => services.stopAll(),
  };
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
