/** tally credential create | list | revoke: what collectors identify themselves with. */

import type { Command } from "commander";
import { issueCredential, revoke } from "../access/credentials.ts";
import { listCredentials } from "../access/queries.ts";
import { formatInstant } from "../event/instant.ts";
import { readSettings } from "../settings.ts";
import { withCurrentDatabase, withDatabase } from "./database.ts";
import { print } from "./print.ts";
import { renderTable, styleFor } from "./table.ts";

/** Who the audit log names for what is done on the command line. */
const ACTOR = "admin-cli";

export function registerCredential(program: Command): void {
  const credential = program
    .command("credential")
    .description("the tokens that collectors hand events in with, each for one platform and cloud");

  credential
    .command("create")
    .description("issue a credential; stdout gets its token and nothing else, this one time")
    .requiredOption("--platform <platform>", "the platform whose events it may write")
    .requiredOption("--cloud <cloud>", "the cloud whose events it may write")
    .option("--description <text>", "what it is for")
    .action(async (options: { platform: string; cloud: string; description?: string }) => {
      const { platform, cloud, description = null } = options;
      const issued = await withDatabase(readSettings(process.env), (db) =>
        issueCredential(db, { platform, cloud, description }, ACTOR),
      );
      console.error(`credential ${issued.id} for ${platform} in ${cloud}; its token is not shown again:`);
      print(issued.token);
    });

  credential
    .command("list")
    .description("list the credentials, the revoked ones too")
    .action(async () => {
      const rows = await withCurrentDatabase(readSettings(process.env), listCredentials);
      const cells = rows.map((row) => [
        row.id,
        row.platform,
        row.cloud,
        formatInstant(row.createdAt),
        row.revokedAt === null ? "" : formatInstant(row.revokedAt),
        row.description ?? "",
      ]);
      const titles = ["ID", "PLATFORM", "CLOUD", "CREATED", "REVOKED", "DESCRIPTION"];
      print(renderTable(titles, cells, styleFor(process.stdout, process.env)));
    });

  credential
    .command("revoke <id>")
    .description("revoke a credential: its next request is refused")
    .action(async (id: string) => {
      const { outcome, at } = await withDatabase(readSettings(process.env), (db) =>
        revoke(db, "ingest", id, ACTOR),
      );
      // What was asked for holds either way, so both end well.
      print(
        outcome === "revoked"
          ? `credential ${id} revoked`
          : `credential ${id} was revoked already, at ${formatInstant(at)}`,
      );
    });
}
