/**
 * Answers the recorded exchanges of a real cloud, by path and query. Only the catalog of a token is rewritten, to lead
 * here; the links inside of listings go on naming the cloud's own host, as they do behind a proxy.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memberText } from "../../../src/event/json-text.ts";

const RECORDINGS = join(import.meta.dir, "../recordings");

/** A recorded exchange. */
export interface Recording {
  readonly path: string;
  /** The request's body. */
  readonly sent: unknown;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** As it was served, byte for byte. */
  readonly body: string;
}

/** Reads `nova/servers-detail-all-2.47`, say. */
export function recording(name: string): Recording {
  const text = readFileSync(join(RECORDINGS, `${name}.json`), "utf8");
  const { request, response } = JSON.parse(text);
  const body = memberText(memberText(text, "response") ?? "", "body") ?? "";
  return { path: request.path, sent: request.body, status: response.status, headers: response.headers, body };
}

/** What a test wants answered: a recording's name, or its own doing. */
export type Reply = string | ((request: Request) => Response | Promise<Response>);

/** Which service each port of the recorded cloud is. */
const PORTS: ReadonlyMap<string, string> = new Map([
  ["5000", "keystone"],
  ["8774", "nova"],
  ["8776", "cinder"],
  ["9292", "glance"],
  ["9696", "neutron"],
  ["9876", "octavia"],
]);

/** What the cloud held when most of the recordings were made, 2026-12-01T15:00. */
const NOW: Readonly<Record<string, Reply>> = {
  "POST keystone/v3/auth/tokens": "keystone/auth-password-collector",
  "GET nova/v2.1/": "nova/version-v2.1",
  "GET nova/v2.1/servers/detail?all_tenants=1": "nova/servers-detail-all-2.47",
  "GET nova/v2.1/servers/detail?all_tenants=1&limit=1": "nova/servers-detail-all-application-credential",
  "GET cinder/v3/": "cinder/version-v3-with-token",
  "GET cinder/v3/PROJECT/volumes/detail?all_tenants=1&with_count=True": "cinder/volumes-detail-all-3.70",
  "GET cinder/v3/PROJECT/types?is_public=None": "cinder/types-is-public-none",
  "GET neutron/v2.0/floatingips": "neutron/floatingips-admin",
  "GET glance/v2/images?member_status=all&visibility=all": "glance/images-visibility-all",
  "GET glance/v2/images?member_status=all&os_hidden=true&visibility=all":
    "glance/images-hidden-visibility-all",
  "GET octavia/v2/lbaas/loadbalancers": "octavia/loadbalancers-admin",
};

/** A cloud that answers what was recorded. */
export interface Replay {
  readonly url: string;
  /** A directory with a clouds.yaml whose entry `zed` is this cloud. */
  readonly directory: string;
  /** Reads that clouds.yaml only. */
  readonly env: Readonly<Record<string, string>>;
  /** What was asked, in order: method, service, path and query. */
  readonly asked: string[];
  /** Every request's headers, in the same order. */
  readonly headers: Headers[];
  stop(): Promise<void>;
}

/** What a test changes. */
export interface ReplayOptions {
  readonly replies?: Readonly<Record<string, Reply>>;
  /** Answers what nothing else does. */
  readonly otherwise?: Reply;
  readonly cloudsYaml?: (url: string) => string;
  readonly tls?: { readonly cert: string; readonly key: string };
}

export const PASSWORD = "pass-of-the-collector";
export const TOKEN = "gAAAAA-token-of-the-collector";

/** Starts it. */
export function replay(options: ReplayOptions = {}): Replay {
  const replies = { ...NOW, ...options.replies };
  const asked: string[] = [];
  const headers: Headers[] = [];
  const server: Bun.Server<undefined> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    async fetch(request): Promise<Response> {
      const what = nameOf(request);
      asked.push(what);
      headers.push(request.headers);
      const reply = replies[what] ?? recordedAnswer(what) ?? options.otherwise;
      if (reply === undefined) return new Response(`not recorded: ${what}`, { status: 500 });
      return typeof reply === "string" ? answered(reply, origin) : await reply(request);
    },
  });
  const origin: string = server.url.origin;
  const directory = mkdtempSync(join(tmpdir(), "tally-clouds-"));
  const cloudsYaml = options.cloudsYaml ?? usualCloudsYaml;
  writeFileSync(join(directory, "clouds.yaml"), cloudsYaml(origin));
  return {
    url: origin,
    directory,
    env: { OS_CLIENT_CONFIG_FILE: join(directory, "clouds.yaml"), HOME: directory },
    asked,
    headers,
    async stop() {
      rmSync(directory, { recursive: true });
      await server.stop(true);
    },
  };
}

export function usualCloudsYaml(url: string): string {
  return `clouds:
  zed:
    auth:
      auth_url: ${url}/keystone
      username: collector
      password: ${PASSWORD}
      project_name: collector
      user_domain_name: Default
      project_domain_name: Default
    region_name: RegionOne
`;
}

/** A recording, as it was served, by a cloud at `origin`. */
export function answered(name: string, origin: string): Response {
  const { status, headers, body } = recording(name);
  const sent = new Headers(headers);
  let text = body;
  if (name.startsWith("keystone/auth-")) {
    text = text.replace(/http:\/\/cloud\.example:(\d+)/g, (_, port) => `${origin}/${PORTS.get(port)}`);
    if (sent.has("x-subject-token")) sent.set("x-subject-token", TOKEN);
  }
  return new Response(text, { status, headers: sent });
}

/** The catalog's token, changed. */
export function tokenWith(
  change: (token: Record<string, unknown>, origin: string) => void,
  value = TOKEN,
): Reply {
  return async (request) => {
    const origin = new URL(request.url).origin;
    const body = JSON.parse(await answered("keystone/auth-password-collector", origin).text());
    change(body.token, origin);
    return Response.json(body, { status: 201, headers: { "x-subject-token": value } });
  };
}

/** `GET nova/v2.1/servers/detail?all_tenants=1`: members in order, the usual page size and the project left out. */
function nameOf(request: Request): string {
  const url = new URL(request.url);
  return known(`${request.method} ${url.pathname.slice(1)}`, url.searchParams);
}

function known(what: string, query: URLSearchParams): string {
  const sorted = new URLSearchParams(query);
  if (sorted.get("limit") === "500") sorted.delete("limit");
  sorted.sort();
  const path = what.replace(/\/v3\/[0-9a-f]{32}(?=\/)/, "/v3/PROJECT");
  return sorted.size === 0 ? path : `${path}?${sorted}`;
}

/** Further pages, single flavors and the like, which were recorded once only. */
function recordedAnswer(what: string): string | undefined {
  return index().get(what);
}

let made: Map<string, string> | null = null;

function index(): Map<string, string> {
  if (made !== null) return made;
  made = new Map();
  for (const service of PORTS.values()) {
    for (const file of readdirSync(join(RECORDINGS, service)).sort()) {
      const name = `${service}/${file.replace(/\.json$/, "")}`;
      const url = new URL(recording(name).path, "http://cloud.example");
      const what = known(`GET ${service}${url.pathname}`, url.searchParams);
      if (url.searchParams.has("marker") || /deleted-404$/.test(name)) made.set(what, name);
    }
  }
  return made;
}
