/** What readiness asks the database. */
import type { Database } from "../database/connection.ts";
import { type SchemaState, schemaState } from "../database/migrations.ts";
import { importUnfinished } from "../transfer/queries.ts";
import type { Finding } from "./health.ts";
import { takesWrites, weakSetting } from "./queries.ts";

const REASONS: Readonly<Record<Exclude<SchemaState, "current">, string>> = {
  behind: "the database's schema is older than this version needs: run `tally migrate up`",
  ahead: "the database's schema is newer than this version knows",
  edited: "a migration that the database has was edited since",
};

/** Null where the database answers, takes writes, has this binary's schema, and no import is half done. @throws what the database throws. */
export async function probeDatabase(db: Database): Promise<Finding> {
  if (!(await takesWrites(db))) return "the database is read-only";
  const weak = await weakSetting(db);
  if (weak !== null) return `behind the pooler, ${weak}: set it on Tally's role`;
  const state = await schemaState(db);
  if (state !== "current") return REASONS[state];
  return (await importUnfinished(db))
    ? "an import into the database hasn't ended: run `tally import` again"
    : null;
}
