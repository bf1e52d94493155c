/** A cloud as one account sees it: the services' addresses, and requests that carry a good token. */
import { RunFailure } from "../adapter.ts";
import type { CloudEntry } from "./clouds-yaml.ts";
import { ServiceFailure } from "./failure.ts";
import type { JsonObject } from "./item.ts";
import { logIn, type Token } from "./keystone.ts";
import type { Answer, Ask, Transport } from "./transport.ts";

/** The services that are read, under every name that catalogs have for them, the preferred one first. */
export const SERVICE_TYPES = {
  compute: ["compute"],
  "block storage": ["block-storage", "volumev3", "block-store"],
  network: ["network"],
  image: ["image"],
  "load balancer": ["load-balancer", "loadbalancer"],
} as const;

export type ServiceName = keyof typeof SERVICE_TYPES;

const READ_TYPES: ReadonlySet<string> = new Set(Object.values(SERVICE_TYPES).flat());

/** One login, and the requests that are made with it. */
export class Session {
  readonly entry: CloudEntry;
  readonly transport: Transport;
  readonly #signal: AbortSignal;
  readonly #abandoned = new AbortController();
  #token: Token;
  #renewal: Promise<Token> | null = null;

  private constructor(entry: CloudEntry, transport: Transport, token: Token, signal: AbortSignal) {
    this.entry = entry;
    this.transport = transport;
    this.#token = token;
    this.#signal = AbortSignal.any([signal, this.#abandoned.signal]);
  }

  /** Breaks off what is under way, because nobody waits for it any more. */
  abandon(): void {
    this.#abandoned.abort();
  }

  /** Whether reading has to end: the run's time is up, its caller is gone, or nobody waits any more. */
  get signal(): AbortSignal {
    return this.#signal;
  }

  /**
   * Logs in, unless a token of an earlier run is still good.
   * @throws {RunFailure} when that fails, or when it isn't said which of several regions is meant
   */
  static async open(
    entry: CloudEntry,
    transport: Transport,
    signal: AbortSignal,
    kept: Token | null,
  ): Promise<Session> {
    const good = kept !== null && performance.now() < kept.goodUntil;
    if (good) for (const secret of [...entry.secrets, kept.value]) transport.hide(secret);
    const token = good ? kept : await logIn(entry, transport, signal);
    const session = new Session(entry, transport, token, signal);
    session.#checkRegion();
    return session;
  }

  /** The token as it is now. */
  get token(): Token {
    return this.#token;
  }

  get projectId(): string {
    return this.#token.projectId;
  }

  /**
   * Where a service is, without a slash at the end.
   * @throws {ServiceFailure} when the catalog has none
   */
  endpoint(service: ServiceName): URL {
    const { catalog } = this.#token;
    const { region, interface: face } = this.entry;
    for (const type of SERVICE_TYPES[service]) {
      const found = catalog.find(
        (one) => one.type === type && one.interface === face && (region === null || one.region === region),
      );
      if (found === undefined) continue;
      if (!URL.canParse(found.url)) throw new ServiceFailure(`the catalog's address of ${type} is no URL`);
      const url = new URL(found.url);
      url.pathname = url.pathname.replace(/\/+$/, "");
      return url;
    }
    const where = region === null ? "" : ` in region ${region}`;
    throw new ServiceFailure(`the catalog has no ${face} endpoint of ${SERVICE_TYPES[service][0]}${where}`);
  }

  /**
   * GETs something. A 401 is answered with a new login and one more try.
   * @throws {ServiceFailure} when there is no answer to be had
   */
  async get(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<{ ask: Ask; answer: Answer }> {
    const token = performance.now() < this.#token.goodUntil ? this.#token : await this.#renewed(this.#token);
    const first = await this.#getWith(token, url, headers);
    if (first.answer.status !== 401) return first;
    return this.#getWith(await this.#renewed(token), url, headers);
  }

  /** GETs a JSON object. @throws {ServiceFailure} for any other answer */
  async getJson(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<JsonObject> {
    const { ask, answer } = await this.get(url, headers);
    if (answer.status !== 200) throw this.transport.refusal(ask, answer);
    return this.transport.json(ask, answer);
  }

  async #getWith(token: Token, url: URL, headers: Readonly<Record<string, string>>) {
    const ask: Ask = {
      method: "GET",
      url,
      headers: { accept: "application/json", ...headers, "x-auth-token": token.value },
    };
    return { ask, answer: await this.transport.send(ask, this.#signal) };
  }

  /** A newer token than `old`: several requests that were refused at once log in once. */
  async #renewed(old: Token): Promise<Token> {
    if (this.#token !== old) return this.#token;
    this.#renewal ??= logIn(this.entry, this.transport, this.#signal).finally(() => {
      this.#renewal = null;
    });
    try {
      this.#token = await this.#renewal;
      return this.#token;
    } catch (error) {
      // By now this concerns what was being read, not the run.
      if (error instanceof RunFailure) throw new ServiceFailure(error.message);
      throw error;
    }
  }

  #checkRegion(): void {
    const { name, file, region, interface: face } = this.entry;
    const at = `${name} in ${file}: `;
    // Keystone may well be in a region of its own.
    const read = this.#token.catalog.filter((one) => one.interface === face && READ_TYPES.has(one.type));
    const regions = [...new Set(read.map((one) => one.region))].sort();
    if (region !== null && !regions.includes(region)) {
      const there = regions.length === 0 ? "none" : regions.join(", ");
      throw new RunFailure(`${at}the catalog has no ${face} endpoints in region ${region}; it has: ${there}`);
    }
    if (region === null && regions.length > 1) {
      throw new RunFailure(
        `${at}the cloud has the regions ${regions.join(", ")}: set region_name to one of them`,
      );
    }
  }
}
