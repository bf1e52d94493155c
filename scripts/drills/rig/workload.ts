/** The known set of events: batch `n` is the same whenever it is made, so that it can be sent again. */
import { between, randomFrom } from "./random.ts";

export const PLATFORM = "openstack";
export const CLOUD = "drill-1";

/** An item that has to be refused. */
export interface Refused {
  /** Where it stands in its batch. */
  readonly index: number;
  readonly eventId: string;
  /** As it is sent, and as the dead letter keeps it. */
  readonly text: string;
}

/** Why every one of them is refused. */
export const REFUSED_FOR = "schema: payload.state: is missing";

/** What is sent in one request. */
export interface Batch {
  readonly number: number;
  /** How many there are, refused ones too. */
  readonly items: number;
  /** The events among them, each as it is sent. */
  readonly events: readonly string[];
  readonly refused: readonly Refused[];
  readonly body: string;
}

/** What a set is made of. */
export interface WorkloadOptions {
  /** Begins every event id, so that sets don't meet. */
  readonly run: string;
  readonly seed: number;
  /** Items of a batch. */
  readonly items: number;
  /** Resources that all batches share; null: each batch shares some with the batches before and after it. */
  readonly resources?: number | null;
  /** Every batch alike: of `items` events, and nothing that is refused. */
  readonly uniform?: boolean;
}

const START = Date.UTC(2026, 2, 1) * 1000;
const PROJECTS = 7;
const MONTH_MICROS = 30 * 86_400e6;
/** A batch goes on with this many resources further than the one before. */
const STEP = 10;
/** Tally puts requests of up to so many items together into one transaction; larger ones have their own. */
const GROUPED_ITEMS = 50;
/** One batch in ten goes the other way than the rest: so large among small ones, … */
const LARGE = 120;
/** … and so small among large ones. */
const SMALL = 40;
/** The order in which batches are unlike the others comes again after so many. */
const CYCLE = 20;

function instant(micros: number): string {
  return `${new Date(Math.floor(micros / 1000)).toISOString().slice(0, 19)}.${String(micros % 1_000_000).padStart(6, "0")}Z`;
}

/**
 * Volumes that live, grow, and die, their events in any order: most batches have late events to replay. One batch in
 * ten is of another size, and one in ten has an item that is refused: every other time a batch of that other size.
 */
export class Workload {
  readonly run: string;
  readonly items: number;
  readonly #seed: number;
  readonly #resources: number | null;
  readonly #uniform: boolean;

  constructor({ run, seed, items, resources = null, uniform = false }: WorkloadOptions) {
    this.run = run;
    this.items = items;
    this.#seed = seed;
    this.#resources = resources;
    this.#uniform = uniform;
  }

  batch(number: number): Batch {
    const random = randomFrom(this.#seed * 1_000_003 + number);
    const turn = this.#uniform ? -1 : (number + this.#seed) % CYCLE;
    const other = this.items <= GROUPED_ITEMS ? LARGE : SMALL;
    const items = turn === 0 || turn === 10 ? other : this.items;
    const texts = Array.from({ length: items }, (_, at) => this.#item(random, number, at));
    const refused: Refused[] = [];
    if (turn === 0 || turn === 5) {
      const index = between(random, 0, items);
      const eventId = this.#id(number, index);
      const text = this.#text(random, number, index, between(random, 0, items), "resize.end", "{}");
      texts[index] = text;
      refused.push({ index, eventId, text });
    }
    const events = texts.filter((_, at) => at !== refused[0]?.index);
    return { number, items, events, refused, body: `[${texts.join(",")}]` };
  }

  #id(number: number, at: number): string {
    return `${this.run}:${number}:${at}`;
  }

  #item(random: () => number, number: number, at: number): string {
    const resource =
      this.#resources === null
        ? number * STEP + between(random, 0, this.items + STEP)
        : between(random, 0, this.#resources);
    const kind = random();
    const [type, payload] =
      kind < 0.45
        ? ["create.end", `{"state":"available","size":{"size_gb":${between(random, 1, 9)},"type":"ssd"}}`]
        : kind < 0.6
          ? ["delete.end", "null"]
          : ["resize.end", `{"state":"in-use","size":{"size_gb":${between(random, 9, 99)}.50,"type":"ssd"}}`];
    return this.#text(random, number, at, resource, type, payload);
  }

  #text(
    random: () => number,
    number: number,
    at: number,
    resource: number,
    type: string,
    payload: string,
  ): string {
    // One in ten events names another project than the others: a transfer, or the end of one.
    const project = (resource + (random() < 0.1 ? 1 : 0)) % PROJECTS;
    const timestamp = instant(START + Math.floor(random() * MONTH_MICROS));
    return (
      `{"event_id":"${this.#id(number, at)}","timestamp":"${timestamp}","event_type":"volume.${type}"` +
      `,"platform":"${PLATFORM}","cloud":"${CLOUD}","resource_type":"volume","resource_id":"${this.run}-${resource}"` +
      `,"project_id":"p${project}","payload":${payload}}`
    );
  }
}
