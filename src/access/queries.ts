/** Every statement over ingest_credentials and api_tokens. Tokens come in as the hex of their SHA-256. */
import type { Queryable } from "../database/connection.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";

/** What a token may read and write: `admin` ⊇ `read_all` ⊇ `project`. */
export type Role = "admin" | "read_all" | "project";

/** A registered project, as a token of role `project` carries it. */
export interface TokenProject {
  /** The registry's id. */
  readonly id: string;
  readonly cloud: string;
  /** The project as its cloud names it, which is the id that events carry. */
  readonly externalId: string;
}

/** One row of `tally credential list`. */
export interface CredentialRow {
  readonly id: string;
  readonly platform: string;
  readonly cloud: string;
  readonly description: string | null;
  readonly createdAt: Instant;
  readonly revokedAt: Instant | null;
}

/** One row of `tally token list`. */
export interface ApiTokenRow {
  readonly id: string;
  readonly role: Role;
  readonly projectIds: readonly string[];
  readonly description: string | null;
  readonly createdAt: Instant;
  readonly revokedAt: Instant | null;
}

/** The live ingest credential with that token, or null. */
export async function findCredential(
  db: Queryable,
  sha256: string,
): Promise<{ id: string; platform: string; cloud: string } | null> {
  const rows: { id: string; platform: string; cloud: string }[] = await db`
    SELECT id::text AS id, platform, cloud FROM ingest_credentials
     WHERE token_sha256 = decode(${sha256}, 'hex') AND revoked_at IS NULL`;
  return rows[0] ?? null;
}

/**
 * The live API token with that hash, its registry ids already resolved to projects, or null. An id that the
 * registry doesn't know stands for nothing.
 */
export async function findApiToken(
  db: Queryable,
  sha256: string,
): Promise<{ id: string; role: Role; projects: TokenProject[] } | null> {
  const rows: { id: string; role: Role; ids: string }[] = await db`
    SELECT id::text AS id, role, project_ids::text AS ids FROM api_tokens
     WHERE token_sha256 = decode(${sha256}, 'hex') AND revoked_at IS NULL`;
  const row = rows[0];
  if (row === undefined) return null;
  const { id, role, ids } = row;
  // Every request comes by here, and most tokens name no projects: looking for some costs more than the token itself.
  return { id, role, projects: role === "project" ? await projectsOf(db, ids) : [] };
}

/** The registered projects of a `uuid[]`, by id. */
async function projectsOf(db: Queryable, ids: string): Promise<TokenProject[]> {
  return await db`
    SELECT id::text AS id, cloud, external_id AS "externalId" FROM projects
     WHERE id = ANY (${ids}::text::uuid[]) ORDER BY id`;
}

/** Stores a credential; gives its id. */
export async function insertCredential(
  tx: Queryable,
  credential: { platform: string; cloud: string; description: string | null; sha256: string },
): Promise<string> {
  const { platform, cloud, description, sha256 } = credential;
  const rows: { id: string }[] = await tx`
    INSERT INTO ingest_credentials (platform, cloud, description, token_sha256)
    VALUES (${platform}, ${cloud}, ${description}, decode(${sha256}, 'hex'))
    RETURNING id::text AS id`;
  return oneId(rows);
}

/** Stores an API token; gives its id. */
export async function insertApiToken(
  tx: Queryable,
  token: { role: Role; projectIds: readonly string[]; description: string | null; sha256: string },
): Promise<string> {
  const { role, projectIds, description, sha256 } = token;
  const rows: { id: string }[] = await tx`
    INSERT INTO api_tokens (role, project_ids, description, token_sha256)
    SELECT ${role}, coalesce(array_agg(project.id::uuid ORDER BY project.position), '{}'), ${description}::text,
           decode(${sha256}, 'hex')
      FROM json_array_elements_text(${JSON.stringify(projectIds)}::text::json)
           WITH ORDINALITY AS project (id, position)
    RETURNING id::text AS id`;
  return oneId(rows);
}

function oneId(rows: readonly { id: string }[]): string {
  const row = rows[0];
  if (row === undefined) throw new Error("INSERT … RETURNING gave no row");
  return row.id;
}

/** Those of the ids that the project registry holds. */
export async function knownProjectIds(db: Queryable, ids: readonly string[]): Promise<Set<string>> {
  const rows: { id: string }[] = await db`
    SELECT id::text AS id FROM projects
     WHERE id IN (SELECT value::uuid FROM json_array_elements_text(${JSON.stringify(ids)}::text::json))`;
  return new Set(rows.map((row) => row.id));
}

/** What a revocation found: `revoked` now, `already` revoked at `at`, or no such id. */
export type Revocation =
  | { readonly outcome: "revoked" | "already"; readonly at: Instant }
  | { readonly outcome: "unknown" };

interface RevocationRow {
  readonly at: string;
  readonly fresh: boolean;
}

function revocation(rows: readonly RevocationRow[]): Revocation {
  const row = rows[0];
  if (row === undefined) return { outcome: "unknown" };
  return { outcome: row.fresh ? "revoked" : "already", at: instantFromMicros(row.at) };
}

/** Revokes an ingest credential. One that is revoked already keeps its instant. */
export async function revokeCredential(tx: Queryable, id: string): Promise<Revocation> {
  const rows: RevocationRow[] = await tx`
    WITH held AS (SELECT id, revoked_at FROM ingest_credentials WHERE id = ${id}::uuid FOR UPDATE)
    UPDATE ingest_credentials c SET revoked_at = coalesce(held.revoked_at, now())
      FROM held WHERE c.id = held.id
    RETURNING (extract(epoch FROM c.revoked_at) * 1000000)::bigint::text AS at, held.revoked_at IS NULL AS fresh`;
  return revocation(rows);
}

/** Revokes an API token. One that is revoked already keeps its instant. */
export async function revokeApiToken(tx: Queryable, id: string): Promise<Revocation> {
  const rows: RevocationRow[] = await tx`
    WITH held AS (SELECT id, revoked_at FROM api_tokens WHERE id = ${id}::uuid FOR UPDATE)
    UPDATE api_tokens t SET revoked_at = coalesce(held.revoked_at, now())
      FROM held WHERE t.id = held.id
    RETURNING (extract(epoch FROM t.revoked_at) * 1000000)::bigint::text AS at, held.revoked_at IS NULL AS fresh`;
  return revocation(rows);
}

/** All ingest credentials, oldest first, the revoked ones too. */
export async function listCredentials(db: Queryable): Promise<CredentialRow[]> {
  const rows: (Omit<CredentialRow, "createdAt" | "revokedAt"> & {
    created: string;
    revoked: string | null;
  })[] = await db`
    SELECT id::text AS id, platform, cloud, description,
           (extract(epoch FROM created_at) * 1000000)::bigint::text AS created,
           (extract(epoch FROM revoked_at) * 1000000)::bigint::text AS revoked
      FROM ingest_credentials ORDER BY created_at, id`;
  return rows.map(({ created, revoked, ...row }) => ({ ...row, ...instants(created, revoked) }));
}

/** All API tokens, oldest first, the revoked ones too. */
export async function listApiTokens(db: Queryable): Promise<ApiTokenRow[]> {
  const rows: (Omit<ApiTokenRow, "createdAt" | "revokedAt"> & { created: string; revoked: string | null })[] =
    await db`
    SELECT id::text AS id, role, to_json(project_ids::text[]) AS "projectIds", description,
           (extract(epoch FROM created_at) * 1000000)::bigint::text AS created,
           (extract(epoch FROM revoked_at) * 1000000)::bigint::text AS revoked
      FROM api_tokens ORDER BY created_at, id`;
  return rows.map(({ created, revoked, ...row }) => ({ ...row, ...instants(created, revoked) }));
}

function instants(
  created: string,
  revoked: string | null,
): { createdAt: Instant; revokedAt: Instant | null } {
  return {
    createdAt: instantFromMicros(created),
    revokedAt: revoked === null ? null : instantFromMicros(revoked),
  };
}
