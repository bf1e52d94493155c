/** What happened in a fake cloud: the truth of each resource's life, and what a collector was told of it. */
import type { World } from "../../src/demo/openstack/world.ts";
import { deterministicEventId } from "../../src/event/ids.ts";
import { formatInstant, type Instant } from "../../src/event/instant.ts";
import { Agenda } from "./agenda.ts";
import type { Facts, ResourceType, TrueLife } from "./facts.ts";
import { later } from "./furnishing.ts";
import type { Random } from "./random.ts";

/** A canonical event, as a collector that reads the message bus sends it. */
export interface ToldEvent {
  readonly event_id: string;
  readonly timestamp: string;
  readonly event_type: string;
  readonly platform: "openstack";
  readonly cloud: string;
  readonly resource_type: ResourceType;
  readonly resource_id: string;
  readonly project_id: string;
  readonly source: "collector";
  readonly payload: {
    readonly state?: string;
    readonly size?: Readonly<Record<string, number | string>>;
    readonly provider: Readonly<Record<string, string>>;
  };
}

/** Something that became true of a resource. */
export interface Turn {
  readonly resourceType: ResourceType;
  readonly resourceId: string;
  readonly at: Instant;
  readonly eventType: string;
  /** Null: it is gone. */
  readonly facts: Facts | null;
  /** The size as the bus tells it; left out where this message tells none. */
  readonly size?: Readonly<Record<string, number | string>>;
}

/** A living resource. */
export interface Living {
  readonly type: ResourceType;
  readonly id: string;
}

/** Keeps the record that no collector can lose. */
export class Happenings {
  readonly world: World;
  readonly random: Random;
  readonly agenda = new Agenda();
  readonly cloud: string;
  /** By `type id`. */
  readonly lives = new Map<string, TrueLife>();
  readonly #restSeconds: number;
  readonly #living: Living[] = [];
  readonly #places = new Map<string, number>();
  readonly #restsUntil = new Map<string, Instant>();
  #told: ToldEvent[] = [];

  /** @param restSeconds how long a resource is left alone after something happened to it */
  constructor(world: World, random: Random, cloud: string, restSeconds: number) {
    this.world = world;
    this.random = random;
    this.cloud = cloud;
    this.#restSeconds = restSeconds;
  }

  get living(): number {
    return this.#living.length;
  }

  /** What was told since the last call. */
  drain(): ToldEvent[] {
    const told = this.#told;
    this.#told = [];
    return told;
  }

  /** Something begins now and ends `least` to `most` seconds later; until then the resource is left alone. */
  busy(resource: Living, [least, most]: readonly [number, number], end: () => void): void {
    const until = later(this.world.now, this.random.whole(least, most));
    this.rest(resource, until);
    this.agenda.put(until, end);
  }

  /** Leaves a resource alone for a while after something happened to it. */
  rest(resource: Living, since: Instant = this.world.now): void {
    this.#restsUntil.set(resource.id, later(since, this.#restSeconds));
  }

  /** A living resource that nothing is happening to, by chance; null where a few tries find none. */
  idle(): Living | null {
    for (let tries = 0; tries < 20 && this.#living.length > 0; tries++) {
      const one = this.#living[this.random.whole(0, this.#living.length - 1)];
      if (one !== undefined && (this.#restsUntil.get(one.id) ?? 0n) <= this.world.now) return one;
    }
    return null;
  }

  /** Writes the truth down and tells a collector. @param silent tells nobody: as if the message had been lost */
  turn(turn: Turn, silent = false): void {
    this.record(turn);
    if (!silent) this.#told.push(this.#event(turn));
  }

  /** Writes the truth down. */
  record({
    resourceType,
    resourceId,
    at,
    facts,
  }: Pick<Turn, "resourceType" | "resourceId" | "at" | "facts">) {
    const key = `${resourceType} ${resourceId}`;
    const life = this.lives.get(key) ?? { resourceType, resourceId, steps: [] };
    this.lives.set(key, life);
    life.steps.push({ at, facts });
    const place = this.#places.get(key);
    if (facts !== null && place === undefined) {
      this.#places.set(key, this.#living.push({ type: resourceType, id: resourceId }) - 1);
    }
    if (facts === null && place !== undefined) this.#bury(key, place);
  }

  #bury(key: string, place: number): void {
    const last = this.#living.pop();
    this.#places.delete(key);
    this.#restsUntil.delete(key.slice(key.indexOf(" ") + 1));
    if (last === undefined || place === this.#living.length) return;
    this.#living[place] = last;
    this.#places.set(`${last.type} ${last.id}`, place);
  }

  #event({ resourceType, resourceId, at, eventType, facts, size }: Turn): ToldEvent {
    const { cloud } = this;
    const named = { platform: "openstack", cloud, resourceId, eventType, timestamp: at };
    const before = this.lives.get(`${resourceType} ${resourceId}`)?.steps.at(-2)?.facts;
    return {
      event_id: deterministicEventId(named),
      timestamp: formatInstant(at),
      event_type: eventType,
      platform: "openstack",
      cloud,
      resource_type: resourceType,
      resource_id: resourceId,
      project_id: facts?.projectId ?? before?.projectId ?? "",
      source: "collector",
      payload: {
        ...(facts === null ? {} : { state: facts.state }),
        ...(size === undefined ? {} : { size }),
        provider: { oslo_event_type: eventType },
      },
    };
  }
}
