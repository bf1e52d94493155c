/** The audit log: one row a write, in the write's own transaction, so that neither lands without the other. */
import type { Queryable } from "../database/connection.ts";

/** One thing that was done. */
export interface AuditEntry {
  /** Who did it: a credential's or token's id, `internal`, `scheduler`, `admin-cli`, or `auth-disabled`. */
  readonly actor: string;
  /** What was done, as `<object>.<verb>`. */
  readonly action: string;
  readonly objectType: string;
  readonly objectId: string;
  /** Whatever explains the write later; never a token. */
  readonly details: object;
}

/** Writes the entries, in their order, with one statement. None at all is no statement. */
export async function writeAudit(tx: Queryable, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const rows = JSON.stringify(
    entries.map(({ actor, action, objectType, objectId, details }) => ({
      actor,
      action,
      object_type: objectType,
      object_id: objectId,
      details,
    })),
  );
  await tx`
    INSERT INTO audit_log (actor, action, object_type, object_id, details)
    SELECT entry.value ->> 'actor', entry.value ->> 'action', entry.value ->> 'object_type',
           entry.value ->> 'object_id', (entry.value -> 'details')::text::jsonb
      FROM json_array_elements(${rows}::text::json) WITH ORDINALITY AS entry (value, position)
     ORDER BY entry.position`;
}

/** Writes the row of work that spans several transactions, and gives its id for `amendAudit`. */
export async function openAudit(tx: Queryable, entry: AuditEntry): Promise<string> {
  const { actor, action, objectType, objectId, details } = entry;
  const [row]: { id: string }[] = await tx`
    INSERT INTO audit_log (actor, action, object_type, object_id, details)
    VALUES (${actor}, ${action}, ${objectType}, ${objectId}, ${JSON.stringify(details)}::text::jsonb)
    RETURNING id::text AS id`;
  if (row === undefined) throw new Error("the audit row was not written");
  return row.id;
}

/** Says in the same row how far that work has come. */
export async function amendAudit(tx: Queryable, id: string, details: object): Promise<void> {
  await tx`
    UPDATE audit_log SET details = ${JSON.stringify(details)}::text::jsonb WHERE id = ${id}::text::bigint`;
}
