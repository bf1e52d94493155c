/** The OpenStack adapter: what a cloud's services hold, told to a reconciliation run. */
import type { Instant } from "../../event/instant.ts";
import type { Environment } from "../../settings.ts";
import type { Adapter, AdapterContext, CloudSession, Observation, ObservedSizeName } from "../adapter.ts";
import { volumeTypes } from "./cinder.ts";
import { type CloudEntry, readCloudEntry } from "./clouds-yaml.ts";
import type { Token } from "./keystone.ts";
import { listingsOf, type OpenStackConfig, provenReach, type Reach, resourceTypesOf } from "./listings.ts";
import { incomplete, inParallel } from "./observing.ts";
import { Session } from "./session.ts";
import { type Pace, Transport, USUAL_PACE } from "./transport.ts";

export type { OpenStackConfig } from "./listings.ts";

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
    const streams = listingsOf(session, this.#config, this.#reach, deletedSince).map(
      (one) => one.observations,
    );
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
