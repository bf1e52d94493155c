/** tally token create | list | revoke: what readers and operators identify themselves with. */

import { type Command, Option } from "commander";
import { issueApiToken, revoke } from "../access/credentials.ts";
import { listApiTokens, type Role } from "../access/queries.ts";
import { formatInstant } from "../event/instant.ts";
import { readSettings } from "../settings.ts";
import { withCurrentDatabase, withDatabase } from "./database.ts";
import { print } from "./print.ts";
import { renderTable, styleFor } from "./table.ts";

/** Who the audit log names for what is done on the command line. */
const ACTOR = "admin-cli";
const ROLES = ["admin", "read_all", "project"] as const satisfies readonly Role[];

export function registerToken(program: Command): void {
  const token = program
    .command("token")
    .description("the tokens that the API is read and operated with; admin may what read_all may, and so on");

  token
    .command("create")
    .description("issue a token; stdout gets it and nothing else, this one time")
    .addOption(new Option("--role <role>", "what it may do").choices(ROLES).makeOptionMandatory())
    .option(
      "--project <id>",
      "a registered project's id, for role project; may stand more than once",
      (id: string, before: string[]) => [...before, id],
      [],
    )
    .option("--description <text>", "what it is for")
    .action(async (options: { role: Role; project: string[]; description?: string }) => {
      const { role, project: projectIds, description = null } = options;
      const issued = await withDatabase(readSettings(process.env), (db) =>
        issueApiToken(db, { role, projectIds, description }, ACTOR),
      );
      console.error(`token ${issued.id} of role ${role}; it is not shown again:`);
      print(issued.token);
    });

  token
    .command("list")
    .description("list the tokens, the revoked ones too")
    .action(async () => {
      const rows = await withCurrentDatabase(readSettings(process.env), listApiTokens);
      const cells = rows.map((row) => [
        row.id,
        row.role,
        row.projectIds.join(" "),
        formatInstant(row.createdAt),
        row.revokedAt === null ? "" : formatInstant(row.revokedAt),
        row.description ?? "",
      ]);
      const titles = ["ID", "ROLE", "PROJECTS", "CREATED", "REVOKED", "DESCRIPTION"];
      print(renderTable(titles, cells, styleFor(process.stdout, process.env)));
    });

  token
    .command("revoke <id>")
    .description("revoke a token: its next request is refused")
    .action(async (id: string) => {
      const { outcome, at } = await withDatabase(readSettings(process.env), (db) =>
        revoke(db, "api", id, ACTOR),
      );
      // What was asked for holds either way, so both end well.
      print(
        outcome === "revoked"
          ? `token ${id} revoked`
          : `token ${id} was revoked already, at ${formatInstant(at)}`,
      );
    });
}
