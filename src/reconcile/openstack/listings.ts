/** What is read of a cloud: which types, from which services, behind which proof. */
import type { Instant } from "../../event/instant.ts";
import { RunFailure } from "../adapter.ts";
import { Cinder } from "./cinder.ts";
import { ServiceFailure } from "./failure.ts";
import { images } from "./glance.ts";
import { floatingIps } from "./neutron.ts";
import { Nova } from "./nova.ts";
import { type Observations, tolerant } from "./observing.ts";
import { loadBalancers } from "./octavia.ts";
import type { ServiceName, Session } from "./session.ts";

/** What an entry of the clouds file says under `adapter_config`. */
export interface OpenStackConfig {
  /** The entry of clouds.yaml. */
  readonly osCloud: string;
  /** Whether load balancers are read, too. */
  readonly includeOctavia: boolean;
  /** How long one request may take; null or absent: 30. */
  readonly requestTimeoutSeconds?: number | null;
}

/** The types that are enumerated. */
export function resourceTypesOf({ includeOctavia }: OpenStackConfig): string[] {
  return ["instance", "volume", "floating_ip", "image", ...(includeOctavia ? ["loadbalancer"] : [])];
}

/** Nova, where it answered; else why it didn't, and nobody knows how far the account sees. */
export type Reach = { readonly nova: Nova } | { readonly unproved: string };

/**
 * Proves that the account sees the servers of all projects: cinder, neutron and glance answer an account that
 * doesn't with what it sees, and don't say so.
 * @throws {RunFailure} when nova refuses
 */
export async function provenReach(session: Session): Promise<Reach> {
  const { name, file } = session.entry;
  try {
    const nova = await Nova.open(session);
    const fault = await nova.reachFault();
    if (fault === null) return { nova };
    throw new RunFailure(
      `${name} in ${file}: the account may not list the servers of all projects (${fault}): ` +
        "give its user the role admin on the project that it logs in to",
    );
  } catch (error) {
    if (error instanceof ServiceFailure) return { unproved: error.message };
    throw error;
  }
}

/** One type's listing. */
export interface TypeListing {
  readonly resourceType: string;
  readonly service: ServiceName;
  /** Asks for nothing before it is read; a listing that fails ends with an observation that says so. */
  readonly observations: AsyncGenerator<Observations>;
}

/** The listings of one run; without nova, those that are left. */
export function listingsOf(
  session: Session,
  config: OpenStackConfig,
  reach: Reach,
  deletedSince: Instant | null,
): TypeListing[] {
  const listing = (
    resourceType: string,
    service: ServiceName,
    observations: AsyncGenerator<Observations>,
  ) => ({
    resourceType,
    service,
    observations: tolerant(resourceType, observations),
  });
  return [
    ...("nova" in reach ? [listing("instance", "compute", servers(reach.nova, deletedSince))] : []),
    listing("volume", "block storage", volumes(session)),
    listing("floating_ip", "network", floatingIps(session)),
    listing("image", "image", images(session)),
    ...(config.includeOctavia ? [listing("loadbalancer", "load balancer", loadBalancers(session))] : []),
  ];
}

/** The living first: a server that ends meanwhile is in both listings rather than in none. */
async function* servers(nova: Nova, deletedSince: Instant | null): AsyncGenerator<Observations> {
  yield* nova.live();
  if (deletedSince !== null) yield* nova.ended(deletedSince);
}

async function* volumes(session: Session): AsyncGenerator<Observations> {
  const cinder = await Cinder.open(session);
  yield* cinder.volumes();
}
