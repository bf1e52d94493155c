/** Every statement over projects. Metadata goes in and comes out as JSON text, digit for digit. */
import type { Queryable } from "../database/connection.ts";
import { instantMember, type ObjectPage, objectSql, readPage, textMembers } from "../database/object-text.ts";
import { type Page, Statement, where } from "../database/statement.ts";
import { type Instant, instantFromMicros } from "../event/instant.ts";

/** A registered project. */
export interface ProjectRow {
  /** The registry's id, a UUID in lower case. */
  readonly id: string;
  readonly platform: string;
  readonly cloud: string;
  /** What its cloud calls it: the project_id of events. */
  readonly externalId: string;
  readonly name: string | null;
  /** JSON text. */
  readonly metadata: string;
  readonly createdAt: Instant;
}

/** A project that isn't registered yet. */
export type NewProject = Pick<ProjectRow, "platform" | "cloud" | "externalId" | "name" | "metadata">;

/** Where a page of projects goes on. */
export type ProjectPosition = Pick<ProjectRow, "cloud" | "externalId">;

/** Which projects a list holds; null filters nothing. */
export interface ProjectFilter {
  readonly platform: string | null;
  readonly cloud: string | null;
  readonly externalId: string | null;
}

/** A row of `PROJECT_COLUMNS`. */
export interface ProjectColumns {
  readonly project_id: string;
  readonly platform: string;
  readonly cloud: string;
  readonly external_id: string;
  readonly name: string | null;
  readonly project_metadata: string;
  readonly registered: string;
}

/** A project `p`, as `projectRow` reads it. */
export const PROJECT_COLUMNS = `
  p.id::text AS project_id, p.platform, p.cloud, p.external_id, p.name, p.metadata::text AS project_metadata,
  (extract(epoch FROM p.created_at) * 1000000)::bigint::text AS registered`;

/** Reads the columns. */
export function projectRow(row: ProjectColumns): ProjectRow {
  return {
    id: row.project_id,
    platform: row.platform,
    cloud: row.cloud,
    externalId: row.external_id,
    name: row.name,
    metadata: row.project_metadata,
    createdAt: instantFromMicros(row.registered),
  };
}

/**
 * What the database makes of a JSON object's text.
 * @returns its text, null where that is longer than `maxBytes`; its length in bytes; its pricing_adjustments.
 */
export async function normalizedDocument(
  db: Queryable,
  text: string,
  maxBytes: number,
): Promise<{ text: string | null; bytes: number; adjustments: string | null }> {
  const rows: { text: string | null; bytes: number; adjustments: string | null }[] = await db`
    SELECT octet_length(written)::int AS bytes,
           CASE WHEN octet_length(written) <= ${maxBytes} THEN written END AS text,
           CASE WHEN octet_length(written) <= ${maxBytes} THEN (document -> 'pricing_adjustments')::text END
             AS adjustments
      FROM (SELECT document, document::text AS written
              FROM (SELECT ${text}::text::jsonb AS document OFFSET 0) given OFFSET 0) normalized`;
  if (rows[0] === undefined) throw new Error("a SELECT of one row gave none");
  return rows[0];
}

/** Registers a project; null where its (cloud, external_id) is held already. */
export async function insertProject(tx: Queryable, project: NewProject): Promise<ProjectRow | null> {
  const { platform, cloud, externalId, name, metadata } = project;
  const rows: ProjectColumns[] = await tx.unsafe(
    `INSERT INTO projects AS p (platform, cloud, external_id, name, metadata)
     VALUES ($1::text, $2::text, $3::text, $4::text, $5::text::jsonb)
     ON CONFLICT (cloud, external_id) DO NOTHING
     RETURNING ${PROJECT_COLUMNS}`,
    [platform, cloud, externalId, name, metadata],
  );
  return rows[0] === undefined ? null : projectRow(rows[0]);
}

/** Changes what is given of a project (null: leave it); null where there is no such project. */
export async function updateProject(
  tx: Queryable,
  id: string,
  change: { readonly name: string | null; readonly metadata: string | null },
): Promise<ProjectRow | null> {
  const rows: ProjectColumns[] = await tx.unsafe(
    `UPDATE projects p SET name = coalesce($2::text, name), metadata = coalesce($3::text::jsonb, metadata)
      WHERE id = $1::text::uuid
     RETURNING ${PROJECT_COLUMNS}`,
    [id, change.name, change.metadata],
  );
  return rows[0] === undefined ? null : projectRow(rows[0]);
}

/** One project, or null. */
export async function findProject(db: Queryable, id: string): Promise<ProjectRow | null> {
  const rows: ProjectColumns[] = await db.unsafe(
    `SELECT ${PROJECT_COLUMNS} FROM projects p WHERE id = $1::text::uuid`,
    [id],
  );
  return rows[0] === undefined ? null : projectRow(rows[0]);
}

/** The component `Project`. */
const PROJECT = objectSql([
  { name: "id", kind: "plain", sql: "p.id::text" },
  ...textMembers("p", ["platform", "cloud", "external_id"]),
  { name: "name", kind: "json", sql: "coalesce(to_json(p.name)::text, 'null')" },
  { name: "metadata", kind: "json", sql: "p.metadata::text" },
  instantMember("created_at", "p.created_at"),
]);

/** One page of the projects, by (cloud, external_id): each one's JSON. */
export async function pageOfProjects(
  db: Queryable,
  filter: ProjectFilter,
  page: Page<ProjectPosition>,
): Promise<ObjectPage> {
  const statement = new Statement();
  const { platform, cloud, externalId } = filter;
  const conditions = statement.equals({ platform, cloud, external_id: externalId });
  if (page.after !== null) {
    const position = [page.after.cloud, page.after.externalId].map((text) => statement.value(text));
    conditions.push(`(cloud, external_id) > (${position.join(", ")})`);
  }
  return await readPage(
    db,
    `SELECT ${PROJECT} AS item FROM projects p ${where(conditions)}
      ORDER BY cloud, external_id ${statement.limit(page.limit + 1)}`,
    statement.values,
    page.limit,
  );
}
