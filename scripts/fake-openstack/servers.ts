/** What happens to servers. */
import type { Server } from "../../src/demo/openstack/model.ts";
import { hexId } from "../../src/demo/openstack/world.ts";
import type { Instant } from "../../src/event/instant.ts";
import { flavorSize, serverFacts } from "./facts.ts";
import { DELETED_FLAVOR, FLAVORS, later, PROJECTS } from "./furnishing.ts";
import type { Happenings } from "./happenings.ts";
import type { Random } from "./random.ts";

/** A server that has been running since. */
export function newServer(random: Random, since: Instant): Server {
  const { id: projectId } = random.pick(PROJECTS);
  return {
    id: random.uuid(),
    name: random.pick(["web", "db", "worker", "Knoten ☃", "研究"]),
    projectId,
    userId: hexId(`user of ${projectId}`),
    flavor: random.chance(0.02) ? DELETED_FLAVOR : random.pick(FLAVORS),
    vmState: "active",
    taskState: null,
    host: random.pick(["node-1", "node-2"]),
    createdAt: since,
    updatedAt: since,
    launchedAt: since,
    terminatedAt: null,
  };
}

/** One thing that can be done to a server. */
interface Action {
  readonly task: string;
  /** What a collector is told; null where it is told nothing, because nothing billable changed. */
  readonly eventType: string | null;
  readonly apply: (server: Server, random: Random) => Server;
}

function becomes(vmState: string): (server: Server) => Server {
  return (server) => ({ ...server, vmState });
}

const POWER_OFF = {
  task: "powering-off",
  eventType: "compute.instance.power_off",
  apply: becomes("stopped"),
};
const REBOOT: Action = { task: "rebooting", eventType: null, apply: (server) => server };
const RESIZE: Action = {
  task: "resize_finish",
  eventType: "compute.instance.resize.end",
  apply: (server, random) => ({ ...server, flavor: random.pick(FLAVORS), vmState: "resized" }),
};

/** What can be done to a server in a state. */
const ACTIONS: ReadonlyMap<string, readonly [Action, ...Action[]]> = new Map([
  [
    "active",
    [
      POWER_OFF,
      REBOOT,
      RESIZE,
      RESIZE,
      { task: "pausing", eventType: "compute.instance.pause", apply: becomes("paused") },
      { task: "suspending", eventType: "compute.instance.suspend", apply: becomes("suspended") },
      { task: "shelving", eventType: "compute.instance.shelve", apply: becomes("shelved_offloaded") },
    ],
  ],
  ["stopped", [{ task: "powering-on", eventType: "compute.instance.power_on", apply: becomes("active") }]],
  ["paused", [{ task: "unpausing", eventType: "compute.instance.unpause", apply: becomes("active") }]],
  ["suspended", [{ task: "resuming", eventType: "compute.instance.resume", apply: becomes("active") }]],
  [
    "shelved_offloaded",
    [{ task: "unshelving", eventType: "compute.instance.unshelve", apply: becomes("active") }],
  ],
  [
    "resized",
    [{ task: "deleting_old", eventType: "compute.instance.resize.confirm.end", apply: becomes("active") }],
  ],
]);

function named({ id }: Server) {
  return { resourceType: "instance", resourceId: id } as const;
}

export function createServer(happenings: Happenings): void {
  const { world, random } = happenings;
  const since = world.now;
  const server = newServer(random, since);
  world.servers.set({ ...server, vmState: "building", taskState: "spawning", launchedAt: null });
  const fails = random.chance(0.02);
  happenings.busy({ type: "instance", id: server.id }, [5, 90], () => {
    const now = world.now;
    // What no host takes has a flavor all the same.
    const made: Server = fails
      ? { ...server, vmState: "error", host: null, updatedAt: now, launchedAt: null }
      : { ...server, updatedAt: now, launchedAt: now };
    world.servers.set(made);
    const eventType = fails ? "compute.instance.create.error" : "compute.instance.create.end";
    const facts = serverFacts(made);
    happenings.turn({ ...named(made), at: since, eventType, facts, size: flavorSize(made.flavor) });
  });
}

export function changeServer(happenings: Happenings, id: string): void {
  const { world, random } = happenings;
  const server = world.servers.get(id);
  const actions = ACTIONS.get(server?.vmState ?? "");
  if (server === undefined || actions === undefined) return;
  const action = random.pick(actions);
  world.servers.set({ ...server, taskState: action.task, updatedAt: world.now });
  happenings.busy({ type: "instance", id }, [5, 90], () => {
    const now = world.now;
    const changed = { ...action.apply(server, random), taskState: null, updatedAt: now, launchedAt: now };
    world.servers.set(changed);
    const { eventType } = action;
    if (eventType === null) return;
    const size = eventType.includes("resize") ? { size: flavorSize(changed.flavor) } : {};
    happenings.turn({ ...named(changed), at: now, eventType, facts: serverFacts(changed), ...size });
  });
}

/** @param soft keeps it for an hour where it can be restored from */
export function deleteServer(happenings: Happenings, id: string, soft: boolean): void {
  const { world, random } = happenings;
  const server = world.servers.get(id);
  if (server === undefined) return;
  world.servers.set({ ...server, taskState: soft ? "soft-deleting" : "deleting", updatedAt: world.now });
  const end = () => {
    const now = world.now;
    const gone: Server = {
      ...server,
      vmState: "deleted",
      taskState: null,
      updatedAt: now,
      terminatedAt: now,
    };
    world.servers.set(gone);
    happenings.turn({ ...named(gone), at: now, eventType: "compute.instance.delete.end", facts: null });
    // The hypervisor's clean-up touches it long after its end.
    happenings.agenda.put(later(now, random.whole(600, 7_200)), () => {
      world.servers.set({ ...gone, updatedAt: world.now });
    });
  };
  happenings.busy({ type: "instance", id }, [2, 30], () => {
    if (!soft) {
      end();
      return;
    }
    const now = world.now;
    const resting: Server = { ...server, vmState: "soft-delete", taskState: null, updatedAt: now };
    world.servers.set(resting);
    const eventType = "compute.instance.soft_delete.end";
    happenings.turn({ ...named(resting), at: now, eventType, facts: serverFacts(resting) });
    happenings.busy({ type: "instance", id }, [3_600, 3_600], end);
  });
}
