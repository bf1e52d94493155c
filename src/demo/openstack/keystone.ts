/** Keystone v3: versions, tokens with their catalog, projects. */
import { formatInstant, type Instant } from "../../event/instant.ts";
import type { Project, User } from "./model.ts";
import { type Reply, reply, type ServiceName, type ServiceRequest } from "./service.ts";
import type { Token } from "./token.ts";
import { DEFAULT_DOMAIN, hexId, type World } from "./world.ts";

/** Where the services are, as the catalog tells it. */
export interface Catalog {
  readonly region: string;
  /** The service's base URL, `http://127.0.0.1:8774`; null where it is left out. */
  baseOf(service: ServiceName): string | null;
}

const VERSION = {
  id: "v3.14",
  status: "stable",
  updated: "2020-04-07T00:00:00Z",
  "media-types": [{ base: "application/json", type: "application/vnd.openstack.identity-v3+json" }],
} as const;

const ENTRIES = [
  { service: "neutron", type: "network", name: "neutron", path: () => "" },
  { service: "nova", type: "compute", name: "nova", path: () => "/v2.1" },
  { service: "keystone", type: "identity", name: "keystone", path: () => "/v3/" },
  { service: "cinder", type: "volumev3", name: "cinderv3", path: (project: string) => `/v3/${project}` },
  { service: "glance", type: "image", name: "glance", path: () => "" },
  { service: "octavia", type: "load-balancer", name: "octavia", path: () => "" },
] as const;

/** Issues tokens and knows those that it issued. */
export class Keystone {
  readonly #world: World;
  readonly #catalog: Catalog;
  readonly #tokens = new Map<string, Token>();
  #issued = 0;
  /** How long a token lasts, in seconds of the cloud's clock. */
  tokenSeconds = 3_600;

  constructor(world: World, catalog: Catalog) {
    this.#world = world;
    this.#catalog = catalog;
  }

  /** How many tokens it has issued. */
  get issued(): number {
    return this.#issued;
  }

  /** @returns null for none, an unknown or an expired one */
  tokenOf(headers: Headers): Token | null {
    const token = this.#tokens.get(headers.get("x-auth-token") ?? "");
    return token === undefined || token.expiresAt <= this.#world.now ? null : token;
  }

  /** From now on every token that was issued is refused. */
  revokeAll(): void {
    this.#tokens.clear();
  }

  answer(request: ServiceRequest): Reply {
    const path = request.path.replace(/\/$/, "");
    const version = { ...VERSION, links: [{ rel: "self", href: `${request.base}/v3/` }] };
    if (path === "") {
      return reply(300, { versions: { values: [version] } }, { Location: `${request.base}/v3/` });
    }
    if (path === "/v3") return reply(200, { version });
    if (path === "/v3/auth/tokens" && request.method === "POST") return this.#logIn(request);
    const token = this.tokenOf(request.headers);
    if (token === null) return unauthorized(request.base);
    if (path === "/v3/auth/catalog") return reply(200, { catalog: this.#entries(token.project.id) });
    if (path === "/v3/projects") return this.#projects(token);
    return refused(404, "Not Found", "Could not find the requested resource.");
  }

  #projects(token: Token): Reply {
    if (!token.roles.includes("admin")) {
      const message = "You are not authorized to perform the requested action: identity:list_projects.";
      return refused(403, "Forbidden", message);
    }
    const projects = [...this.#world.projects.values()].map(({ id, name, domainId }) => ({
      id,
      name,
      domain_id: domainId,
      enabled: true,
      is_domain: false,
    }));
    return reply(200, { projects, links: { next: null, previous: null } });
  }

  #logIn(request: ServiceRequest): Reply {
    const auth = member(request.body, "auth");
    const identity = member(auth, "identity");
    if (identity === undefined) return refused(400, "Bad Request", "'identity' is a required property");
    const byCredential = member(identity, "application_credential");
    const scope = member(auth, "scope");
    if (byCredential === undefined && member(scope, "system") !== undefined)
      return unauthorized(request.base);
    const login =
      byCredential === undefined
        ? this.#byPassword(member(member(identity, "password"), "user"), member(scope, "project"))
        : this.#byApplicationCredential(byCredential);
    if (login === null) return unauthorized(request.base);
    const { user, project, methods } = login;
    const roles = user.roles.get(project.id) ?? [];
    const issuedAt = this.#world.now;
    const expiresAt = (issuedAt + BigInt(this.tokenSeconds) * 1_000_000n) as Instant;
    const value = `gAAAAA-fake-${hexId(`${++this.#issued} ${user.id}`)}`;
    this.#tokens.set(value, { value, user, project, roles, expiresAt });
    const token = {
      methods,
      user: { domain: DEFAULT_DOMAIN, id: user.id, name: user.name, password_expires_at: null },
      audit_ids: [hexId(value).slice(0, 22)],
      expires_at: longForm(expiresAt),
      issued_at: longForm(issuedAt),
      project: { domain: DEFAULT_DOMAIN, id: project.id, name: project.name },
      is_domain: false,
      roles: roles.map((name) => ({ id: hexId(`role ${name}`), name })),
      catalog: this.#entries(project.id),
    };
    return reply(201, { token }, { "X-Subject-Token": value });
  }

  #byPassword(named: unknown, scope: unknown): Login | null {
    const user = [...this.#world.users.values()].find(({ id, name }) => names(named, { id, name }));
    if (user === undefined || user.password !== member(named, "password")) return null;
    const project = [...this.#world.projects.values()].find(({ id, name }) => names(scope, { id, name }));
    if (project === undefined || !user.roles.has(project.id)) return null;
    return { user, project, methods: ["password"] };
  }

  #byApplicationCredential(named: unknown): Login | null {
    for (const user of this.#world.users.values()) {
      const credential = user.applicationCredential;
      if (credential === null || credential.id !== member(named, "id")) continue;
      const project = this.#world.projects.get(credential.projectId);
      if (credential.secret !== member(named, "secret") || project === undefined) return null;
      return { user, project, methods: ["application_credential"] };
    }
    return null;
  }

  #entries(projectId: string): unknown[] {
    const { region } = this.#catalog;
    return ENTRIES.flatMap(({ service, type, name, path }) => {
      const base = this.#catalog.baseOf(service);
      if (base === null) return [];
      const endpoints = ["admin", "internal", "public"].map((name) => ({
        id: hexId(`endpoint ${service} ${name}`),
        interface: name,
        region_id: region,
        url: `${base}${path(projectId)}`,
        region,
      }));
      return [{ endpoints, id: hexId(`service ${service}`), type, name }];
    });
  }
}

interface Login {
  readonly user: User;
  readonly project: Project;
  readonly methods: readonly string[];
}

/** Whether a reference by id, or by name (with a domain, which isn't looked at), means this one. */
function names(reference: unknown, one: { readonly id: string; readonly name: string }): boolean {
  const id = member(reference, "id");
  return id === undefined ? member(reference, "name") === one.name : id === one.id;
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** `2026-12-01T16:00:02.000000Z`. */
function longForm(instant: Instant): string {
  return `${formatInstant(instant).slice(0, 19)}.000000Z`;
}

function refused(code: number, title: string, message: string): Reply {
  return reply(code, { error: { code, message, title } });
}

/** What Keystone says to every login that it refuses, and to a token that it doesn't take. */
function unauthorized(base: string): Reply {
  const message = "The request you have made requires authentication.";
  return reply(
    401,
    { error: { code: 401, message, title: "Unauthorized" } },
    { "WWW-Authenticate": `Keystone uri="${base}/v3"` },
  );
}
