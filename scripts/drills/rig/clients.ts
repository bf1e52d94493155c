/**
 * Eight collectors. Each sends a batch until it has read a 200 for it, however often that takes, and then the next.
 * What was acknowledged is what was read: an answer that is cut off is none.
 */
import { must } from "../drill.ts";
import { type Batch, REFUSED_FOR, type Workload } from "./workload.ts";

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

/** What became of one batch, as its senders know it. */
export interface Sent {
  /** How often it was sent. */
  readonly attempts: number;
  /** How many of those were answered 200, and the answer read to its end. */
  readonly acknowledged: number;
  /** How many of its events were told to be new, in all of those answers. */
  readonly accepted: number;
}

/** Of a batch that nobody has sent yet. */
export const NOT_SENT: Sent = { attempts: 0, acknowledged: 0, accepted: 0 };

/** What was sent and what was acknowledged, to be held against the database. */
export interface Ledger {
  readonly workload: Workload;
  /** By the number of the batch. */
  readonly sent: ReadonlyMap<number, Sent>;
}

/** What a batch is answered. */
export interface Told {
  readonly accepted: number;
  readonly duplicates: number;
  readonly rejected: readonly unknown[];
}

function request(url: string, token: string, body: string, signal: AbortSignal | null): Promise<Response> {
  return fetch(`${url}/api/v1/events`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body,
    signal,
  });
}

/** Sends a body once. @throws {Error} unless it is answered 200 */
export async function sendOnce(url: string, token: string, body: string): Promise<Told> {
  const response = await request(url, token, body, null);
  const text = await response.text();
  must(response.status === 200, `a batch was answered ${response.status}: ${text.slice(0, 300)}`);
  return countsOf(JSON.parse(text));
}

/**
 * A batch lands whole: its events are new, all of them, or none is, and what has to be refused is.
 * @throws {Error} where it was answered anything else
 */
export function mustBeWhole(batch: Batch, told: Told): void {
  const { accepted, duplicates, rejected } = told;
  const { events, refused } = batch;
  const what = `batch ${batch.number} of ${events.length} events and ${refused.length} items to refuse was answered ${JSON.stringify(told).slice(0, 300)}`;
  must(accepted + duplicates === events.length, what);
  must(accepted === 0 || duplicates === 0, `by half: ${what}`);
  const expected = refused.map(({ index, eventId }) => ({ index, event_id: eventId, reason: REFUSED_FOR }));
  must(Bun.deepEquals(rejected, expected), what);
}

export class Clients implements Ledger {
  readonly workload: Workload;
  readonly sent = new Map<number, Sent>();
  readonly answers: Answered[] = [];
  /** How many clients there are. */
  readonly count: number;
  readonly #options: ClientOptions;
  /** When all have ended, one of them perhaps by what it met. */
  readonly #ended: Promise<void>;
  /** What a client met that may not be; its work has ended with it. */
  #failure: { readonly error: unknown } | null = null;
  #next = 0;
  #done = 0;
  #stopping = false;
  #giveUp = false;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.workload = options.workload;
    this.count = options.clients ?? CLIENTS;
    const clients = Array.from({ length: this.count }, () =>
      this.#client().catch((error: unknown) => {
        this.#failure ??= { error };
        // What one met fails the drill: the others need not go on.
        this.#stopping = true;
        this.#giveUp = true;
      }),
    );
    this.#ended = Promise.all(clients).then(() => undefined);
  }

  /** How many batches were acknowledged so far. @throws what a client met that may not be: no work is to be waited for */
  get done(): number {
    if (this.#failure !== null) throw this.#failure.error;
    return this.#done;
  }

  /** How many requests got no answer, or one that was cut off. */
  get cut(): number {
    return this.answers.filter(({ outcome }) => outcome === "no answer").length;
  }

  /** No new batches; waits until every one that was begun is acknowledged. @throws what a client met that may not be */
  async finish(milliseconds = 120_000): Promise<void> {
    this.#stopping = true;
    const late = Bun.sleep(milliseconds).then(() => "late" as const);
    const first = await Promise.race([this.#ended.then(() => "ended" as const), late]);
    this.#giveUp = true;
    if (this.#failure !== null) throw this.#failure.error;
    const unsure = this.sent.size - this.#done;
    must(first === "ended", `${unsure} batches were not acknowledged within ${milliseconds} ms`);
  }

  /** The same, where nothing stands between the clients and a Tally that stays: it owes every request an answer. */
  async finishAnswered(): Promise<void> {
    await this.finish();
    must(this.cut === 0, `${this.cut} requests were cut off, and Tally ran all the while`);
  }

  /** Ends at once, whatever is acknowledged. @throws what a client met that may not be */
  async abandon(): Promise<void> {
    this.#stopping = true;
    this.#giveUp = true;
    await this.#ended;
    if (this.#failure !== null) throw this.#failure.error;
  }

  /** Answers since then. */
  since(moment: number): Answered[] {
    return this.answers.filter(({ at }) => at >= moment);
  }

  async #client(): Promise<void> {
    const { thinkMs = 0 } = this.#options;
    for (; !this.#stopping; await Bun.sleep(thinkMs)) {
      const batch = this.workload.batch(this.#next++);
      while (!this.#giveUp) {
        const from = performance.now();
        const { attempts, acknowledged, accepted } = this.sent.get(batch.number) ?? NOT_SENT;
        this.sent.set(batch.number, { attempts: attempts + 1, acknowledged, accepted });
        const outcome = await this.#send(batch, attempts > 0);
        const at = performance.now();
        this.answers.push({ outcome, milliseconds: at - from, at });
        if (outcome === "acknowledged") break;
        await Bun.sleep(PAUSE_MS);
      }
    }
  }

  /** @param again whether it was sent before: what got no 200 may be stored all the same */
  async #send(batch: Batch, again: boolean): Promise<Outcome> {
    const { url, token, timeoutMs = 90_000 } = this.#options;
    let status: number;
    let text: string;
    let retryAfter: string | null;
    try {
      const to = typeof url === "string" ? url : url();
      const response = await request(to, token, batch.body, AbortSignal.timeout(timeoutMs));
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
    const told = countsOf(JSON.parse(text));
    mustBeWhole(batch, told);
    must(
      told.accepted > 0 || again,
      `batch ${batch.number} was sent for the first time, and nothing of it was new`,
    );
    const { attempts, acknowledged, accepted } = this.sent.get(batch.number) ?? NOT_SENT;
    const now = { attempts, acknowledged: acknowledged + 1, accepted: accepted + told.accepted };
    this.sent.set(batch.number, now);
    this.#done++;
    return "acknowledged";
  }
}

function countsOf(answer: unknown): Told {
  if (
    typeof answer === "object" &&
    answer !== null &&
    "accepted" in answer &&
    "duplicates" in answer &&
    "rejected" in answer
  ) {
    const { accepted, duplicates, rejected } = answer;
    if (typeof accepted === "number" && typeof duplicates === "number" && Array.isArray(rejected))
      return { accepted, duplicates, rejected };
  }
  throw new Error(`not what a batch is answered: ${JSON.stringify(answer)}`);
}

/** The longest of the answers, in milliseconds; 0 of none. */
export function slowest(answers: readonly Answered[]): number {
  return answers.reduce((most, { milliseconds }) => Math.max(most, milliseconds), 0);
}
