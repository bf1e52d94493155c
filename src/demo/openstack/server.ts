/**
 * The fake services behind their listeners: one port of the loopback address each, as services of a real cloud have
 * them, so that one can be down while the others answer.
 */
import { cinder, cinderVersions } from "./cinder.ts";
import { glance, fault as glanceFault, glanceVersions } from "./glance.ts";
import { Keystone } from "./keystone.ts";
import { neutron, neutronVersions } from "./neutron.ts";
import { nova, novaVersions } from "./nova.ts";
import { octavia, octaviaVersions } from "./octavia.ts";
import {
  type AuthorizedRequest,
  type Reply,
  reply,
  SERVICES,
  type ServiceName,
  type ServiceRequest,
} from "./service.ts";
import type { World } from "./world.ts";

/** A request and what the service would answer to it. */
export interface Exchange {
  readonly service: ServiceName;
  readonly request: ServiceRequest;
  /** Computes the answer, once. */
  answer(): Reply;
}

/** How the services are started. */
export interface ServerOptions {
  /** The listeners' ports, counted up from Keystone's; 0, the default, takes free ones. */
  readonly port?: number;
  readonly region?: string;
  /** Services that the catalog leaves out. */
  readonly absent?: readonly ServiceName[];
  /** Called before each request is looked at: the moment to move the world's clock. */
  readonly tick?: () => void;
  /** Sees each request and may answer it otherwise; null lets the service answer. */
  readonly intercept?: (exchange: Exchange) => Response | Promise<Response> | null;
}

/** The services of one cloud, listening. */
export class FakeServices {
  readonly keystone: Keystone;
  readonly #world: World;
  readonly #options: ServerOptions;
  /** Services that the catalog of a new token leaves out. */
  readonly absent: Set<ServiceName>;
  readonly #listeners = new Map<ServiceName, Bun.Server<undefined>>();
  readonly #ports = new Map<ServiceName, number>();
  /** Milliseconds spent on computing answers. */
  busyMs = 0;

  constructor(world: World, options: ServerOptions = {}) {
    this.#world = world;
    this.#options = options;
    this.absent = new Set(options.absent);
    this.keystone = new Keystone(world, {
      region: options.region ?? "RegionOne",
      baseOf: (service) => (this.absent.has(service) ? null : this.baseOf(service)),
    });
    for (const [n, service] of SERVICES.entries()) {
      this.#ports.set(service, options.port ? options.port + n : 0);
      this.start(service);
    }
  }

  /** `http://127.0.0.1:35357`, without a slash behind it. */
  baseOf(service: ServiceName): string {
    return `http://127.0.0.1:${this.#ports.get(service)}`;
  }

  /** What a clouds.yaml calls auth_url. */
  get authUrl(): string {
    return `${this.baseOf("keystone")}/v3`;
  }

  /** Listens, on the port that it had before. */
  start(service: ServiceName): void {
    if (this.#listeners.has(service)) return;
    const listener = Bun.serve({
      hostname: "127.0.0.1",
      port: this.#ports.get(service) ?? 0,
      idleTimeout: 0,
      fetch: (request) => this.#answer(service, request),
    });
    this.#listeners.set(service, listener);
    if (listener.port !== undefined) this.#ports.set(service, listener.port);
  }

  /** Refuses connections from now on, and cuts those that there are. */
  async stop(service: ServiceName): Promise<void> {
    const listener = this.#listeners.get(service);
    this.#listeners.delete(service);
    await listener?.stop(true);
  }

  /** Cuts the connections that there are, and listens on. */
  hangUp(service: ServiceName): void {
    void this.stop(service);
    this.start(service);
  }

  async stopAll(): Promise<void> {
    await Promise.all(SERVICES.map((service) => this.stop(service)));
  }

  async #answer(service: ServiceName, incoming: Request): Promise<Response> {
    const text = incoming.method === "POST" ? await incoming.text() : "";
    const begun = performance.now();
    this.#options.tick?.();
    const url = new URL(incoming.url);
    const request: ServiceRequest = {
      method: incoming.method,
      path: url.pathname,
      query: url.searchParams,
      headers: incoming.headers,
      base: this.baseOf(service),
      body: jsonOf(text),
    };
    let made: Reply | null = null;
    const answer = () => {
      made ??= this.#reply(service, request);
      return made;
    };
    const other = this.#options.intercept?.({ service, request, answer }) ?? null;
    const response = other ?? responseOf(answer());
    this.busyMs += performance.now() - begun;
    return await response;
  }

  #reply(service: ServiceName, request: ServiceRequest): Reply {
    const world = this.#world;
    if (service === "keystone") return this.keystone.answer(request);
    const { versions, answer } = HANDLERS[service];
    const open = versions(request);
    if (open !== null) return open;
    const token = this.keystone.tokenOf(request.headers);
    if (token !== null) return answer(world, { ...request, token });
    const headers = { "WWW-Authenticate": `Keystone uri="${this.baseOf("keystone")}"` };
    if (service === "glance") {
      const message =
        "This server could not verify that you are authorized to access the document you requested.";
      return { ...glanceFault(401, "Unauthorized", message), headers };
    }
    const message = "The request you have made requires authentication.";
    return reply(401, { error: { code: 401, title: "Unauthorized", message } }, headers);
  }
}

interface Handlers {
  versions(request: ServiceRequest): Reply | null;
  answer(world: World, request: AuthorizedRequest): Reply;
}

const HANDLERS: Readonly<Record<Exclude<ServiceName, "keystone">, Handlers>> = {
  nova: { versions: novaVersions, answer: nova },
  cinder: { versions: cinderVersions, answer: cinder },
  neutron: { versions: neutronVersions, answer: neutron },
  glance: { versions: glanceVersions, answer: glance },
  octavia: { versions: octaviaVersions, answer: octavia },
};

/** A reply as it goes out. */
export function responseOf({ status, body, headers }: Reply): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json", ...headers },
  });
}

/** The value of a JSON text; null where it is none. */
function jsonOf(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
