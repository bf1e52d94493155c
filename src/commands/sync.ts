/** tally sync CLOUD [--at T] [--dry-run] [--confirm-mass-delete] */
import type { Command } from "commander";
import { formatInstant, type Instant, instantFromMicros, parseInstant } from "../event/instant.ts";
import { type ConfiguredCloud, RunFailure } from "../reconcile/adapter.ts";
import { CORRECTIONS_TOLD, type IdentifiedCorrection, type SyncOutcome } from "../reconcile/outcome.ts";
import { runSync } from "../reconcile/run.ts";
import { readSettings, type Settings } from "../settings.ts";
import { createLogger } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { configuredClouds } from "./configured-clouds.ts";
import { withCurrentDatabase, withDatabase } from "./database.ts";
import { print } from "./print.ts";
import { renderTable, type Style, styleFor } from "./table.ts";

interface Options {
  readonly at?: string;
  readonly dryRun?: true;
  readonly confirmMassDelete?: true;
}

export function registerSync(program: Command): void {
  program
    .command("sync <cloud>")
    .description("compare a cloud with the record once, now, and book the difference")
    .option("--at <instant>", "what the run takes for now; for simulated clouds only")
    .option("--dry-run", "show what would be booked, and book nothing")
    .option("--confirm-mass-delete", "book also the deletes that are withheld because so many are gone")
    .action(async (name: string, options: Options) => {
      const settings = readSettings(process.env);
      const cloud = cloudOf(settings, name);
      const at = instantOf(settings, options.at);
      const outcome = await runOnce(settings, cloud, at, options);
      print(report(outcome, settings.sync.maxAbsentPercent, styleFor(process.stdout, process.env)));
      if (outcome.status === "completed") return;
      for (const error of outcome.stats.errors) console.error(`tally: ${error}`);
      const untold = outcome.stats.errorCount - outcome.stats.errors.length;
      if (untold > 0) console.error(`tally: and ${untold} more`);
      process.exitCode = 1;
    });
}

function cloudOf(settings: Settings, name: string): ConfiguredCloud {
  const clouds = configuredClouds(settings, process.env);
  const cloud = clouds.find((configured) => configured.cloud === name);
  if (cloud !== undefined) return cloud;
  const known = clouds.map((configured) => configured.cloud).join(", ");
  throw new Error(
    settings.sync.cloudsConfig === null
      ? "no cloud is configured: TALLY_REPORTING_CLOUDS_CONFIG names the file"
      : `no cloud ${name} is configured; there ${clouds.length === 1 ? "is" : "are"} ${known || "none"}`,
  );
}

function instantOf(settings: Settings, text: string | undefined): Instant | null {
  if (text === undefined) return null;
  if (!settings.sync.allowAt) throw new Error("--at is taken only with TALLY_REPORTING_SYNC_ALLOW_AT=true");
  const instant = parseInstant(text);
  if (typeof instant === "string") throw new Error(`--at ${instant}`);
  return instant;
}

/** Runs it on the database; Ctrl-C cancels. */
async function runOnce(
  settings: Settings,
  cloud: ConfiguredCloud,
  at: Instant | null,
  { dryRun, confirmMassDelete }: Options,
): Promise<SyncOutcome> {
  const cancel = new AbortController();
  const interrupt = () => cancel.abort(new RunFailure("the run was interrupted"));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, interrupt);
  // A dry run writes nothing, and so makes and migrates nothing either.
  const withIt = dryRun === true ? withCurrentDatabase : withDatabase;
  return await withIt(settings, (db) =>
    runSync(
      {
        db,
        settings,
        now: () => instantFromMicros(`${Date.now()}000`),
        // What went wrong is told below; the log's lines are for services.
        log: createLogger("ERROR", (line) => void process.stderr.write(line)),
        metrics: createMetrics(),
      },
      cloud,
      {
        ...(at === null ? {} : { at }),
        dryRun: dryRun === true,
        confirmMassDelete: confirmMassDelete === true,
        actor: "admin-cli",
      },
      cancel.signal,
    ),
  );
}

/** What came of a run, as a table and a sentence. */
export function report(outcome: SyncOutcome, maxAbsentPercent: number, style: Style): string {
  const { runId, cloud, dryRun, status, stats, corrections, withheld } = outcome;
  const lines: string[] = [];
  if (corrections.length > 0) {
    const titles = ["ACTION", "TYPE", "RESOURCE", "PROJECT", "STATE", "DATED", "BECAUSE"];
    lines.push(renderTable(titles, corrections.map(cells), style), "");
  }
  const all = stats.created + stats.updated + stats.deleted;
  if (all > CORRECTIONS_TOLD) lines.push(`… and ${all - CORRECTIONS_TOLD} more`, "");
  const { transitional, recent } = stats.deferred;
  lines.push(
    `${cloud}: ${dryRun ? "would book" : "booked"} ${stats.created} created, ${stats.updated} updated, ${stats.deleted} deleted; ` +
      `put off ${transitional} in transition, ${recent} recent`,
  );
  for (const { resourceType, absent, living, deletes } of withheld) {
    lines.push(
      `${resourceType}: ${absent} of ${living} are no longer listed, more than ${maxAbsentPercent} %: ${deletes} deletes ` +
        "withheld (see --confirm-mass-delete)",
    );
  }
  lines.push(dryRun ? "nothing was booked: a dry run" : `run ${runId} ${status}`);
  return lines.join("\n");
}

function cells(correction: IdentifiedCorrection): string[] {
  const { action, resourceType, resourceId, projectId, state, timestamp, reason } = correction;
  return [action, resourceType, resourceId, projectId, state ?? "", formatInstant(timestamp), reason];
}
