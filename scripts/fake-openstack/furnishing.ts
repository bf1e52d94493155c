/** What every fake cloud has before anything happens in it: projects, flavors, volume types. */
import type { Flavor, Project, VolumeType } from "../../src/demo/openstack/model.ts";
import { addAccounts, DEFAULT_DOMAIN, hexId, uuid, type World } from "../../src/demo/openstack/world.ts";
import { type Instant, parseInstant } from "../../src/event/instant.ts";

/** An instant that stands in the source. */
export function instant(text: string): Instant {
  const parsed = parseInstant(text);
  if (typeof parsed === "string") throw new Error(`${text} ${parsed}`);
  return parsed;
}

/** So many seconds later. */
export function later(from: Instant, seconds: number): Instant {
  return (from + BigInt(Math.round(seconds * 1e6))) as Instant;
}

function project(name: string): Project {
  return { id: hexId(`project ${name}`), name, domainId: DEFAULT_DOMAIN.id };
}

/** The project of the accounts that see only their own. */
export const OWN_PROJECT = project("acme-prod");

export const PROJECTS: readonly [Project, ...Project[]] = [
  OWN_PROJECT,
  project("acme-test"),
  project("Zürich-研究"),
  project('umbra "legacy"'),
  project("partners"),
];

function flavor(
  name: string,
  vcpus: number,
  ramMb: number,
  diskGb: number,
  more: Partial<Flavor> = {},
): Flavor {
  return { id: uuid(`flavor ${name}`), name, vcpus, ramMb, diskGb, ephemeralGb: 0, isPublic: true, ...more };
}

export const FLAVORS: readonly [Flavor, ...Flavor[]] = [
  flavor("m1.tiny", 1, 512, 1, { id: "1" }),
  flavor("m1.small", 1, 2_048, 20, { id: "2" }),
  flavor("m1.medium", 2, 4_096, 40),
  flavor("m1.large", 4, 8_192, 80),
  flavor("c1.scratch", 2, 3_072, 30, { ephemeralGb: 10 }),
  flavor("r1.odd", 1, 1_536, 0),
  flavor("acme.special", 6, 12_288, 100, { isPublic: false }),
];

/** Deleted, but servers still have it; another flavor goes by its name now. */
export const DELETED_FLAVOR = flavor("m1.tiny", 1, 256, 1, { id: uuid("the first m1.tiny") });

function volumeType(name: string, isPublic: boolean): VolumeType {
  return { id: uuid(`volume type ${name}`), name, isPublic, createdAt: instant("2026-01-01T00:00:00Z") };
}

export const VOLUME_TYPES: readonly [VolumeType, ...VolumeType[]] = [
  volumeType("ssd", true),
  volumeType("archive", false),
  volumeType("__DEFAULT__", true),
];

/** Puts all of it, and the accounts, into an empty world. */
export function furnish(world: World): void {
  for (const each of PROJECTS) world.projects.set(each.id, each);
  for (const each of FLAVORS) world.flavors.set(each);
  for (const each of VOLUME_TYPES) world.volumeTypes.set(each);
  addAccounts(world, OWN_PROJECT);
}
