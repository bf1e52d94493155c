/** Registering projects and changing them, each write with its audit row. The API and the command line call this. */
import { writeAudit } from "../access/audit.ts";
import type { Database } from "../database/connection.ts";
import { transaction } from "../database/transaction.ts";
import { byteLength, IDENTIFIER_MAX_BYTES, VIRTUAL_PLATFORMS } from "../event/bounds.ts";
import { refusal } from "../http/refusal.ts";
import { type FieldError, Problem } from "../problem.ts";
import { metadataOf, NO_METADATA } from "./metadata.ts";
import { insertProject, type NewProject, type ProjectRow, updateProject } from "./queries.ts";

/** What identifies a project, and its name. */
export type ProjectToRegister = Omit<NewProject, "metadata">;

/**
 * Registers a project.
 * @param body the request's JSON text, for its metadata; null for none.
 * @throws Problem validation (400 for a bound, 422 for a virtual platform's rule or metadata), conflict where the
 *   (cloud, external_id) is registered already.
 */
export async function createProject(
  db: Database,
  project: ProjectToRegister,
  body: string | null,
  actor: string,
): Promise<ProjectRow> {
  checkBounds(project);
  checkVirtual(project);
  return await transaction(db, async (tx) => {
    const metadata = (body === null ? null : await metadataOf(tx, body)) ?? NO_METADATA;
    const made = await insertProject(tx, { ...project, metadata: metadata.text });
    if (made === null) {
      throw new Problem("conflict", "a project of this cloud has this external_id already");
    }
    const { id, platform, cloud, externalId, name } = made;
    await writeAudit(tx, [
      {
        actor,
        action: "project.create",
        objectType: "project",
        objectId: id,
        // Metadata as a string: the log keeps every document digit for digit.
        details: { platform, cloud, external_id: externalId, name, metadata: made.metadata },
      },
    ]);
    return made;
  });
}

/**
 * Changes a project's name, its metadata, or both.
 * @param name null leaves it.
 * @param body the request's JSON text; its metadata replaces the stored one whole, and left out leaves it.
 * @throws Problem not_found; validation, 422, for the metadata.
 */
export async function changeProject(
  db: Database,
  id: string,
  name: string | null,
  body: string,
  actor: string,
): Promise<ProjectRow> {
  return await transaction(db, async (tx) => {
    const metadata = await metadataOf(tx, body);
    const changed = await updateProject(tx, id, { name, metadata: metadata?.text ?? null });
    if (changed === null) throw new Problem("not_found");
    const details = {
      ...(name === null ? {} : { name }),
      ...(metadata === null ? {} : { metadata: metadata.text }),
    };
    await writeAudit(tx, [{ actor, action: "project.update", objectType: "project", objectId: id, details }]);
    return changed;
  });
}

/** The command line's texts come as they are; a request's have been held to the same bounds, with their places. */
function checkBounds({ platform, cloud, externalId, name }: ProjectToRegister): void {
  for (const [member, text] of Object.entries({ platform, cloud, external_id: externalId, name })) {
    if (text === null) continue;
    const bytes = byteLength(text);
    if (bytes < 1 || bytes > IDENTIFIER_MAX_BYTES) {
      throw new Problem("validation", `${member}: must be 1 to ${IDENTIFIER_MAX_BYTES} bytes, got ${bytes}`);
    }
  }
}

/** A virtual project's cloud is its platform; the virtual names are nobody else's cloud. */
function checkVirtual({ platform, cloud }: ProjectToRegister): void {
  if (!VIRTUAL_PLATFORMS.has(platform) && !VIRTUAL_PLATFORMS.has(cloud)) return;
  if (platform === cloud) return;
  const fault: FieldError = {
    loc: "body.cloud",
    msg: VIRTUAL_PLATFORMS.has(platform)
      ? `must be "${platform}", like the platform of this virtual project`
      : `"${cloud}" is the cloud of virtual projects only`,
  };
  throw refusal([fault], { status: 422 });
}
