/** The OpenStack adapter: what a cloud's services hold, told to a reconciliation run. */
import type { Instant } from "../../event/instant.ts";
import type { Environment } from "../../settings.ts";
import {
  type Adapter,
  type AdapterContext,
  type CloudSession,
  type Observation,
  type ObservedSizeName,
  RunFailure,
} from "../adapter.ts";
import { Cinder, volumeTypes } from "./cinder.ts";
import { type CloudEntry, readCloudEntry } from "./clouds-yaml.ts";
import { ServiceFailure } from "./failure.ts";
import { images } from "./glance.ts";
import type { Token } from "./keystone.ts";
import { floatingIps } from "./neutron.ts";
import { Nova } from "./nova.ts";
import { incomplete, inParallel, type Observations, tolerant } from "./observing.ts";
import { loadBalancers } from "./octavia.ts";
import { Session } from "./session.ts";
import { type Pace, Transport, USUAL_PACE } from "./transport.ts";

/** What an entry of the clouds file says under `adapter_config`. */
export interface OpenStackConfig {
  /** The entry of clouds.yaml. */
  readonly osCloud: string;
  /** Whether load balancers are read, too. */
  readonly includeOctavia: boolean;
  /** How long one request may take; null or absent: 30. */
  readonly requestTimeoutSeconds?: number | null;
}

export const OPENSTACK = "openstack";

/**
 * Makes the adapter of one cloud. Its settings and credentials are read when a run begins, and again for each run.
 * @param pace how patient it is with the services
 */
export function openStackAdapter(config: OpenStackConfig, env: Environment, pace = USUAL_PACE): Adapter {
  // A token outlives a run: a login a run would be a thousand logins a week.
  let kept: { readonly account: string; readonly token: Token } | null = null;
  return {
    platform: OPENSTACK,
    resourceTypes: resourceTypesOf(config),
    async open({ signal }: AdapterContext): Promise<CloudSession> {
      const entry = await readCloudEntry(config.osCloud, env);
      const account = accountOf(entry);
      const token = kept?.account === account ? kept.token : null;
      kept = null;
      const session = await openSession(entry, paceOf(config, pace), signal, token);
      const reach = await provenReach(session);
      return new OpenStackCloud(session, config, reach, (good) => {
        // One that something failed with is given up: a new one comes with a new catalog.
        kept = good ? { account, token: session.token } : null;
      });
    },
  };
}

/** The types that are enumerated, in the order in which they are told of. */
export function resourceTypesOf({ includeOctavia }: OpenStackConfig): string[] {
  return ["instance", "volume", "floating_ip", "image", ...(includeOctavia ? ["loadbalancer"] : [])];
}

/** The pace that a configuration sets. */
export function paceOf({ requestTimeoutSeconds }: OpenStackConfig, usual = USUAL_PACE): Pace {
  const seconds = requestTimeoutSeconds ?? null;
  return seconds === null ? usual : { ...usual, timeoutMs: seconds * 1_000 };
}

/** @throws {RunFailure} when the login fails */
export function openSession(
  entry: CloudEntry,
  pace: Pace,
  signal: AbortSignal,
  kept: Token | null = null,
): Promise<Session> {
  return Session.open(entry, new Transport(entry.trust, pace), signal, kept);
}

/** By what it is known that an entry names the same account as before, with the same password. */
function accountOf(entry: CloudEntry): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(entry)).digest("hex");
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

/** One run's view of the cloud. */
class OpenStackCloud implements CloudSession {
  readonly #session: Session;
  readonly #config: OpenStackConfig;
  readonly #reach: Reach;
  readonly #keepToken: (good: boolean) => void;

  constructor(session: Session, config: OpenStackConfig, reach: Reach, keepToken: (good: boolean) => void) {
    this.#session = session;
    this.#config = config;
    this.#reach = reach;
    this.#keepToken = keepToken;
  }

  async *observe(deletedSince: Instant | null): AsyncGenerator<Observation> {
    const session = this.#session;
    let good = true;
    if ("unproved" in this.#reach) {
      good = false;
      const { unproved } = this.#reach;
      yield incomplete("instance", unproved);
      for (const type of resourceTypesOf(this.#config).filter((one) => one !== "instance")) {
        yield incomplete(type, `it isn't proved that the account sees all projects: ${unproved}`);
      }
    }
    const streams = listings(session, this.#config, this.#reach, deletedSince);
    for await (const page of inParallel(streams, () => session.abandon())) {
      for (const observation of page) {
        if (observation.kind === "incomplete") good = false;
        yield observation;
      }
    }
    this.#keepToken(good);
  }

  async sizeNames(): Promise<readonly ObservedSizeName[]> {
    return await volumeTypes(this.#session);
  }
}

/** The listings of one run, a stream a service. */
function listings(
  session: Session,
  config: OpenStackConfig,
  reach: Reach,
  deletedSince: Instant | null,
): AsyncGenerator<Observations>[] {
  return [
    ...("nova" in reach ? [tolerant("instance", servers(reach.nova, deletedSince))] : []),
    tolerant("volume", volumes(session)),
    tolerant("floating_ip", floatingIps(session)),
    tolerant("image", images(session)),
    ...(config.includeOctavia ? [tolerant("loadbalancer", loadBalancers(session))] : []),
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
