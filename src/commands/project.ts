/** tally project create-meta | create-partner | list: the registry's virtual projects, and what it holds. */

import type { Command } from "commander";
import type { Database } from "../database/connection.ts";
import type { ObjectPage } from "../database/object-text.ts";
import { type ProjectPosition, pageOfProjects } from "../projects/queries.ts";
import { createProject } from "../projects/registry.ts";
import { readSettings } from "../settings.ts";
import { withCurrentDatabase, withDatabase } from "./database.ts";
import { print } from "./print.ts";
import { renderTable, styleFor } from "./table.ts";

/** Who the audit log names for what is done on the command line. */
const ACTOR = "admin-cli";
const ROWS_AT_ONCE = 1_000;

export function registerProject(program: Command): void {
  const project = program
    .command("project")
    .description(
      "the projects that tokens and relations are about; collectors' projects come in over the API",
    );
  registerCreate(project, "meta", "register a meta-project, which groups projects; stdout gets its id");
  registerCreate(project, "partner", "register a partner, who manages projects; stdout gets its id");

  project
    .command("list")
    .description("list the registered projects")
    .action(async () => {
      const rows = await withCurrentDatabase(readSettings(process.env), allProjects);
      const cells = rows.map(({ id, platform, cloud, external_id, created_at, name }) => [
        id,
        platform,
        cloud,
        external_id,
        created_at,
        name ?? "",
      ]);
      const titles = ["ID", "PLATFORM", "CLOUD", "EXTERNAL ID", "CREATED", "NAME"];
      print(renderTable(titles, cells, styleFor(process.stdout, process.env)));
    });
}

function registerCreate(project: Command, platform: "meta" | "partner", description: string): void {
  project
    .command(`create-${platform}`)
    .description(description)
    .requiredOption(
      "--external-id <id>",
      `what it is known by, once among all projects of platform ${platform}`,
    )
    .option("--name <name>", "what people call it")
    .action(async (options: { externalId: string; name?: string }) => {
      const { externalId, name = null } = options;
      const made = await withDatabase(readSettings(process.env), (db) =>
        createProject(db, { platform, cloud: platform, externalId, name }, null, ACTOR),
      );
      print(made.id);
    });
}

/** A project as the API answers it. */
interface Listed {
  readonly id: string;
  readonly platform: string;
  readonly cloud: string;
  readonly external_id: string;
  readonly name: string | null;
  readonly created_at: string;
}

/** Every project, by (cloud, external_id); read in pages, so that no statement is long. */
async function allProjects(db: Database): Promise<Listed[]> {
  const all: Listed[] = [];
  const filter = { platform: null, cloud: null, externalId: null };
  for (let after: ProjectPosition | null = null; ; ) {
    const page: ObjectPage = await pageOfProjects(db, filter, { limit: ROWS_AT_ONCE, after });
    const rows: Listed[] = JSON.parse(`[${page.items.toString()}]`);
    all.push(...rows);
    const last = rows.at(-1);
    if (page.last === null || last === undefined) return all;
    after = { cloud: last.cloud, externalId: last.external_id };
  }
}
