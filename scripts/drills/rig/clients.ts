/**
 * Eight collectors. Each sends a batch until it has read a 200 for it, however often that takes, and then the next.
 * What was acknowledged is what was read: an answer that is cut off is none.
 */
import { must } from "../drill.ts";
import type { Batch, Workload } from "./workload.ts";

export const CLIENTS = 8;
/** A collector that got no answer, or was told to come back, tries again so soon: a drill can't wait for long. */
const PAUSE_MS = 40;

/** What a request came to. */
export type Outcome = "acknowledged" | "unavailable" | "no answer";

/** How the clients go about it. */
export interface ClientOptions {
  /** Where each goes; a function, where that changes. */
  readonly url: string | (() => string);
  readonly token: string;
  readonly workload: Workload;
  readonly clients?: number;
  /** What a client waits after each acknowledged batch, in milliseconds; 0: it works as fast as it can. */
  readonly thinkMs?: number;
  /** A request without an answer is given up after this long. */
  readonly timeoutMs?: number;
}

/** One answered request, for the figures. */
export interface Answered {
  readonly outcome: Outcome;
  readonly milliseconds: number;
  /** When the answer was there, by `performance.now`. */
  readonly at: number;
}

/** What was sent and what was acknowledged, to be held against the database. */
export interface Ledger {
  readonly workload: Workload;
  /** Batch number → how many of its events were told to be new, in all answers that were read. */
  readonly acknowledged: ReadonlyMap<number, number>;
  /** Sent, and perhaps stored, but not acknowledged. */
  readonly unsure: ReadonlySet<number>;
}

/** Sends a body once. @throws {Error} unless it is answered 200 */
export async function sendOnce(
  url: string,
  token: string,
  body: string,
): Promise<{ accepted: number; duplicates: number }> {
  const response = await fetch(`${url}/api/v1/events`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body,
  });
  const text = await response.text();
  must(response.status === 200, `a batch was answered ${response.status}: ${text.slice(0, 300)}`);
  return countsOf(JSON.parse(text));
}

export class Clients implements Ledger {
  readonly workload: Workload;
  readonly acknowledged = new Map<number, number>();
  readonly unsure = new Set<number>();
  readonly answers: Answered[] = [];
  /** How many clients there are. */
  readonly count: number;
  readonly #options: ClientOptions;
  readonly #ended: Promise<void>;
  /** What a client met that may not be; its work has ended with it. */
  #failure: { readonly error: unknown } | null = null;
  #next = 0;
  #stopping = false;
  #giveUp = false;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.workload = options.workload;
    this.count = options.clients ?? CLIENTS;
    const clients = Array.from({ length: this.count }, () => this.#client());
    this.#ended = Promise.all(clients).then(() => undefined);
    // Whoever waits for work is told, and whoever calls `finish`.
    this.#ended.catch((error: unknown) => {
      this.#failure = { error };
    });
  }

  /** How many batches were acknowledged so far. @throws what a client met that may not be: no work is to be waited for */
  get done(): number {
    if (this.#failure !== null) throw this.#failure.error;
    return this.acknowledged.size;
  }

  /** No new batches; waits until every one that was begun is acknowledged. @throws what a client met that may not be */
  async finish(milliseconds = 120_000): Promise<void> {
    this.#stopping = true;
    const late = Bun.sleep(milliseconds).then(() => "late" as const);
    const first = await Promise.race([this.#ended.then(() => "ended" as const), late]);
    this.#giveUp = true;
    must(first === "ended", `${this.unsure.size} batches were not acknowledged within ${milliseconds} ms`);
  }

  /** Ends at once, whatever is acknowledged. @throws what a client met that may not be */
  async abandon(): Promise<void> {
    this.#stopping = true;
    this.#giveUp = true;
    await this.#ended;
  }

  /** Answers since then. */
  since(moment: number): Answered[] {
    return this.answers.filter(({ at }) => at >= moment);
  }

  async #client(): Promise<void> {
    const { thinkMs = 0 } = this.#options;
    for (; !this.#stopping; await Bun.sleep(thinkMs)) {
      const batch = this.workload.batch(this.#next++);
      this.unsure.add(batch.number);
      while (!this.#giveUp) {
        const from = performance.now();
        const outcome = await this.#send(batch);
        const at = performance.now();
        this.answers.push({ outcome, milliseconds: at - from, at });
        if (outcome === "acknowledged") break;
        await Bun.sleep(PAUSE_MS);
      }
    }
  }

  async #send(batch: Batch): Promise<Outcome> {
    const { url, token, timeoutMs = 90_000 } = this.#options;
    let status: number;
    let text: string;
    let retryAfter: string | null;
    try {
      const response = await fetch(`${typeof url === "string" ? url : url()}/api/v1/events`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: batch.body,
        signal: AbortSignal.timeout(timeoutMs),
      });
      status = response.status;
      retryAfter = response.headers.get("retry-after");
      text = await response.text();
    } catch (error) {
      must(
        !(error instanceof DOMException && error.name === "TimeoutError"),
        `a request hung: no answer within ${timeoutMs} ms`,
      );
      return "no answer";
    }
    if (status === 503) {
      must(/^\d+$/.test(retryAfter ?? ""), "a 503 came without Retry-After");
      must(text.includes('"urn:tally:error:unavailable"'), `a 503 that is no problem: ${text.slice(0, 200)}`);
      return "unavailable";
    }
    must(status === 200, `a batch was answered ${status}: ${text.slice(0, 300)}`);
    const answer: unknown = JSON.parse(text);
    const { accepted, duplicates } = countsOf(answer);
    must(
      accepted + duplicates === batch.items,
      `a batch of ${batch.items} was answered ${text.slice(0, 300)}`,
    );
    this.acknowledged.set(batch.number, accepted);
    this.unsure.delete(batch.number);
    return "acknowledged";
  }
}

function countsOf(answer: unknown): { accepted: number; duplicates: number } {
  if (typeof answer === "object" && answer !== null && "accepted" in answer && "duplicates" in answer) {
    const { accepted, duplicates } = answer;
    if (typeof accepted === "number" && typeof duplicates === "number") return { accepted, duplicates };
  }
  throw new Error(`not what a batch is answered: ${JSON.stringify(answer)}`);
}

/** The longest of the answers, in milliseconds; 0 of none. */
export function slowest(answers: readonly Answered[]): number {
  return Math.max(0, ...answers.map(({ milliseconds }) => milliseconds));
}
