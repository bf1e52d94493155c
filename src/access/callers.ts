/**
 * Who is calling, and what the caller may see. Every request looks its token up by hash, so that a revocation
 * counts at the next one; nothing is remembered between requests.
 */
import type { Queryable } from "../database/connection.ts";
import { credentialNeeded, roleNeeded, type Scheme } from "../http/needed.ts";
import { Problem } from "../problem.ts";
import { Lookups } from "./lookups.ts";
import { findApiToken, findCredential, type Role } from "./queries.ts";
import { bearerToken, hasFormOf, sameSecret, tokenSha256 } from "./tokens.ts";

/** What looking a caller up takes. */
export interface AccessServices {
  readonly db: Queryable;
  readonly settings: {
    readonly auth: { readonly mode: "enforced" | "disabled"; readonly internalToken: string | null };
  };
}

/** A project as events name it. The pair narrows rows: another cloud's project of the same id is another one. */
export interface ProjectPair {
  readonly cloud: string;
  readonly projectId: string;
}

/** What a reader may see: null is everything; an empty list is nothing at all. */
export type Scope = readonly ProjectPair[] | null;

/** A collector. */
export interface IngestCaller {
  /** The credential's id, for the audit log and the dead letters. */
  readonly actor: string;
  /** What its items must name; null where the checks are switched off. */
  readonly scope: { readonly platform: string; readonly cloud: string } | null;
}

/** A reader or an operator. */
export interface ApiCaller {
  /** The token's id. */
  readonly actor: string;
  readonly role: Role;
  readonly scope: Scope;
}

/** One of Tally's own parts. */
export interface InternalCaller {
  readonly actor: string;
}

/** The actor of everything that is done while `TALLY_REPORTING_AUTH_MODE=disabled`. */
const OPEN = "auth-disabled";
const RANKS = { project: 0, read_all: 1, admin: 2 } as const satisfies Record<Role, number>;

function unauthorized(scheme: Scheme): Problem {
  // One answer for every reason: whoever guesses learns nothing from it.
  return new Problem("unauthorized", credentialNeeded(scheme), {
    headers: { "www-authenticate": "Bearer" },
  });
}

type Credential = Awaited<ReturnType<typeof findCredential>>;
const credentials = new WeakMap<Queryable, Lookups<Credential>>();

/** A collector that sends many requests side by side is looked up once for those that wait. */
function credentialsOf(db: Queryable): Lookups<Credential> {
  const known = credentials.get(db);
  if (known !== undefined) return known;
  const lookups = new Lookups((sha256) => findCredential(db, sha256));
  credentials.set(db, lookups);
  return lookups;
}

/** The collector behind a request. @throws Problem unauthorized without a live ingest token. */
export async function ingestCaller(services: AccessServices, request: Request): Promise<IngestCaller> {
  if (services.settings.auth.mode === "disabled") return { actor: OPEN, scope: null };
  const token = bearerToken(request.headers.get("authorization"));
  if (token === null || !hasFormOf("ingest", token)) throw unauthorized("ingestToken");
  const credential = await credentialsOf(services.db).find(tokenSha256(token));
  if (credential === null) throw unauthorized("ingestToken");
  return {
    actor: credential.id,
    scope: { platform: credential.platform, cloud: credential.cloud },
  };
}

/**
 * The reader or operator behind a request.
 * @param needs the smallest role that the route serves; `project` serves all of them.
 * @throws Problem unauthorized without a live API token, forbidden where its role is too small.
 */
export async function apiCaller(services: AccessServices, request: Request, needs: Role): Promise<ApiCaller> {
  if (services.settings.auth.mode === "disabled") return { actor: OPEN, role: "admin", scope: null };
  const token = bearerToken(request.headers.get("authorization"));
  if (token === null || !hasFormOf("api", token)) throw unauthorized("apiToken");
  const found = await findApiToken(services.db, tokenSha256(token));
  if (found === null) throw unauthorized("apiToken");
  if (RANKS[found.role] < RANKS[needs]) {
    throw new Problem("forbidden", roleNeeded(needs));
  }
  const pairs = found.projects.map(({ cloud, externalId }) => ({ cloud, projectId: externalId }));
  return { actor: found.id, role: found.role, scope: found.role === "project" ? pairs : null };
}

/** Tally's own part behind a request. @throws Problem unauthorized without the shared internal token. */
export function internalCaller(services: AccessServices, request: Request): InternalCaller {
  const { mode, internalToken } = services.settings.auth;
  if (mode === "disabled") return { actor: OPEN };
  const token = bearerToken(request.headers.get("authorization"));
  // No token set means that nobody may call, never that anybody may.
  if (token === null || internalToken === null || !sameSecret(token, internalToken))
    throw unauthorized("internalToken");
  return { actor: "internal" };
}

/** Whether a scope holds that project of that cloud. */
export function inScope(scope: Scope, pair: ProjectPair): boolean {
  return scope === null || scope.some((own) => own.cloud === pair.cloud && own.projectId === pair.projectId);
}
