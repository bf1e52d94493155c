/** What a fake OpenStack cloud holds. Items are replaced, never changed in place. */
import type { Instant } from "../../event/instant.ts";

/** A project of Keystone. */
export interface Project {
  readonly id: string;
  readonly name: string;
  readonly domainId: string;
}

/** Someone who can log in. */
export interface User {
  readonly id: string;
  readonly name: string;
  readonly domainId: string;
  readonly password: string;
  /** Role names by project id. */
  readonly roles: ReadonlyMap<string, readonly string[]>;
  readonly applicationCredential: {
    readonly id: string;
    readonly secret: string;
    readonly projectId: string;
  } | null;
}

export interface Flavor {
  readonly id: string;
  readonly name: string;
  readonly vcpus: number;
  readonly ramMb: number;
  readonly diskGb: number;
  readonly ephemeralGb: number;
  readonly isPublic: boolean;
}

export interface VolumeType {
  readonly id: string;
  readonly name: string;
  readonly isPublic: boolean;
  readonly createdAt: Instant;
}

/** A server. It stays when it is deleted, as nova's database keeps it. */
export interface Server {
  readonly id: string;
  readonly name: string;
  readonly projectId: string;
  readonly userId: string;
  readonly flavor: Flavor;
  /** As nova says it: `active`, `building`, `stopped`, `shelved_offloaded`, `soft-delete`, `deleted`, … */
  readonly vmState: string;
  readonly taskState: string | null;
  /** Null where no host ever took it. */
  readonly host: string | null;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
  readonly launchedAt: Instant | null;
  readonly terminatedAt: Instant | null;
}

export interface Volume {
  readonly id: string;
  readonly name: string;
  readonly projectId: string;
  readonly userId: string;
  readonly status: string;
  readonly sizeGb: number;
  readonly type: VolumeType;
  readonly attachedTo: string | null;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}

export interface FloatingIp {
  readonly id: string;
  readonly projectId: string;
  readonly address: string;
  readonly portId: string | null;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}

export interface Image {
  readonly id: string;
  readonly name: string;
  readonly owner: string | null;
  readonly status: string;
  /** Null until there is data. */
  readonly bytes: number | null;
  readonly visibility: "public" | "private" | "shared" | "community";
  readonly hidden: boolean;
  /** Projects that it is shared with. */
  readonly members: readonly string[];
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}

export interface LoadBalancer {
  readonly id: string;
  readonly name: string;
  readonly projectId: string;
  readonly provisioningStatus: string;
  readonly listeners: number;
  readonly pools: number;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}
