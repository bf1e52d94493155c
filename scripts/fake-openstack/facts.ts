/** What is true of a resource, in the words of events: what a perfect record would say about it. */
import type {
  Flavor,
  FloatingIp,
  Image,
  LoadBalancer,
  Server,
  Volume,
} from "../../src/demo/openstack/model.ts";
import type { Instant } from "../../src/event/instant.ts";

export type ResourceType = "instance" | "volume" | "floating_ip" | "image" | "loadbalancer";

/** What is billed by. */
export interface Facts {
  readonly state: string;
  readonly size: Readonly<Record<string, number | string>>;
  readonly projectId: string;
}

/** One resource's whole life. */
export interface TrueLife {
  readonly resourceType: ResourceType;
  readonly resourceId: string;
  /** From each instant on it was like that; null: it was gone. */
  readonly steps: { readonly at: Instant; readonly facts: Facts | null }[];
}

const STATES = new Map([
  ["stopped", "shutoff"],
  ["shelved_offloaded", "shelved"],
]);

export function flavorSize(flavor: Flavor): Record<string, number | string> {
  return {
    vcpus: flavor.vcpus,
    ram_gb: flavor.ramMb / 1_024,
    disk_gb: flavor.diskGb + flavor.ephemeralGb,
    flavor: flavor.name,
  };
}

export function serverFacts(server: Server): Facts {
  const state = STATES.get(server.vmState) ?? server.vmState;
  return { state, size: flavorSize(server.flavor), projectId: server.projectId };
}

export function volumeFacts({ status, sizeGb, type, projectId }: Volume): Facts {
  return { state: status, size: { size_gb: sizeGb, type: type.name }, projectId };
}

export function floatingIpFacts({ address, projectId }: FloatingIp): Facts {
  return { state: "active", size: { ip_version: address.includes(":") ? 6 : 4 }, projectId };
}

export function imageFacts({ bytes, owner }: Image): Facts {
  return { state: "active", size: { size_gb: (bytes ?? 0) / 2 ** 30 }, projectId: owner ?? "" };
}

export function loadBalancerFacts({ listeners, pools, projectId }: LoadBalancer): Facts {
  return { state: "active", size: { listeners, pools }, projectId };
}
