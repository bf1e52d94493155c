/** What telemetry asks the database. */
import type { Queryable } from "../database/connection.ts";

/** Whether the server takes writes: false on a standby and where transactions are read-only by default. */
export async function takesWrites(db: Queryable): Promise<boolean> {
  const [row] = await db<{ writable: boolean }[]>`
    SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AS writable`;
  return row?.writable === true;
}

/**
 * The settings of a session that would acknowledge before the disk has it, or isolate otherwise than the fold relies
 * on; null: none. A connection of Tally's own sets them itself; one that a pooler lends has what the role was given.
 */
export async function weakSetting(db: Queryable): Promise<string | null> {
  const [row] = await db<{ weak: string | null }[]>`
    SELECT CASE
      WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN 'synchronous_commit is not on'
      WHEN current_setting('default_transaction_isolation') <> 'read committed'
        THEN 'default_transaction_isolation is not read committed' END AS weak`;
  return row?.weak ?? null;
}

/** One state of the projection and how many resources are in it. */
export interface ResourceCount {
  readonly platform: string;
  readonly cloud: string;
  readonly resource_type: string;
  readonly state: string;
  readonly count: number;
}

/** Counts the projection by state; the `limit` largest groups. */
export async function countResources(db: Queryable, limit: number): Promise<ResourceCount[]> {
  const rows = await db<
    { platform: string; cloud: string; resource_type: string; state: string; count: string }[]
  >`
    SELECT platform, cloud, resource_type, state, count(*)::text AS count
    FROM current_resources
    GROUP BY platform, cloud, resource_type, state
    ORDER BY count(*) DESC, platform, cloud, resource_type, state
    LIMIT ${limit}`;
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}
