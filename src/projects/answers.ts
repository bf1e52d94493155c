/** Projects and relations as the JSON texts that are answered. Metadata goes in as the database wrote it. */
import { formatInstant } from "../event/instant.ts";
import type { ProjectRow } from "./queries.ts";
import type { Reached } from "./related.ts";
import type { RelationRow } from "./relation-queries.ts";
import type { TypeActivity } from "./summary.ts";

/** The component `Project`. */
export function projectJson(project: ProjectRow): string {
  return (
    `{"id":"${project.id}","platform":${JSON.stringify(project.platform)}` +
    `,"cloud":${JSON.stringify(project.cloud)},"external_id":${JSON.stringify(project.externalId)}` +
    `,"name":${JSON.stringify(project.name)},"metadata":${project.metadata}` +
    `,"created_at":"${formatInstant(project.createdAt)}"}`
  );
}

/** The component `Relation`. */
export function relationJson(relation: RelationRow): string {
  const { id, sourceId, targetId, relationType, validFrom, validTo, metadata, createdAt } = relation;
  return (
    `{"id":"${id}","source_id":"${sourceId}","target_id":"${targetId}"` +
    `,"relation_type":${JSON.stringify(relationType)}` +
    `,"valid_from":"${formatInstant(validFrom)}"` +
    `,"valid_to":${validTo === null ? "null" : `"${formatInstant(validTo)}"`}` +
    `,"metadata":${metadata},"created_at":"${formatInstant(createdAt)}"}`
  );
}

/** The component `RelatedProject`. */
export function relatedJson({ project, relationType, path }: Reached): string {
  return (
    `{"project":${projectJson(project)},"relation_type":${JSON.stringify(relationType)}` +
    `,"depth":${path.length},"path":${JSON.stringify(path)}}`
  );
}

/** The component `ProjectSummary`. */
export function summaryJson(project: ProjectRow, types: readonly TypeActivity[]): string {
  const rows = types.map(
    ({ resourceType, created, deleted, totalMinutes, activeNow }) =>
      `{"resource_type":${JSON.stringify(resourceType)},"created":${created},"deleted":${deleted}` +
      `,"total_minutes":${totalMinutes},"active_now":${activeNow}}`,
  );
  return (
    `{"project":{"id":"${project.id}","cloud":${JSON.stringify(project.cloud)}` +
    `,"external_id":${JSON.stringify(project.externalId)}},"resource_types":[${rows.join(",")}]}`
  );
}
