/** The reporting schema's migrations, imported as text so that the executable holds them. */
import init from "../../migrations/reporting/0001_init.sql" with { type: "text" };
import seedResourceTypes from "../../migrations/reporting/0002_seed_resource_types.sql" with { type: "text" };
import projectRelations from "../../migrations/reporting/0003_project_relations.sql" with { type: "text" };
import reconciliation from "../../migrations/reporting/0004_reconciliation.sql" with { type: "text" };
import hypertable from "../../migrations/reporting/0005_hypertable.sql" with { type: "text" };
import seedLoadbalancerType from "../../migrations/reporting/0006_seed_loadbalancer_type.sql" with {
  type: "text",
};
import projectsAndRelations from "../../migrations/reporting/0007_projects_and_relations.sql" with {
  type: "text",
};
import readIndexes from "../../migrations/reporting/0008_read_indexes.sql" with { type: "text" };
import deadLetterWork from "../../migrations/reporting/0009_dead_letter_work.sql" with { type: "text" };
import rareFilters from "../../migrations/reporting/0010_rare_filters.sql" with { type: "text" };
import distributed from "../../migrations/reporting/0011_distributed.sql" with { type: "text" };
import eventOrigins from "../../migrations/reporting/0012_event_origins.sql" with { type: "text" };
import livingStates from "../../migrations/reporting/0013_living_states.sql" with { type: "text" };

/** One numbered file: what takes the schema one version up, and what takes it back. */
export interface Migration {
  /** The file's number; versions are applied in its order. */
  readonly version: number;
  /** The file's name without number and extension. */
  readonly name: string;
  /** SHA-256 of the whole file, hex. */
  readonly checksum: string;
  readonly up: string;
  readonly down: string;
}

/**
 * Reads one file: a comment, `-- migrate:up`, SQL, `-- migrate:down`, SQL.
 * @throws {Error} when one of the two marks is missing or out of order
 */
export function readMigration(version: number, name: string, text: string): Migration {
  const [, rest = ""] = text.split(/^-- migrate:up$/m);
  const [up = "", down = ""] = rest.split(/^-- migrate:down$/m).map((part) => part.trim());
  if (up === "" || down === "")
    throw new Error(`migration ${version} (${name}) lacks its up or its down part`);
  return { version, name, up, down, checksum: new Bun.CryptoHasher("sha256").update(text).digest("hex") };
}

/** Every migration of this binary, oldest first. */
export const MIGRATIONS: readonly Migration[] = [
  readMigration(1, "init", init),
  readMigration(2, "seed_resource_types", seedResourceTypes),
  readMigration(3, "project_relations", projectRelations),
  readMigration(4, "reconciliation", reconciliation),
  readMigration(5, "hypertable", hypertable),
  readMigration(6, "seed_loadbalancer_type", seedLoadbalancerType),
  readMigration(7, "projects_and_relations", projectsAndRelations),
  readMigration(8, "read_indexes", readIndexes),
  readMigration(9, "dead_letter_work", deadLetterWork),
  readMigration(10, "rare_filters", rareFilters),
  readMigration(11, "distributed", distributed),
  readMigration(12, "event_origins", eventOrigins),
  readMigration(13, "living_states", livingStates),
];
