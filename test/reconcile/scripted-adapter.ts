/** A cloud that a test makes up, and an adapter that tells what the test says. */
import { type Instant, parseInstant } from "../../src/event/instant.ts";
import type {
  AdapterContext,
  CloudSession,
  ConfiguredCloud,
  Observation,
  ObservedResource,
  ObservedSizeName,
} from "../../src/reconcile/adapter.ts";

/** An instant by its text. */
export function at(text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant === "string") throw new Error(`${text} ${instant}`);
  return instant;
}

export const SMALL = '{"vcpus":2,"ram_gb":4,"disk_gb":40,"flavor":"m1.small"}';
export const LARGE = '{"vcpus":8,"ram_gb":16,"disk_gb":80,"flavor":"m1.large"}';

/** An instance that has been active for long, but for what is said otherwise. */
export function instance(resourceId: string, changed: Partial<ObservedResource> = {}): ObservedResource {
  return {
    resourceType: "instance",
    resourceId,
    projectId: "shop",
    state: "active",
    size: SMALL,
    provider: { id: resourceId },
    inTransition: false,
    createdAt: at("2026-03-01T00:00:00Z"),
    changedAt: at("2026-03-01T00:05:00Z"),
    deletedAt: null,
    ...changed,
  };
}

/** The end of an instance, as a listing of the ended reports it. */
export function ended(resourceId: string, deletedAt: string): ObservedResource {
  return instance(resourceId, { state: null, size: null, deletedAt: at(deletedAt) });
}

/** What the cloud says the next time it is asked. */
export interface Script {
  resources: ObservedResource[];
  /** Type → why it was not read to its end. */
  incomplete: Record<string, string>;
  sizeNames: ObservedSizeName[] | Error;
  /** Refuses the run before anything is observed. */
  refuses: Error | null;
  /** Runs before anything is observed, behind the login. */
  beforeListing: (signal: AbortSignal) => Promise<void>;
  /** Runs when everything has been observed. */
  afterListing: () => Promise<void>;
}

/** A cloud, its script, and what it was asked. */
export interface ScriptedCloud {
  readonly cloud: ConfiguredCloud;
  readonly script: Script;
  /** From when on ended resources were asked for, a run each. */
  readonly asked: (Instant | null)[];
}

/** A cloud of platform openstack that enumerates instances and volumes. */
export function scriptedCloud(
  name = "eu1",
  resources: ObservedResource[] = [],
  intervalSeconds: number | null = null,
): ScriptedCloud {
  const script: Script = {
    resources,
    incomplete: {},
    sizeNames: [],
    refuses: null,
    beforeListing: async () => {},
    afterListing: async () => {},
  };
  const asked: (Instant | null)[] = [];
  const session = ({ signal }: AdapterContext): CloudSession => ({
    async *observe(deletedSince): AsyncGenerator<Observation> {
      asked.push(deletedSince);
      await script.beforeListing(signal);
      for (const resource of script.resources) yield { kind: "resource", resource };
      for (const [resourceType, reason] of Object.entries(script.incomplete))
        yield { kind: "incomplete", resourceType, reason };
      await script.afterListing();
    },
    async sizeNames() {
      if (script.sizeNames instanceof Error) throw script.sizeNames;
      return script.sizeNames;
    },
  });
  const adapter = {
    platform: "openstack",
    resourceTypes: ["instance", "volume"],
    async open(context: AdapterContext) {
      if (script.refuses !== null) throw script.refuses;
      return session(context);
    },
  };
  return { cloud: { cloud: name, platform: "openstack", intervalSeconds, adapter }, script, asked };
}
