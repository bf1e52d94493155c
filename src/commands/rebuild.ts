/** tally rebuild [--cloud C] [--resource-type T] */

import { SingleBar } from "cli-progress";
import type { Command } from "commander";
import { rebuild } from "../projection/rebuild.ts";
import { countRows } from "../projection/rebuild-queries.ts";
import { readSettings } from "../settings.ts";
import { withDatabase } from "./database.ts";
import { print } from "./print.ts";

export function registerRebuild(program: Command): void {
  program
    .command("rebuild")
    .description("replay stored history into the projection, while events keep coming in")
    .option("--cloud <cloud>", "replay this cloud's resources only")
    .option("--resource-type <type>", "replay resources of this type only")
    .action(async (options: { cloud?: string; resourceType?: string }) => {
      const filter = { cloud: options.cloud ?? null, resourceType: options.resourceType ?? null };
      const replayed = await withDatabase(readSettings(process.env), async (db) => {
        // The bar goes to stderr, so that stdout holds the result alone.
        if (!process.stderr.isTTY) return await rebuild(db, "admin-cli", filter);
        const bar = new SingleBar({
          stream: process.stderr,
          format:
            "replaying {bar} {percentage}% | {value} of about {total} resources | {eta_formatted} to go",
          hideCursor: true,
        });
        bar.start(await countRows(db, filter), 0);
        try {
          return await rebuild(db, "admin-cli", filter, (done) => {
            if (done > bar.getTotal()) bar.setTotal(done);
            bar.update(done);
          });
        } finally {
          bar.stop();
        }
      });
      print(`${replayed} resources replayed`);
    });
}
