/** Which tables a stream carries, and which follow from them. Every table of the schema is in one of the two lists. */

/**
 * Everything that can't be derived, in the order in which a stream carries it: what a row refers to comes before the
 * row. Events come last: they are nearly all of it, and an interrupted import has the rest already.
 */
export const CARRIED: readonly string[] = [
  "projects",
  "project_relations",
  "resource_types",
  "size_names",
  "ingest_credentials",
  "api_tokens",
  "sync_runs",
  "rejected_events",
  "audit_log",
  "events",
];

/** What is computed anew after an import, or belongs to the database itself. */
export const DERIVED: readonly string[] = ["current_resources", "living_states", "schema_migrations"];

/** Tables that migrations fill: an import puts the stream's rows in their place. */
export const SEEDED: readonly string[] = ["resource_types"];

/** One column as a stream names it. */
export interface Column {
  readonly name: string;
  /** As PostgreSQL spells it: `timestamp with time zone`, `uuid[]`. */
  readonly type: string;
}

/** A table and the columns that a stream carries of it, in this order. */
export interface CarriedTable {
  readonly name: string;
  readonly columns: readonly Column[];
}
