/** Whether an account is good enough to reconcile a cloud with: everything that a run reads, read once and timed. */
import type { Instant } from "../../event/instant.ts";
import type { Environment } from "../../settings.ts";
import { RunFailure } from "../adapter.ts";
import { openSession, paceOf } from "./adapter.ts";
import { Cinder, volumeTypes } from "./cinder.ts";
import { readCloudEntry } from "./clouds-yaml.ts";
import { ServiceFailure } from "./failure.ts";
import {
  listingsOf,
  type OpenStackConfig,
  provenReach,
  type Reach,
  resourceTypesOf,
  type TypeListing,
} from "./listings.ts";
import type { Range } from "./microversion.ts";
import type { Session } from "./session.ts";

/** What came of one type's listing. */
export interface TypeCheck {
  readonly resourceType: string;
  /** Where the service is; null: the catalog doesn't say. */
  readonly endpoint: string | null;
  /** The microversion that is spoken, of those that there are; null: the service has none. */
  readonly version: string | null;
  /** Those that live, and in how many projects. */
  readonly living: number;
  readonly projects: number;
  /** Those that ended lately; null: the type has no such listing. */
  readonly ended: number | null;
  readonly seconds: number;
  /** Why the type can't be read to its end; empty: it can. */
  readonly problems: readonly string[];
  /** All that is seen is the account's own. */
  readonly onlyOwn: boolean;
}

/** What a check found. */
export interface CloudCheck {
  /** The entry of clouds.yaml, its file, and what it led to. */
  readonly account: readonly string[];
  readonly types: readonly TypeCheck[];
  /** What the cloud calls its volume types; null: they can't be read. */
  readonly volumeTypes: readonly string[] | null;
  /** Why the account isn't good enough; empty: it is. */
  readonly problems: readonly string[];
}

/**
 * Logs in, proves the reach, and reads every type, one after the other so that each is timed alone. Changes nothing.
 * @param endedSince from when on servers that ended are listed
 * @param signal breaks off
 */
export async function checkOpenStack(
  config: OpenStackConfig,
  env: Environment,
  endedSince: Instant,
  signal: AbortSignal,
): Promise<CloudCheck> {
  const account: string[] = [];
  try {
    const entry = await readCloudEntry(config.osCloud, env);
    account.push(`entry ${entry.name} of ${entry.file}`);
    const session = await openSession(entry, paceOf(config), signal);
    const region = entry.region === null ? "the only region" : `region ${entry.region}`;
    account.push(
      `logged in at ${entry.keystone} to project ${session.projectId}; ${region}, ${entry.interface} endpoints`,
    );
    const reach = await provenReach(session);
    const unproved =
      "nova" in reach ? [] : [`it isn't proved that the account sees all projects: ${reach.unproved}`];
    if ("nova" in reach) account.push("sees the servers of all projects");
    const types = await checkTypes(session, config, reach, endedSince);
    const names = await volumeTypeNames(session);
    const problems = [
      ...unproved,
      ...types.flatMap(({ resourceType, problems }) => problems.map((one) => `${resourceType}: ${one}`)),
      ...("fault" in names ? [`volume types: ${names.fault}`] : []),
    ];
    return { account, types, volumeTypes: "names" in names ? names.names : null, problems };
  } catch (error) {
    if (!(error instanceof RunFailure)) throw error;
    return { account, types: [], volumeTypes: null, problems: [error.message] };
  }
}

async function checkTypes(
  session: Session,
  config: OpenStackConfig,
  reach: Reach,
  endedSince: Instant,
): Promise<TypeCheck[]> {
  const checks: TypeCheck[] = [];
  for (const listing of listingsOf(session, config, reach, endedSince)) {
    checks.push(await checkType(session, listing, reach));
  }
  return checks.sort(
    (a, b) =>
      resourceTypesOf(config).indexOf(a.resourceType) - resourceTypesOf(config).indexOf(b.resourceType),
  );
}

async function checkType(session: Session, listing: TypeListing, reach: Reach): Promise<TypeCheck> {
  const began = performance.now();
  const living = new Map<string, string>();
  const ended = new Set<string>();
  const problems: string[] = [];
  for await (const page of listing.observations) {
    for (const observation of page) {
      if (observation.kind === "incomplete") problems.push(observation.reason);
      else if (observation.resource.deletedAt !== null) ended.add(observation.resource.resourceId);
      else living.set(observation.resource.resourceId, observation.resource.projectId);
    }
  }
  const seconds = (performance.now() - began) / 1_000;
  for (const id of ended) living.delete(id);
  const projects = new Set(living.values());
  return {
    resourceType: listing.resourceType,
    endpoint: endpointText(session, listing),
    version: await versionText(session, listing, reach),
    living: living.size,
    projects: projects.size,
    ended: listing.resourceType === "instance" ? ended.size : null,
    seconds,
    problems,
    onlyOwn: projects.size === 1 && projects.has(session.projectId),
  };
}

function endpointText(session: Session, { service }: TypeListing): string | null {
  try {
    return session.endpoint(service).href;
  } catch (error) {
    if (error instanceof ServiceFailure) return null;
    throw error;
  }
}

async function versionText(session: Session, { service }: TypeListing, reach: Reach): Promise<string | null> {
  if (service === "compute") return "nova" in reach ? spoken(reach.nova) : null;
  if (service !== "block storage") return null;
  try {
    return spoken(await Cinder.open(session));
  } catch (error) {
    // The listing failed of it, too, and says so.
    if (error instanceof ServiceFailure) return null;
    throw error;
  }
}

function spoken({
  version,
  range,
}: {
  readonly version: string | null;
  readonly range: Range | null;
}): string | null {
  if (range === null) return null;
  return `${version ?? "none"} of ${range.least} to ${range.most}`;
}

async function volumeTypeNames(session: Session): Promise<{ names: string[] } | { fault: string }> {
  try {
    return { names: (await volumeTypes(session)).map(({ name }) => name) };
  } catch (error) {
    if (error instanceof ServiceFailure) return { fault: error.message };
    throw error;
  }
}
