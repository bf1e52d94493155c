/** Registering the schema that the sizes of one resource type are held to. */
import { writeAudit } from "../access/audit.ts";
import type { Database } from "../database/connection.ts";
import { transaction } from "../database/transaction.ts";
import { Problem } from "../problem.ts";
import { putType, type RegisteredType, type TypeKey } from "./queries.ts";
import { compileSizeSchema, SchemaRefused } from "./registry.ts";

/** The largest document, in bytes of its text as it was sent. */
export const MAX_DOCUMENT_BYTES = 65_536;

/** What is said of a larger one. */
export function tooLargeDetail(bytes: number): string {
  return `size_schema is ${bytes} bytes, at most ${MAX_DOCUMENT_BYTES} are kept`;
}

/**
 * Stores a document for a resource type, with its audit row. It is compiled first: what ingestion could not
 * apply is refused and changes nothing. The next event that is ingested, by any process, is held to it.
 * @param document JSON text.
 * @throws Problem payload_too_large, or validation with the reason.
 */
export async function registerType(
  db: Database,
  key: TypeKey,
  document: string,
  actor: string,
): Promise<RegisteredType> {
  const bytes = Buffer.byteLength(document);
  if (bytes > MAX_DOCUMENT_BYTES) {
    throw new Problem("payload_too_large", tooLargeDetail(bytes));
  }
  try {
    compileSizeSchema(document);
  } catch (error) {
    if (!(error instanceof SchemaRefused)) throw error;
    const errors = [{ loc: "body.size_schema", msg: error.message }];
    throw new Problem("validation", `body.size_schema: ${error.message}`, { errors, cause: error });
  }
  return await transaction(db, async (tx) => {
    const registered = await putType(tx, key, document);
    await writeAudit(tx, [
      {
        actor,
        action: "resource_type.put",
        objectType: "resource_type",
        objectId: `${key.platform}/${key.resourceType}`,
        // As a string: the log keeps every document that was ever in force, digit for digit.
        details: { platform: key.platform, resource_type: key.resourceType, size_schema: document },
      },
    ]);
    return registered;
  });
}
