/** The same single-row transactions by pgbench, PostgreSQL's own load generator: no HTTP, no checks, nothing folded. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "../../src/database/connection.ts";
import type { Session } from "./session.ts";
import { batchItems, CLOUD, type Item, knownItems, PLATFORM } from "./workload.ts";

/** Resources that pgbench's later events belong to. */
const KNOWN = 32_000;
/** So many creates and as many later events of the workload are turned into scripts. */
const SHAPES = 16;

/** pgbench's version; null where there is none. */
export async function pgbenchVersion(): Promise<string | null> {
  if (Bun.which("pgbench") === null) return null;
  return (await new Response(Bun.spawn(["pgbench", "--version"]).stdout).text()).trim();
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A JSON literal in which no colon is taken for the beginning of a variable of pgbench's. */
function json(text: string): string {
  return `${literal(text.replace(/"(?:\\.|[^"\\])*"|:/g, (part) => (part === ":" ? ": " : part.replaceAll(":", "\\u003a"))))}::jsonb`;
}

/** One event, its row, its line in the audit log: what a request of one event leaves behind. */
function script({ eventType, payload, resource, after }: Item, create: boolean): string {
  const type = literal(resource.resourceType);
  const project = literal(resource.projectId);
  const id = create ? "'r-' || md5(:n::text)" : "'k-' || md5(:k::text)";
  const deleted = after.deletedAt === null ? "NULL" : "now()";
  return `\\set n random(1, 9000000000000000)
\\set k random(1, ${KNOWN})
BEGIN;
INSERT INTO events (timestamp, received_at, event_id, event_type, platform, cloud, resource_type, resource_id, project_id, source, payload) VALUES (clock_timestamp(), now(), md5(:n::text), ${literal(eventType)}, '${PLATFORM}', '${CLOUD}', ${type}, ${id}, ${project}, 'collector', ${json(payload)});
INSERT INTO current_resources (created_at, deleted_at, first_event_at, last_event_at, last_received_at, cloud, resource_type, resource_id, platform, project_id, state, last_event_id, last_event_type, size) VALUES (now(), ${deleted}, now(), now(), now(), '${CLOUD}', ${type}, ${id}, '${PLATFORM}', ${project}, ${literal(after.state)}, md5(:n::text), ${literal(eventType)}, ${json(after.size)}) ON CONFLICT (cloud, resource_type, resource_id) DO UPDATE SET deleted_at = excluded.deleted_at, last_event_at = excluded.last_event_at, last_received_at = excluded.last_received_at, platform = excluded.platform, project_id = excluded.project_id, state = excluded.state, last_event_id = excluded.last_event_id, last_event_type = excluded.last_event_type, size = excluded.size;
INSERT INTO audit_log (actor, action, object_type, object_id, details) VALUES ('pgbench', 'events.ingest', 'batch', '${CLOUD}', ${json('{"source":"collector","accepted":1,"duplicates":0,"rejected":0}')});
COMMIT;
`;
}

/** Writes the scripts into a directory. @returns their paths */
export function writeScripts(directory: string): string[] {
  const items = batchItems(
    0,
    knownItems(SHAPES).map(({ resource }) => resource),
  );
  return items.map((item, n) => {
    const path = join(directory, `pgbench-${n}.sql`);
    writeFileSync(path, script(item, n % 2 === 0));
    return path;
  });
}

/** Adds the resources that later events belong to, each as its create left it. */
export async function addKnown(db: Database): Promise<void> {
  await db`
    INSERT INTO current_resources (created_at, first_event_at, last_event_at, last_received_at, cloud, resource_type,
                                   resource_id, platform, project_id, state, last_event_id, last_event_type, size)
    SELECT now(), now(), now(), now(), ${CLOUD}, types.t, 'k-' || md5(k::text), ${PLATFORM}, 'p', 'active', 'e', 't', '{}'
    FROM generate_series(1, ${KNOWN}::int) k,
         (SELECT DISTINCT resource_type FROM current_resources WHERE cloud = ${CLOUD}) types(t)`;
}

/** Runs it. @returns transactions a second and the mean latency in milliseconds, as pgbench tells them */
export async function runPgbench(
  session: Session,
  scripts: readonly string[],
  clients: number,
  seconds: number,
): Promise<{ rate: number; latency: number }> {
  const child = Bun.spawn(
    [
      "pgbench",
      "--no-vacuum",
      "--protocol=prepared",
      `--client=${clients}`,
      `--jobs=${Math.min(2, clients)}`,
      `--time=${seconds}`,
      ...scripts.map((path) => `--file=${path}`),
      `--host=${session.socketDirectory}`,
      "--username=tally",
      "tally",
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  const [said, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const rate = Number(/^tps = ([\d.]+)/m.exec(said)?.[1]);
  const latency = Number(/^latency average = ([\d.]+) ms/m.exec(said)?.[1]);
  const failed = Number(/^number of failed transactions: (\d+)/m.exec(said)?.[1]);
  if ((await child.exited) !== 0 || !(rate > 0) || failed > 0)
    throw new Error(`pgbench failed: ${errors}\n${said}`);
  return { rate, latency };
}
