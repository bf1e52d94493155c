/** Logging in, and what a login gives: a token and the addresses of the services. */
import { RunFailure } from "../adapter.ts";
import type { CloudEntry } from "./clouds-yaml.ts";
import { ServiceFailure } from "./failure.ts";
import { isJsonObject, type JsonObject, readTimestamp, textOf } from "./item.ts";
import type { Answer, Transport } from "./transport.ts";

/** A token, its project and its catalog. */
export interface Token {
  readonly value: string;
  readonly projectId: string;
  readonly catalog: readonly Endpoint[];
  /** When it should be replaced, on the clock of `performance.now()`. */
  readonly goodUntil: number;
}

/** One address of one service. */
export interface Endpoint {
  readonly type: string;
  readonly region: string;
  readonly interface: string;
  readonly url: string;
}

const MINUTE = 60_000;

/**
 * Logs in.
 * @throws {RunFailure} when Keystone refuses or can't be reached; it names the entry and holds no secret
 */
export async function logIn(entry: CloudEntry, transport: Transport, signal: AbortSignal): Promise<Token> {
  for (const secret of entry.secrets) transport.hide(secret);
  const ask = {
    method: "POST",
    url: new URL(`${entry.keystone}/auth/tokens`),
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(entry.login),
  } as const;
  try {
    const answer = await transport.send(ask, signal);
    if (answer.status !== 201 && answer.status !== 200) throw refused(entry, answer, ask.url);
    const value = answer.headers.get("x-subject-token") ?? "";
    const { token } = transport.json(ask, answer);
    if (value === "" || !isJsonObject(token)) throw transport.failure(ask, "answered no token");
    transport.hide(value);
    const project = isJsonObject(token.project) ? textOf(token.project, "id") : null;
    if (project === null) throw transport.failure(ask, "answered a token without a project");
    return {
      value,
      projectId: project,
      catalog: endpointsIn(token.catalog),
      goodUntil: performance.now() + lifetime(token),
    };
  } catch (error) {
    if (!(error instanceof ServiceFailure)) throw error;
    throw new RunFailure(`${entry.name} in ${entry.file}: can't log in: ${error.message}`);
  }
}

/** What Keystone says to a malformed request quotes the request, password and all: only its status is told. */
function refused(entry: CloudEntry, { status }: Answer, url: URL): RunFailure {
  const at = `${entry.name} in ${entry.file}: Keystone (${url.host}) `;
  if (status !== 401) return new RunFailure(`${at}answered ${status} to the login`);
  return new RunFailure(
    `${at}refused the login (401). It answers the same to a wrong password or secret, an unknown user, ` +
      "a disabled or deleted project, and a user without a role on the project: check all four",
  );
}

/** So long a token is used, in ms: by Keystone's clock alone, and ended a little before it ends. */
function lifetime(token: JsonObject): number {
  const issued = readTimestamp(textOf(token, "issued_at") ?? "");
  const expires = readTimestamp(textOf(token, "expires_at") ?? "");
  if (issued === null || expires === null || expires <= issued) return 5 * MINUTE;
  const ms = Number((expires - issued) / 1_000n);
  return ms - Math.min(MINUTE, ms / 10);
}

function endpointsIn(catalog: unknown): Endpoint[] {
  if (!Array.isArray(catalog)) return [];
  return catalog.flatMap((service: unknown) => {
    if (!isJsonObject(service) || !Array.isArray(service.endpoints)) return [];
    const type = textOf(service, "type");
    return service.endpoints.flatMap((endpoint: unknown) => {
      if (!isJsonObject(endpoint) || type === null) return [];
      const url = textOf(endpoint, "url");
      const region = textOf(endpoint, "region_id") ?? textOf(endpoint, "region") ?? "";
      return url === null ? [] : [{ type, region, interface: textOf(endpoint, "interface") ?? "", url }];
    });
  });
}
