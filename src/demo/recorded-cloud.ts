/** The recording's cloud, as it was when the recording ended, behind fake services; and what happens in it afterwards. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Instant, parseInstant } from "../event/instant.ts";
import type { ConfiguredCloud } from "../reconcile/adapter.ts";
import { openStackAdapter } from "../reconcile/openstack/adapter.ts";
import type { Flavor, VolumeType } from "./openstack/model.ts";
import { FakeServices } from "./openstack/server.ts";
import { addAccounts, DEFAULT_DOMAIN, uuid, World } from "./openstack/world.ts";
import {
  SAMPLE_CLOUD,
  SAMPLE_EVENTS,
  SAMPLE_PLATFORM,
  SAMPLE_PROJECTS,
  SAMPLE_VOLUME_TYPES,
} from "./sample.ts";

/** What is read of a recorded event. */
const Recorded = Type.Object({
  timestamp: Type.String(),
  event_type: Type.String(),
  resource_type: Type.String(),
  resource_id: Type.String(),
  project_id: Type.String(),
  payload: Type.Object({
    state: Type.Optional(Type.String()),
    size: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  }),
});

/** A resource when the recording ended. */
interface Left {
  readonly type: string;
  readonly id: string;
  readonly projectId: string;
  readonly state: string;
  readonly size: Readonly<Record<string, unknown>>;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}

/** An instant that stands in the source or in the recording. */
export function instantOf(text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant === "string") throw new Error(`${text} ${instant}`);
  return instant;
}

/** The resources that were alive at the end. */
function leftOver(): Left[] {
  const left = new Map<string, Left>();
  const gone = new Set<string>();
  for (const text of SAMPLE_EVENTS) {
    const event = Value.Parse(Recorded, JSON.parse(text));
    const { resource_type: type, resource_id: id, project_id: projectId, payload } = event;
    const at = instantOf(event.timestamp);
    if (event.event_type.split(".").includes("delete")) {
      left.delete(id);
      gone.add(id);
    }
    if (gone.has(id)) continue;
    const before = left.get(id);
    left.set(id, {
      type,
      id,
      projectId,
      state: payload.state ?? before?.state ?? "",
      size: payload.size ?? before?.size ?? {},
      createdAt: before?.createdAt ?? at,
      updatedAt: at,
    });
  }
  return [...left.values()];
}

/** Collectors' words for what nova calls otherwise. */
const VM_STATES: ReadonlyMap<string, string> = new Map([
  ["shutoff", "stopped"],
  ["shelved", "shelved_offloaded"],
]);

function numberIn(size: Readonly<Record<string, unknown>>, member: string): number {
  const value = size[member];
  return typeof value === "number" ? value : 0;
}

function textIn(size: Readonly<Record<string, unknown>>, member: string): string {
  const value = size[member];
  return typeof value === "string" ? value : "";
}

/** A flavor of this size. */
export function flavorOf(name: string, vcpus: number, ramGb: number, diskGb: number): Flavor {
  const ramMb = ramGb * 1_024;
  return { id: uuid(`flavor ${name}`), name, vcpus, ramMb, diskGb, ephemeralGb: 0, isPublic: true };
}

/** The recording's cloud at an instant after its end. */
export function recordedWorld(now: Instant): World {
  const world = new World(now);
  for (const [id, name] of SAMPLE_PROJECTS) world.projects.set(id, { id, name, domainId: DEFAULT_DOMAIN.id });
  const [[ownId, ownName] = ["", ""]] = SAMPLE_PROJECTS;
  addAccounts(world, { id: ownId, name: ownName, domainId: DEFAULT_DOMAIN.id });
  const types = new Map<string, VolumeType>();
  for (const [id, name] of SAMPLE_VOLUME_TYPES) {
    const type = { id, name, isPublic: name !== "archive", createdAt: instantOf("2026-10-26T08:00:00Z") };
    types.set(id, type);
    world.volumeTypes.set(type);
  }
  for (const left of leftOver()) put(world, left, types);
  return world;
}

function put(world: World, left: Left, types: ReadonlyMap<string, VolumeType>): void {
  const { type, id, projectId, state, size, createdAt, updatedAt } = left;
  const common = { id, name: id.slice(0, 8), projectId, userId: uuid(projectId), createdAt, updatedAt };
  switch (type) {
    case "instance": {
      const [vcpus, ramGb, diskGb] = ["vcpus", "ram_gb", "disk_gb"].map((member) => numberIn(size, member));
      const flavor = flavorOf(textIn(size, "flavor"), vcpus ?? 0, ramGb ?? 0, diskGb ?? 0);
      world.flavors.set(flavor);
      const vmState = VM_STATES.get(state) ?? state;
      const since = { launchedAt: createdAt, terminatedAt: null, taskState: null };
      world.servers.set({ ...common, ...since, flavor, vmState, host: "node-1" });
      return;
    }
    case "volume": {
      const volumeType = types.get(textIn(size, "type"));
      if (volumeType === undefined) throw new Error(`volume ${id} has a type that nobody knows`);
      const attachedTo = state === "in-use" ? uuid(id) : null;
      const sizeGb = numberIn(size, "size_gb");
      world.volumes.set({ ...common, status: state, sizeGb, type: volumeType, attachedTo });
      return;
    }
    case "floating_ip": {
      const address = numberIn(size, "ip_version") === 6 ? "2001:db8::5" : "203.0.113.5";
      world.floatingIps.set({ ...common, address, portId: null });
      return;
    }
    case "image": {
      const bytes = numberIn(size, "size_gb") * 2 ** 30;
      const shown = { visibility: "shared", hidden: false, members: [] } as const;
      world.images.set({ ...common, ...shown, owner: projectId, status: "active", bytes });
      return;
    }
    case "loadbalancer": {
      const [listeners, pools] = [numberIn(size, "listeners"), numberIn(size, "pools")];
      world.loadBalancers.set({ ...common, provisioningStatus: "ACTIVE", listeners, pools });
      return;
    }
    default:
      throw new Error(`the recording has a ${type}`);
  }
}

/** The recorded cloud, running. */
export interface RecordedCloud {
  readonly world: World;
  readonly configured: ConfiguredCloud;
  stop(): Promise<void>;
}

/** Starts its services on free ports of the loopback address. @param directory where its clouds.yaml goes */
export function startRecordedCloud(directory: string, now: Instant): RecordedCloud {
  const world = recordedWorld(now);
  const services = new FakeServices(world);
  const file = join(directory, "clouds.yaml");
  const auth = {
    auth_url: services.authUrl,
    application_credential_id: "collector-credential",
    application_credential_secret: "collector-secret",
  };
  // JSON is YAML, too.
  const entry = { auth_type: "v3applicationcredential", auth, region_name: "RegionOne" };
  writeFileSync(file, JSON.stringify({ clouds: { [SAMPLE_CLOUD]: entry } }), { mode: 0o600 });
  const environment = { HOME: directory, OS_CLIENT_CONFIG_FILE: file };
  const configured: ConfiguredCloud = {
    cloud: SAMPLE_CLOUD,
    platform: SAMPLE_PLATFORM,
    intervalSeconds: 0,
    adapter: openStackAdapter({ osCloud: SAMPLE_CLOUD, includeOctavia: true }, environment),
  };
  return { world, configured, stop: () => services.stopAll() };
}
