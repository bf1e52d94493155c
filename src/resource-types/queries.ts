/** Every statement over resource_types. Documents go in and come out as text, digit for digit. */
import type { Queryable } from "../database/connection.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";

/** What a size schema is registered for. */
export interface TypeKey {
  readonly platform: string;
  readonly resourceType: string;
}

/** One registration. */
export interface RegisteredType extends TypeKey {
  /** The document's JSON text, as it was sent. */
  readonly sizeSchema: string;
  readonly updatedAt: Instant;
}

/**
 * The registered documents of those pairs, as text, keyed `<platform> NUL <resource type>`. A pair without a
 * registration isn't in the map.
 */
export async function sizeSchemas(db: Queryable, pairs: readonly TypeKey[]): Promise<Map<string, string>> {
  const wanted = pairs.map(({ platform, resourceType }) => ({ p: platform, t: resourceType }));
  const rows: { p: string; t: string; document: string }[] = await db`
    SELECT r.platform AS p, r.resource_type AS t, r.size_schema::text AS document
      FROM json_to_recordset(${JSON.stringify(wanted)}::text::json) AS wanted (p text, t text)
      JOIN resource_types r ON r.platform = wanted.p AND r.resource_type = wanted.t`;
  return new Map(rows.map(({ p, t, document }) => [`${p}\u0000${t}`, document]));
}

interface TypeRow {
  readonly platform: string;
  readonly resource_type: string;
  readonly size_schema: string;
  readonly updated_at: string;
}

function registeredType(row: TypeRow): RegisteredType {
  return {
    platform: row.platform,
    resourceType: row.resource_type,
    sizeSchema: row.size_schema,
    updatedAt: instantFromMicros(row.updated_at),
  };
}

/** All registrations, by (platform, resource type). */
export async function listTypes(db: Queryable): Promise<RegisteredType[]> {
  const rows: TypeRow[] = await db`
    SELECT platform, resource_type, size_schema::text AS size_schema,
           (extract(epoch FROM updated_at) * 1000000)::bigint::text AS updated_at
      FROM resource_types ORDER BY platform, resource_type`;
  return rows.map(registeredType);
}

/** One registration, or null. */
export async function findType(db: Queryable, key: TypeKey): Promise<RegisteredType | null> {
  const rows: TypeRow[] = await db`
    SELECT platform, resource_type, size_schema::text AS size_schema,
           (extract(epoch FROM updated_at) * 1000000)::bigint::text AS updated_at
      FROM resource_types WHERE platform = ${key.platform} AND resource_type = ${key.resourceType}`;
  return rows[0] === undefined ? null : registeredType(rows[0]);
}

/** Writes a registration over whatever stood there. `sizeSchema` is JSON text and is kept as it is. */
export async function putType(tx: Queryable, key: TypeKey, sizeSchema: string): Promise<RegisteredType> {
  const rows: TypeRow[] = await tx`
    INSERT INTO resource_types (platform, resource_type, size_schema, updated_at)
    VALUES (${key.platform}, ${key.resourceType}, ${sizeSchema}::text::json, now())
    ON CONFLICT (platform, resource_type) DO UPDATE SET size_schema = EXCLUDED.size_schema, updated_at = now()
    RETURNING platform, resource_type, size_schema::text AS size_schema,
              (extract(epoch FROM updated_at) * 1000000)::bigint::text AS updated_at`;
  if (rows[0] === undefined) throw new Error("INSERT … RETURNING gave no row");
  return registeredType(rows[0]);
}
