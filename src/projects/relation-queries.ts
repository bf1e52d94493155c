/** Every statement over project_relations. */
import type { Queryable } from "../database/connection.ts";
import { Statement, where } from "../database/statement.ts";
import { formatInstant, type Instant, instantFromMicros } from "../event/instant.ts";
import { PROJECT_COLUMNS, type ProjectColumns, type ProjectRow, projectRow } from "./queries.ts";

/** A relation; valid at t iff validFrom ≤ t and (validTo is null or validTo > t). */
export interface RelationRow {
  readonly id: string;
  readonly sourceId: string;
  readonly targetId: string;
  readonly relationType: string;
  readonly validFrom: Instant;
  /** Null while it is open. */
  readonly validTo: Instant | null;
  /** JSON text. */
  readonly metadata: string;
  readonly createdAt: Instant;
}

interface RelationColumns {
  readonly id: string;
  readonly source_id: string;
  readonly target_id: string;
  readonly relation_type: string;
  readonly valid_from: string;
  readonly valid_to: string | null;
  readonly metadata: string;
  readonly created: string;
}

const RELATION_COLUMNS = `
  r.id::text AS id, r.source_id::text AS source_id, r.target_id::text AS target_id, r.relation_type,
  (extract(epoch FROM r.valid_from) * 1000000)::bigint::text AS valid_from,
  (extract(epoch FROM r.valid_to) * 1000000)::bigint::text AS valid_to,
  r.metadata::text AS metadata, (extract(epoch FROM r.created_at) * 1000000)::bigint::text AS created`;

function relationRow(row: RelationColumns): RelationRow {
  return {
    id: row.id,
    sourceId: row.source_id,
    targetId: row.target_id,
    relationType: row.relation_type,
    validFrom: instantFromMicros(row.valid_from),
    validTo: row.valid_to === null ? null : instantFromMicros(row.valid_to),
    metadata: row.metadata,
    createdAt: instantFromMicros(row.created),
  };
}

/** Which of a project's relations a list holds. */
export interface RelationFilter {
  readonly direction: "outgoing" | "incoming" | "both";
  /** Null filters nothing. */
  readonly relationType: string | null;
  readonly at: Instant;
}

/** A project's relations at an instant, by (created_at, id), at most `most` of them. */
export async function relationsOf(
  db: Queryable,
  projectId: string,
  filter: RelationFilter,
  most: number,
): Promise<RelationRow[]> {
  const statement = new Statement();
  const id = `${statement.value(projectId)}::uuid`;
  const at = statement.instant(filter.at);
  const conditions = [`r.valid_from <= ${at}`, `(r.valid_to IS NULL OR r.valid_to > ${at})`];
  conditions.push(...statement.equals({ "r.relation_type": filter.relationType }));
  const ends = { outgoing: ["source_id"], incoming: ["target_id"], both: ["source_id", "target_id"] };
  // No relation is in both branches: none leads back to its source.
  const branches = ends[filter.direction].map(
    (end) => `SELECT r.* FROM project_relations r ${where([`r.${end} = ${id}`, ...conditions])}`,
  );
  const rows: RelationColumns[] = await db.unsafe(
    `SELECT ${RELATION_COLUMNS} FROM (${branches.join(" UNION ALL ")}) r
      ORDER BY r.created_at, r.id ${statement.limit(most)}`,
    statement.values,
  );
  return rows.map(relationRow);
}

/** Writes a relation; null where the same source, target and type have an open one. */
export async function insertRelation(
  tx: Queryable,
  relation: Omit<RelationRow, "id" | "validTo">,
): Promise<RelationRow | null> {
  const { sourceId, targetId, relationType, validFrom, metadata, createdAt } = relation;
  const rows: RelationColumns[] = await tx.unsafe(
    `INSERT INTO project_relations AS r (source_id, target_id, relation_type, valid_from, metadata, created_at)
     VALUES ($1::text::uuid, $2::text::uuid, $3::text, $4::text::timestamptz, $5::text::jsonb,
             $6::text::timestamptz)
     ON CONFLICT (source_id, target_id, relation_type) WHERE valid_to IS NULL DO NOTHING
     RETURNING ${RELATION_COLUMNS}`,
    [sourceId, targetId, relationType, formatInstant(validFrom), metadata, formatInstant(createdAt)],
  );
  return rows[0] === undefined ? null : relationRow(rows[0]);
}

/** A relation that leaves that project, locked, with its pricing_adjustments' text (null: it has none); or null. */
export async function lockRelation(
  tx: Queryable,
  sourceId: string,
  id: string,
): Promise<{ relation: RelationRow; adjustments: string | null } | null> {
  const rows: (RelationColumns & { adjustments: string | null })[] = await tx.unsafe(
    `SELECT ${RELATION_COLUMNS}, (r.metadata -> 'pricing_adjustments')::text AS adjustments
       FROM project_relations r WHERE r.id = $1::text::uuid AND r.source_id = $2::text::uuid FOR UPDATE`,
    [id, sourceId],
  );
  const row = rows[0];
  return row === undefined ? null : { relation: relationRow(row), adjustments: row.adjustments };
}

/** Changes what is given of a locked relation (null: leave it). */
export async function updateRelation(
  tx: Queryable,
  id: string,
  change: { readonly validTo: Instant | null; readonly metadata: string | null },
): Promise<RelationRow> {
  const validTo = change.validTo === null ? null : formatInstant(change.validTo);
  const rows: RelationColumns[] = await tx.unsafe(
    `UPDATE project_relations r
        SET valid_to = coalesce($2::text::timestamptz, r.valid_to),
            metadata = coalesce($3::text::jsonb, r.metadata)
      WHERE r.id = $1::text::uuid RETURNING ${RELATION_COLUMNS}`,
    [id, validTo, change.metadata],
  );
  if (rows[0] === undefined) throw new Error("a locked relation is gone");
  return relationRow(rows[0]);
}

/** Any number that nothing else locks by. */
const ATTRIBUTION_LOCK = 7_301_984_022;

/**
 * Waits for, and holds until the transaction ends, the one right to add attributing relations.
 *
 * A cycle closes over several rows, any of which another transaction may be writing unseen, so no lock on rows that
 * exist can guard against it. Creations are rare: one lock for all is enough, and it can't deadlock. Statements
 * after it see what those who held it before have committed.
 */
export async function lockAttribution(tx: Queryable): Promise<void> {
  await tx`SELECT FROM pg_advisory_xact_lock(${String(ATTRIBUTION_LOCK)}::text::bigint)`;
}

/** Whether open relations of those types lead from one project to another. Each project is looked at once. */
export async function leadsTo(
  tx: Queryable,
  from: string,
  to: string,
  relationTypes: readonly string[],
): Promise<boolean> {
  const rows: { leads: boolean }[] = await tx`
    WITH RECURSIVE reached (id) AS (
      SELECT ${from}::text::uuid
      UNION
      SELECT r.target_id
        FROM reached
        JOIN project_relations r ON r.source_id = reached.id
       WHERE r.valid_to IS NULL
         AND r.relation_type IN (SELECT json_array_elements_text(${JSON.stringify(relationTypes)}::text::json))
    )
    SELECT EXISTS (SELECT FROM reached WHERE id = ${to}::text::uuid) AS leads`;
  return rows[0]?.leads === true;
}

/** A step of a traversal: one project that was reached, and how. */
export interface Step {
  readonly project: ProjectRow;
  readonly relationId: string;
  readonly relationType: string;
  /** The position, in the level before, of the project that it was reached from. */
  readonly from: number;
}

/**
 * The next level of a breadth-first walk: each project that isn't known yet once, with the first relation that
 * leads to it, in visiting order. Of a dense graph's many relations no more than one a project leaves the database.
 * @param level the projects of the level before, in visiting order.
 * @param known every project that was visited, those of the level among them.
 */
export async function nextLevel(
  db: Queryable,
  level: readonly string[],
  known: readonly string[],
  filter: { readonly relationType: string | null; readonly at: Instant },
  most: number,
): Promise<Step[]> {
  const statement = new Statement();
  const ids = (list: readonly string[]) => `${statement.value(JSON.stringify(list))}::json`;
  const at = statement.instant(filter.at);
  const conditions = [
    `r.valid_from <= ${at}`,
    `(r.valid_to IS NULL OR r.valid_to > ${at})`,
    ...statement.equals({ "r.relation_type": filter.relationType }),
  ];
  const rows: (ProjectColumns & { relation: string; type: string; position: number })[] = await db.unsafe(
    `SELECT ${PROJECT_COLUMNS}, first.relation::text AS relation, first.relation_type AS type, first.position
       FROM (
         SELECT DISTINCT ON (r.target_id) r.target_id, r.id AS relation, r.relation_type, r.created_at,
                level.position::int AS position
           FROM json_array_elements_text(${ids(level)}) WITH ORDINALITY AS level (id, position)
           JOIN project_relations r ON r.source_id = level.id::uuid
          ${where(conditions)}
          ORDER BY r.target_id, level.position, r.created_at, r.id
       ) first
       JOIN projects p ON p.id = first.target_id
      WHERE NOT EXISTS (
        SELECT FROM json_array_elements_text(${ids(known)}) AS known (id) WHERE known.id::uuid = first.target_id)
      ORDER BY first.position, first.created_at, first.relation ${statement.limit(most)}`,
    statement.values,
  );
  return rows.map((row) => ({
    project: projectRow(row),
    relationId: row.relation,
    relationType: row.type,
    from: row.position - 1,
  }));
}
