/** Single requests: tried again where that helps, bounded in time and size, and silent about secrets. */
import { setTimeout as wait } from "node:timers/promises";
import { ServiceFailure } from "./failure.ts";
import { isJsonObject, type JsonObject, saidIn } from "./item.ts";

/** Whom a cloud's certificates must be signed by. */
export interface Trust {
  /** A CA bundle in PEM; null: the system's. */
  readonly ca: string | null;
  /** False: any certificate will do. */
  readonly verify: boolean;
}

/** How patient a client is. */
export interface Pace {
  /** One try, until its body is read. */
  readonly timeoutMs: number;
  /** Before the second try; three times as long before each further one. */
  readonly firstWaitMs: number;
}

/** How patient one is with a cloud in production. */
export const USUAL_PACE: Pace = { timeoutMs: 30_000, firstWaitMs: 250 };

/** A request. */
export interface Ask {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What came back, whatever its status. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const TRIES = 4;
const TRIED_AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** A service that asks for more patience than this is left alone until the next run. */
const LONGEST_WAIT_MS = 30_000;
/** A page of a thousand servers is about 2 MB. */
const MOST_BYTES = 64 * 1024 * 1024;

/** Sends requests to one cloud. */
export class Transport {
  readonly #trust: Trust;
  readonly #pace: Pace;
  readonly #secrets = new Set<string>();
  /** Services that took a request and never answered: asked once more, each would cost as much of the run again. */
  readonly #silent = new Set<string>();

  constructor(trust: Trust, pace: Pace) {
    this.#trust = trust;
    this.#pace = pace;
  }

  /** From here on, this text is in no message. */
  hide(secret: string): void {
    if (secret !== "") this.#secrets.add(secret);
  }

  /** A failure whose message names the request, without its query, and holds no secret. */
  failure(ask: Ask, what: string): ServiceFailure {
    let message = `${ask.method} ${ask.url.host}${ask.url.pathname}: ${what}`;
    for (const secret of this.#secrets) message = message.replaceAll(secret, "***");
    return new ServiceFailure(message);
  }

  /** A failure that says what the service did. */
  refusal(ask: Ask, { status, text }: Answer): ServiceFailure {
    const said = saidIn(text);
    return this.failure(ask, said === "" ? `answered ${status}` : `answered ${status}: ${said}`);
  }

  /** @throws {ServiceFailure} when the answer is no JSON object */
  json(ask: Ask, answer: Answer): JsonObject {
    let json: unknown;
    try {
      json = JSON.parse(answer.text);
    } catch {
      const type = (answer.headers.get("content-type") ?? "").split(";")[0]?.trim() ?? "";
      const instead =
        type === "" || type.endsWith("json") ? "JSON that breaks off, or none" : `${type}, not JSON`;
      throw this.failure(ask, `answered ${answer.status} with ${instead}`);
    }
    if (!isJsonObject(json)) throw this.failure(ask, "answered JSON that is no object");
    return json;
  }

  /**
   * Sends a request; what may pass (429, 502, 503, 504, a connection that breaks) is tried again a few times, after as
   * long as the service asks for.
   * @throws {ServiceFailure} when that didn't help; the signal's reason when it aborts
   */
  async send(ask: Ask, signal: AbortSignal): Promise<Answer> {
    if (this.#silent.has(serviceOf(ask))) throw this.failure(ask, "the service gave no answer before");
    for (let tried = 1; ; tried++) {
      signal.throwIfAborted();
      const outcome = await this.#once(ask, signal);
      if ("status" in outcome && !TRIED_AGAIN.has(outcome.status)) return outcome;
      const failed = "status" in outcome ? this.refusal(ask, outcome) : this.failure(ask, outcome.broke);
      const asked = "status" in outcome ? retryAfter(outcome.headers) : null;
      if (tried === TRIES || ("final" in outcome && outcome.final)) throw failed;
      if (asked !== null && asked > LONGEST_WAIT_MS) {
        throw new ServiceFailure(
          `${failed.message} (not to be asked again for ${Math.ceil(asked / 1_000)} s)`,
        );
      }
      await pause(asked ?? this.#pace.firstWaitMs * 3 ** (tried - 1), signal);
    }
  }

  async #once(ask: Ask, signal: AbortSignal): Promise<Answer | { broke: string; final: boolean }> {
    const { ca, verify } = this.#trust;
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    signal.addEventListener("abort", stop, { once: true });
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stop();
    }, this.#pace.timeoutMs);
    try {
      const response = await fetch(ask.url, {
        method: ask.method,
        headers: ask.headers,
        ...(ask.body === undefined ? {} : { body: ask.body }),
        // A redirect would carry the token wherever it points.
        redirect: "manual",
        signal: attempt.signal,
        ...(ask.url.protocol === "https:"
          ? { tls: { rejectUnauthorized: verify, ...(ca === null ? {} : { ca }) } }
          : {}),
      });
      const text = await boundedText(response);
      if (text !== null) return { status: response.status, headers: response.headers, text };
      return { broke: `answered more than ${MOST_BYTES / 1024 / 1024} MiB`, final: true };
    } catch (error) {
      signal.throwIfAborted();
      if (late) {
        this.#silent.add(serviceOf(ask));
        return { broke: `no answer within ${this.#pace.timeoutMs / 1_000} s`, final: true };
      }
      return connectionFault(error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      // Lets go of a body that was not read to its end.
      stop();
    }
  }
}

/** By what services are told apart: their ports, or, behind one, the first step of their paths. */
function serviceOf({ url }: Ask): string {
  return `${url.host}/${url.pathname.split("/")[1] ?? ""}`;
}

/** The body as text; null where it is too long. */
async function boundedText(response: Response): Promise<string | null> {
  if (response.body === null) return "";
  const told = Number(response.headers.get("content-length") ?? Number.NaN);
  if (told > MOST_BYTES) return null;
  // A told length is the length that comes; read at once, a page takes a third of the memory that its pieces take.
  if (told >= 0 && !response.headers.has("content-encoding")) return response.text();
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.byteLength;
    if (bytes > MOST_BYTES) return null;
    parts.push(decoder.decode(chunk, { stream: true }));
  }
  parts.push(decoder.decode());
  return parts.join("");
}

function connectionFault(error: unknown): { broke: string; final: boolean } {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (/CERT|SIGNATURE|SSL|TLS/.test(code)) {
    return { broke: `its certificate isn't trusted (${code}): see cacert and verify`, final: true };
  }
  const known: Readonly<Record<string, string>> = {
    ECONNREFUSED: "the connection was refused",
    ECONNRESET: "the connection broke",
    ENOTFOUND: "the name can't be resolved",
  };
  const why = known[code] ?? `no connection (${code === "" ? "unknown error" : code})`;
  return { broke: `${why}, ${TRIES} times`, final: false };
}

/** How long the service wants to be left alone, in ms; null: it didn't say. */
function retryAfter(headers: Headers): number | null {
  const text = headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // A date is told by the service's clock, so that it is held against that one.
  const until = Date.parse(text);
  const now = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(until) || Number.isNaN(now) ? null : Math.max(0, until - now);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await wait(ms, undefined, { signal });
  } catch {
    signal.throwIfAborted();
  }
}
