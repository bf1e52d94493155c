/** A fake cloud that lives: from a seed, things are created, changed and deleted as its clock goes on. */
import { World } from "../../src/demo/openstack/world.ts";
import type { Instant } from "../../src/event/instant.ts";
import {
  floatingIpFacts,
  imageFacts,
  loadBalancerFacts,
  type ResourceType,
  serverFacts,
  type TrueLife,
  volumeFacts,
} from "./facts.ts";
import { furnish, later } from "./furnishing.ts";
import { Happenings, type Living, type ToldEvent } from "./happenings.ts";
import { Random } from "./random.ts";
import { changeServer, createServer, deleteServer, newServer } from "./servers.ts";
import {
  changeFloatingIp,
  changeImage,
  changeLoadBalancer,
  createFloatingIp,
  createImage,
  createLoadBalancer,
  deleteFloatingIp,
  deleteImage,
  deleteLoadBalancer,
  newFloatingIp,
  newImage,
  newLoadBalancer,
} from "./small-things.ts";
import { changeVolume, createVolume, deleteVolume, newVolume } from "./volumes.ts";

/** How a world is made. */
export interface WorldOptions {
  readonly seed: number;
  /** What the cloud's clock says at first. */
  readonly start: Instant;
  /** How many resources there are at first; about as many stay. */
  readonly resources: number;
  /** Things that happen to one resource in a day, on average; 0 for a cloud that stands still. */
  readonly changesPerDay?: number;
  /** The cloud's name in the events that are told. */
  readonly cloud?: string;
  /** Deleted servers can be restored for an hour first. */
  readonly softDelete?: boolean;
  /** How long a resource is left alone after something happened to it. */
  readonly restSeconds?: number;
  /** Of each type as many. */
  readonly even?: boolean;
}

/** How often a resource is of a type. */
const TYPES: readonly [readonly [ResourceType, number], ...(readonly [ResourceType, number])[]] = [
  ["instance", 45],
  ["volume", 30],
  ["floating_ip", 13],
  ["image", 8],
  ["loadbalancer", 4],
];

export type Deed = "create" | "change" | "delete";

/** What a world holds that was alive before its clock began. */
const OLDEST_SECONDS = 90 * 86_400;

export class LivingWorld {
  readonly world: World;
  readonly #happenings: Happenings;
  readonly #random: Random;
  readonly #softDelete: boolean;
  readonly #secondsBetween: number | null;
  #calm = false;

  constructor(options: WorldOptions) {
    const { seed, start, resources, changesPerDay = 1, cloud = "fake-1", restSeconds = 1_500 } = options;
    this.#random = new Random(seed);
    this.#softDelete = options.softDelete === true;
    this.world = new World(start);
    this.#happenings = new Happenings(this.world, this.#random, cloud, restSeconds);
    furnish(this.world);
    for (let n = 0; n < resources; n++) {
      this.#add(
        options.even === true ? (TYPES[n % TYPES.length] ?? TYPES[0])[0] : this.#random.weighted(TYPES),
      );
    }
    this.#secondsBetween = changesPerDay * resources > 0 ? 86_400 / (changesPerDay * resources) : null;
    this.#planNext();
  }

  /** How many resources are alive. */
  get living(): number {
    return this.#happenings.living;
  }

  /** The truth, resource by resource, of the dead too. */
  get lives(): readonly TrueLife[] {
    return [...this.#happenings.lives.values()];
  }

  /** What a collector was told since the last call. */
  drain(): ToldEvent[] {
    return this.#happenings.drain();
  }

  /** Lets the time pass; the clock never goes back. */
  advance(to: Instant): void {
    const { agenda } = this.#happenings;
    for (let due = agenda.next; due !== null && due <= to; due = agenda.next) {
      this.world.now = due;
      agenda.doNext();
    }
    if (to > this.world.now) this.world.now = to;
  }

  /** Ends what is under way and lets nothing else begin: the cloud comes to rest within two hours. */
  calm(): void {
    this.#calm = true;
  }

  /** Does so many things at once, each to another resource, and tells nobody; a third each of every deed. */
  drift(count: number): void {
    const deeds: readonly [Deed, Deed, Deed] = ["create", "change", "delete"];
    for (let n = 0; n < count; n++) {
      const deed = deeds[n % 3] ?? "create";
      // Every kind of change that isn't billed would not be drift.
      const type = deed === "change" ? (n % 2 === 0 ? "instance" : "loadbalancer") : null;
      this.happen(deed, type);
    }
    this.settle();
  }

  /** Deletes a resource at once, whatever is happening to it, and tells nobody. */
  remove(resourceType: ResourceType, resourceId: string): void {
    const { world } = this;
    const server = world.servers.get(resourceId);
    if (resourceType === "instance" && server !== undefined) {
      const gone = { vmState: "deleted", taskState: null, updatedAt: world.now, terminatedAt: world.now };
      world.servers.set({ ...server, ...gone });
    } else if (resourceType !== "instance") {
      COLLECTIONS[resourceType](world).delete(resourceId);
    }
    this.#happenings.record({ resourceType, resourceId, at: world.now, facts: null });
  }

  /** Lets three minutes pass: what was begun is over, and over for a while; nothing of it is told any more. */
  settle(): void {
    this.advance(later(this.world.now, 180));
    this.drain();
  }

  #add(type: ResourceType): void {
    const { world } = this;
    const random = this.#random;
    const since = later(world.now, -random.whole(7_200, OLDEST_SECONDS));
    const record = (resourceId: string, facts: Parameters<Happenings["record"]>[0]["facts"]) =>
      this.#happenings.record({ resourceType: type, resourceId, at: since, facts });
    switch (type) {
      case "instance": {
        const server = newServer(random, since);
        world.servers.set(server);
        record(server.id, serverFacts(server));
        return;
      }
      case "volume": {
        const volume = newVolume(random, since);
        world.volumes.set(volume);
        record(volume.id, volumeFacts(volume));
        return;
      }
      case "floating_ip": {
        const ip = newFloatingIp(random, since);
        world.floatingIps.set(ip);
        record(ip.id, floatingIpFacts(ip));
        return;
      }
      case "image": {
        const image = newImage(random, since);
        world.images.set(image);
        record(image.id, imageFacts(image));
        return;
      }
      case "loadbalancer": {
        const balancer = newLoadBalancer(random, since);
        world.loadBalancers.set(balancer);
        record(balancer.id, loadBalancerFacts(balancer));
        return;
      }
    }
  }

  #planNext(): void {
    if (this.#secondsBetween === null) return;
    const wait = -Math.log(1 - this.#random.fraction()) * this.#secondsBetween;
    this.#happenings.agenda.put(later(this.world.now, Math.max(1, Math.round(wait))), () => {
      if (this.#calm) return;
      this.happen(
        this.#random.weighted([
          ["create", 15],
          ["change", 70],
          ["delete", 15],
        ]),
        null,
      );
      this.#planNext();
    });
  }

  /** Lets something happen now to a resource that nothing else is happening to. @param wanted null: of any type */
  happen(deed: Deed, wanted: ResourceType | null): void {
    if (deed === "create") {
      CREATE[wanted ?? this.#random.weighted(TYPES)](this.#happenings);
      return;
    }
    const one = this.#idle(wanted);
    if (one === null) return;
    if (deed === "change") CHANGE[one.type](this.#happenings, one.id);
    else if (one.type === "instance") deleteServer(this.#happenings, one.id, this.#softDelete);
    else DELETE[one.type](this.#happenings, one.id);
  }

  #idle(wanted: ResourceType | null): Living | null {
    for (let tries = 0; tries < 500; tries++) {
      const one = this.#happenings.idle();
      if (one === null || wanted === null || one.type === wanted) return one;
    }
    return null;
  }
}

const COLLECTIONS: Readonly<
  Record<Exclude<ResourceType, "instance">, (world: World) => { delete(id: string): void }>
> = {
  volume: ({ volumes }) => volumes,
  floating_ip: ({ floatingIps }) => floatingIps,
  image: ({ images }) => images,
  loadbalancer: ({ loadBalancers }) => loadBalancers,
};

const CREATE: Readonly<Record<ResourceType, (happenings: Happenings) => void>> = {
  instance: createServer,
  volume: createVolume,
  floating_ip: createFloatingIp,
  image: createImage,
  loadbalancer: createLoadBalancer,
};

const CHANGE: Readonly<Record<ResourceType, (happenings: Happenings, id: string) => void>> = {
  instance: changeServer,
  volume: changeVolume,
  floating_ip: changeFloatingIp,
  image: changeImage,
  loadbalancer: changeLoadBalancer,
};

const DELETE: Readonly<
  Record<Exclude<ResourceType, "instance">, (happenings: Happenings, id: string) => void>
> = {
  volume: deleteVolume,
  floating_ip: deleteFloatingIp,
  image: deleteImage,
  loadbalancer: deleteLoadBalancer,
};
