/** What happens to volumes. */
import type { Volume } from "../../src/demo/openstack/model.ts";
import { hexId } from "../../src/demo/openstack/world.ts";
import type { Instant } from "../../src/event/instant.ts";
import { volumeFacts } from "./facts.ts";
import { PROJECTS, VOLUME_TYPES } from "./furnishing.ts";
import type { Happenings } from "./happenings.ts";
import type { Random } from "./random.ts";

export function newVolume(random: Random, since: Instant): Volume {
  const { id: projectId } = random.pick(PROJECTS);
  return {
    id: random.uuid(),
    name: random.pick(["data", "", "backup ☃", "Daten"]),
    projectId,
    userId: hexId(`user of ${projectId}`),
    status: "available",
    sizeGb: random.whole(1, 500),
    type: random.pick(VOLUME_TYPES),
    attachedTo: null,
    createdAt: since,
    updatedAt: since,
  };
}

/** The bus names a volume's type by its id; only the API names it by its name. */
export function sizeOnTheBus({ sizeGb, type }: Volume): Record<string, number | string> {
  return { size_gb: sizeGb, type: type.id };
}

interface Action {
  /** Its status while that is going on. */
  readonly status: string;
  readonly eventType: string;
  readonly tellsSize: boolean;
  readonly apply: (volume: Volume, random: Random) => Volume;
}

const ATTACH: Action = {
  status: "attaching",
  eventType: "volume.attach.end",
  tellsSize: false,
  apply: (volume, random) => ({ ...volume, status: "in-use", attachedTo: random.uuid() }),
};
const DETACH: Action = {
  status: "detaching",
  eventType: "volume.detach.end",
  tellsSize: false,
  apply: (volume) => ({ ...volume, status: "available", attachedTo: null }),
};
const EXTEND: Action = {
  status: "extending",
  eventType: "volume.resize.end",
  tellsSize: true,
  apply: (volume, random) => ({ ...volume, sizeGb: volume.sizeGb + random.whole(1, 50) }),
};
const RETYPE: Action = {
  status: "retyping",
  eventType: "volume.retype",
  tellsSize: true,
  apply: (volume, random) => ({ ...volume, type: random.pick(VOLUME_TYPES) }),
};
const TRANSFER: Action = {
  status: "available",
  eventType: "volume.transfer.accept.end",
  tellsSize: true,
  apply: (volume, random) => ({ ...volume, projectId: random.pick(PROJECTS).id }),
};

function named({ id }: Volume) {
  return { resourceType: "volume", resourceId: id } as const;
}

export function createVolume(happenings: Happenings): void {
  const { world, random } = happenings;
  const since = world.now;
  const volume = newVolume(random, since);
  world.volumes.set({ ...volume, status: "creating" });
  happenings.busy({ type: "volume", id: volume.id }, [2, 60], () => {
    const made = { ...volume, updatedAt: world.now };
    world.volumes.set(made);
    const eventType = "volume.create.end";
    happenings.turn({
      ...named(made),
      at: since,
      eventType,
      facts: volumeFacts(made),
      size: sizeOnTheBus(made),
    });
  });
}

export function changeVolume(happenings: Happenings, id: string): void {
  const { world, random } = happenings;
  const volume = world.volumes.get(id);
  if (volume === undefined) return;
  const action =
    volume.attachedTo === null
      ? random.pick([ATTACH, ATTACH, EXTEND, RETYPE, TRANSFER])
      : random.pick([DETACH, DETACH, EXTEND]);
  world.volumes.set({ ...volume, status: action.status, updatedAt: world.now });
  happenings.busy({ type: "volume", id }, [2, 60], () => {
    const changed = { ...action.apply(volume, random), updatedAt: world.now };
    world.volumes.set(changed);
    const size = action.tellsSize ? { size: sizeOnTheBus(changed) } : {};
    const facts = volumeFacts(changed);
    happenings.turn({ ...named(changed), at: world.now, eventType: action.eventType, facts, ...size });
  });
}

export function deleteVolume(happenings: Happenings, id: string): void {
  const { world } = happenings;
  const volume = world.volumes.get(id);
  if (volume === undefined) return;
  world.volumes.set({ ...volume, status: "deleting", updatedAt: world.now });
  happenings.busy({ type: "volume", id }, [2, 60], () => {
    world.volumes.delete(id);
    happenings.turn({ ...named(volume), at: world.now, eventType: "volume.delete.end", facts: null });
  });
}
