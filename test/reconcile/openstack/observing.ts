/** Reads a cloud as a run does, and writes what it was told in short lines. */
import { formatInstant, type Instant, parseInstant } from "../../../src/event/instant.ts";
import { type Observation, type ObservedResource, RunFailure } from "../../../src/reconcile/adapter.ts";
import { type OpenStackConfig, openStackAdapter } from "../../../src/reconcile/openstack/adapter.ts";
import type { Pace } from "../../../src/reconcile/openstack/transport.ts";

/** Patient enough for this machine, and nowhere near as patient as in production. */
export const HASTY: Pace = { timeoutMs: 10_000, firstWaitMs: 1 };

/** An instant of a test. */
export function at(text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant === "string") throw new Error(`${text}: ${instant}`);
  return instant;
}

const CONFIG: OpenStackConfig = { osCloud: "zed", includeOctavia: true };

/** What a run would be told. */
export interface Told {
  readonly resources: readonly ObservedResource[];
  /** Type and reason of what was not read to its end. */
  readonly incomplete: readonly string[];
}

/** Logs in and reads everything. */
export async function observe(
  env: Readonly<Record<string, string>>,
  deletedSince: Instant | null = null,
  config = CONFIG,
): Promise<Told> {
  const adapter = openStackAdapter(config, env, HASTY);
  const session = await adapter.open({ signal: new AbortController().signal });
  return told(session.observe(deletedSince));
}

export async function told(observations: AsyncIterable<Observation>): Promise<Told> {
  const resources: ObservedResource[] = [];
  const incomplete: string[] = [];
  for await (const observation of observations) {
    if (observation.kind === "resource") resources.push(observation.resource);
    else incomplete.push(`${observation.resourceType}: ${observation.reason}`);
  }
  return { resources, incomplete };
}

/** The projects of the recorded cloud, by the first digits of their ids. */
const PROJECTS: Readonly<Record<string, string>> = {
  "1bc556d8a78249379a07b5a94c533e7a": "acme",
  "7fedb5827e4840fa9762598eeae19a44": "zürich",
  "95666c2b201543178a065ad5e12391fd": "umbra",
  c2cf1c966f8d424fbc7208413dec4d4f: "partners",
  d2edcf6834d1481ab0dfe0a7853c72d1: "admin",
};

/** `257fe5d3 acme active {"vcpus":6,…} created 2026-10-28T10:00:18Z`, sorted. */
export function lines({ resources }: Told, type: string): string[] {
  return resources
    .filter((one) => one.resourceType === type)
    .map((one) => {
      const who = `${one.resourceId.slice(0, 8)} ${PROJECTS[one.projectId] ?? one.projectId}`;
      if (one.deletedAt !== null) return `${who} ended ${formatInstant(one.deletedAt)}`;
      const created = one.createdAt === null ? "never" : formatInstant(one.createdAt);
      return `${who} ${one.state} ${one.size} created ${created}`;
    })
    .sort();
}

/** The message of the failure that ends a run before anything is listed; anything else is thrown on. */
export async function refusalOf(opening: Promise<unknown>): Promise<string> {
  try {
    await opening;
  } catch (error) {
    if (error instanceof RunFailure) return error.message;
    throw error;
  }
  throw new Error("it was let in");
}
