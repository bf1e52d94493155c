/** The known set of events: batch `n` is the same whenever it is made, so that it can be sent again. */
import { between, randomFrom } from "./random.ts";

export const PLATFORM = "openstack";
export const CLOUD = "drill-1";

/** What is sent in one request. */
export interface Batch {
  readonly number: number;
  readonly items: number;
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
}

const START = Date.UTC(2026, 2, 1) * 1000;
const PROJECTS = 7;
const MONTH_MICROS = 30 * 86_400e6;
/** A batch goes on with this many resources further than the one before. */
const STEP = 10;

function instant(micros: number): string {
  return `${new Date(Math.floor(micros / 1000)).toISOString().slice(0, 19)}.${String(micros % 1_000_000).padStart(6, "0")}Z`;
}

/** Volumes that live, grow, and die, their events in any order: most batches have late events to replay. */
export class Workload {
  readonly run: string;
  readonly items: number;
  readonly #seed: number;
  readonly #resources: number | null;

  constructor({ run, seed, items, resources = null }: WorkloadOptions) {
    this.run = run;
    this.items = items;
    this.#seed = seed;
    this.#resources = resources;
  }

  batch(number: number): Batch {
    const random = randomFrom(this.#seed * 1_000_003 + number);
    const texts = Array.from({ length: this.items }, (_, at) => this.#item(random, number, at));
    return { number, items: this.items, body: `[${texts.join(",")}]` };
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
    // One in ten events names another project than the others: a transfer, or the end of one.
    const project = (resource + (random() < 0.1 ? 1 : 0)) % PROJECTS;
    const timestamp = instant(START + Math.floor(random() * MONTH_MICROS));
    return (
      `{"event_id":"${this.run}:${number}:${at}","timestamp":"${timestamp}","event_type":"volume.${type}"` +
      `,"platform":"${PLATFORM}","cloud":"${CLOUD}","resource_type":"volume","resource_id":"${this.run}-${resource}"` +
      `,"project_id":"p${project}","payload":${payload}}`
    );
  }
}
