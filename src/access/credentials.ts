/** Issuing and revoking what callers identify themselves with, each with its audit row. */
import type { Database } from "../database/connection.ts";
import { transaction } from "../database/transaction.ts";
import { IDENTIFIER_MAX_BYTES, VIRTUAL_PLATFORMS } from "../event/bounds.ts";
import { writeAudit } from "./audit.ts";
import {
  insertApiToken,
  insertCredential,
  knownProjectIds,
  type Revocation,
  type Role,
  revokeApiToken,
  revokeCredential,
} from "./queries.ts";
import { newToken, type TokenKind, tokenSha256 } from "./tokens.ts";

/** What issuing gives: the row's id, and the token, which is nowhere else from now on. */
export interface Issued {
  readonly id: string;
  readonly token: string;
}

/** A refusal for the operator to read, in one line. */
export class CredentialRefused extends Error {
  override readonly name = "CredentialRefused";
}

/** Every project of a token is a branch of each list that it reads. */
const MAX_PROJECTS = 1_000;

/**
 * Issues the credential of one collector: it may write events of that platform and cloud, and no others.
 * @throws CredentialRefused
 */
export async function issueCredential(
  db: Database,
  wanted: { readonly platform: string; readonly cloud: string; readonly description: string | null },
  actor: string,
): Promise<Issued> {
  const { platform, cloud, description } = wanted;
  for (const [name, value] of [
    ["platform", platform],
    ["cloud", cloud],
  ] as const) {
    checkText(name, value, IDENTIFIER_MAX_BYTES);
    if (VIRTUAL_PLATFORMS.has(value)) {
      throw new CredentialRefused(`${name}: "${value}" is a virtual ${name}, which never carries resources`);
    }
  }
  checkDescription(description);
  const token = newToken("ingest");
  const id = await transaction(db, async (tx) => {
    const made = await insertCredential(tx, { platform, cloud, description, sha256: tokenSha256(token) });
    const details = { platform, cloud, description };
    await writeAudit(tx, [
      { actor, action: "ingest_credential.create", objectType: "ingest_credential", objectId: made, details },
    ]);
    return made;
  });
  return { id, token };
}

/**
 * Issues an API token. `projectIds` are registry ids: at least one for the role `project`, none for the others.
 * @throws CredentialRefused
 */
export async function issueApiToken(
  db: Database,
  wanted: {
    readonly role: Role;
    readonly projectIds: readonly string[];
    readonly description: string | null;
  },
  actor: string,
): Promise<Issued> {
  const { role, description } = wanted;
  const projectIds = [...new Set(wanted.projectIds.map((id) => id.toLowerCase()))];
  if (role === "project" && projectIds.length === 0) {
    throw new CredentialRefused("a token of role project needs at least one --project");
  }
  if (role !== "project" && projectIds.length > 0) {
    throw new CredentialRefused(`a token of role ${role} reads every project: leave --project out`);
  }
  if (projectIds.length > MAX_PROJECTS) {
    throw new CredentialRefused(
      `a token stands for at most ${MAX_PROJECTS} projects, got ${projectIds.length}`,
    );
  }
  for (const id of projectIds)
    checkUuid("project", id, ": tally project list shows the ids that tokens take");
  checkDescription(description);
  const token = newToken("api");
  const id = await transaction(db, async (tx) => {
    const known = await knownProjectIds(tx, projectIds);
    const unknown = projectIds.filter((project) => !known.has(project));
    if (unknown.length > 0) {
      throw new CredentialRefused(
        `no registered project has the id ${unknown.join(", ")}: tally project list shows them`,
      );
    }
    const made = await insertApiToken(tx, { role, projectIds, description, sha256: tokenSha256(token) });
    const details = { role, project_ids: projectIds, description };
    await writeAudit(tx, [
      { actor, action: "api_token.create", objectType: "api_token", objectId: made, details },
    ]);
    return made;
  });
  return { id, token };
}

/**
 * Revokes a credential or token: it is refused from the next request on. One that was revoked before keeps its
 * instant and leaves no second audit row.
 * @throws CredentialRefused for an id that isn't one.
 */
export async function revoke(
  db: Database,
  kind: TokenKind,
  id: string,
  actor: string,
): Promise<Extract<Revocation, { at: unknown }>> {
  checkUuid(kind === "ingest" ? "credential" : "token", id);
  const objectType = kind === "ingest" ? "ingest_credential" : "api_token";
  return await transaction(db, async (tx) => {
    const result = await (kind === "ingest" ? revokeCredential(tx, id) : revokeApiToken(tx, id));
    if (result.outcome === "unknown") {
      throw new CredentialRefused(
        `no ${kind === "ingest" ? "ingest credential" : "API token"} has the id ${id}`,
      );
    }
    if (result.outcome === "revoked") {
      const objectId = id.toLowerCase();
      await writeAudit(tx, [{ actor, action: `${objectType}.revoke`, objectType, objectId, details: {} }]);
    }
    return result;
  });
}

function checkUuid(what: string, id: string, hint = ""): void {
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(id)) {
    throw new CredentialRefused(`${what}: ${JSON.stringify(id)} is not a UUID${hint}`);
  }
}

function checkDescription(description: string | null): void {
  if (description !== null) checkText("description", description, 4_096);
}

function checkText(name: string, value: string, maxBytes: number): void {
  const bytes = Buffer.byteLength(value);
  if (bytes < 1 || bytes > maxBytes) {
    throw new CredentialRefused(`${name}: must be 1 to ${maxBytes} bytes, got ${bytes}`);
  }
  if (value.includes("\0")) throw new CredentialRefused(`${name}: holds a NUL character`);
}
