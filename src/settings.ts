/**
 * Every setting of Tally: environment variables only, all of them in one table. The table drives reading,
 * `tally config` and the documentation.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import {
  databaseUrl,
  file,
  flag,
  host,
  integer,
  names,
  oneOf,
  path,
  secret,
  type Variable,
  variable,
} from "./setting-kinds.ts";

/** All settings, read and checked. */
export interface Settings {
  logLevel: "DEBUG" | "INFO" | "WARN" | "ERROR";
  http: { host: string; port: number };
  /** `url` null: Tally runs its own PostgreSQL. */
  database: {
    url: string | null;
    maxConnections: number;
    autoMigrate: boolean;
    /** A database that gives no sign of life for so long is taken for gone. */
    silenceSeconds: number;
  };
  /** `internalToken` null: the internal routes answer 401 to everybody. */
  auth: { mode: "enforced" | "disabled"; internalToken: string | null };
  unhealthyThresholdSeconds: number;
  requireSizeSchema: boolean;
  /** Relations of these types attribute the target's cost to the source. Never empty. */
  attributingRelationTypes: readonly string[];
  metrics: { enabled: boolean; refreshSeconds: number };
  sync: SyncSettings;
  /** Absolute path. Only the embedded database lives there. */
  dataDir: string;
}

/** What reconciliation runs are held to. */
export interface SyncSettings {
  /** Absolute path; null: no cloud is configured. */
  readonly cloudsConfig: string | null;
  /** Whether a request may name the instant that its run takes for now. */
  readonly allowAt: boolean;
  /** A run that takes longer is cancelled. */
  readonly budgetSeconds: number;
  /** Differences younger than this are left to the next run; 0: none is too young. */
  readonly settleSeconds: number;
  /** Between the starts of two runs of one cloud; 0: only on request. */
  readonly intervalSeconds: number;
  /** The largest share of a type's living resources that one run deletes because they weren't seen; 100: any. */
  readonly maxAbsentPercent: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Everything that is wrong with the environment, not only the first thing. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  /** One sentence a fault; each names its variable and never holds a secret. */
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("; "));
    this.faults = faults;
  }
}

const TABLE = {
  logLevel: variable(
    "TALLY_LOG_LEVEL",
    "The least severe log lines that are written.",
    "INFO",
    oneOf("DEBUG", "INFO", "WARN", "ERROR"),
  ),
  httpHost: variable("TALLY_REPORTING_HTTP_HOST", "The address that the API listens on.", "0.0.0.0", host),
  httpPort: variable(
    "TALLY_REPORTING_HTTP_PORT",
    "The port that the API listens on; 0: any free one, logged at start and told on stderr.",
    8080,
    integer(0, 65_535),
  ),
  databaseUrl: variable<string | null>(
    "TALLY_REPORTING_DB_URL",
    "An external PostgreSQL 15 or newer.",
    null,
    databaseUrl,
    "(embedded)",
  ),
  maxConnections: variable(
    "TALLY_REPORTING_DB_MAX_CONNS",
    "The most connections to the database.",
    10,
    integer(1, 1000),
  ),
  autoMigrate: variable(
    "TALLY_REPORTING_AUTO_MIGRATE",
    "Migrate an external database at start; the embedded one always is.",
    false,
    flag,
  ),
  databaseSilence: variable(
    "TALLY_REPORTING_DB_SILENCE_S",
    "A database that gives no sign of life for so long, in seconds, is taken for gone: connections are made anew.",
    10,
    integer(1, 3600),
  ),
  authMode: variable(
    "TALLY_REPORTING_AUTH_MODE",
    "disabled: no credential is asked for, and only loopback is listened on.",
    "enforced",
    oneOf("enforced", "disabled"),
  ),
  internalToken: variable<string | null>(
    "TALLY_REPORTING_INTERNAL_TOKEN",
    "The bearer token of the internal routes. Unset with the embedded database: made at the first start, in the data directory's file internal-token.",
    null,
    secret,
    "(none)",
  ),
  unhealthyThreshold: variable(
    "TALLY_REPORTING_UNHEALTHY_THRESHOLD_S",
    "How long readiness may fail, in seconds, before /healthz fails too.",
    600,
    integer(1, 86_400),
  ),
  requireSizeSchema: variable(
    "TALLY_INGEST_REQUIRE_SIZE_SCHEMA",
    "Refuse items whose resource type has no size schema.",
    false,
    flag,
  ),
  attributingRelationTypes: variable<readonly string[]>(
    "TALLY_REPORTING_ATTRIBUTING_RELATION_TYPES",
    "The relation types that attribute the target's cost to the source: their open relations never form a cycle.",
    ["infrastructure_tenant"],
    names(512),
  ),
  metricsEnabled: variable("TALLY_METRICS_ENABLED", "Serve /metrics.", true, flag),
  metricsRefresh: variable(
    "TALLY_REPORTING_METRICS_REFRESH_S",
    "How often the fleet's gauges are counted anew, in seconds.",
    60,
    integer(1, 86_400),
  ),
  syncClouds: variable<string | null>(
    "TALLY_REPORTING_CLOUDS_CONFIG",
    "The file of the clouds that are reconciled, read once at start.",
    null,
    file,
    "(none)",
  ),
  syncAllowAt: variable(
    "TALLY_REPORTING_SYNC_ALLOW_AT",
    "Let a request name the instant that its run takes for now: for simulated clouds only.",
    false,
    flag,
  ),
  syncBudget: variable(
    "TALLY_REPORTING_SYNC_BUDGET_S",
    "How long a reconciliation run may take, in seconds; then it is cancelled.",
    45,
    integer(1, 86_400),
  ),
  syncSettle: variable(
    "TALLY_REPORTING_SYNC_SETTLE_S",
    "Differences younger than this, in seconds, are left to the next run; 0: none is too young.",
    60,
    integer(0, 3_600),
  ),
  syncInterval: variable(
    "TALLY_REPORTING_SYNC_INTERVAL_S",
    "How often each cloud is reconciled, in seconds, unless its entry says otherwise; 0: only on request.",
    600,
    integer(0, 86_400),
  ),
  syncMaxAbsent: variable(
    "TALLY_REPORTING_SYNC_MAX_ABSENT_PERCENT",
    "Deletes of resources that a cloud no longer lists are withheld where they are more than this share of a type's living ones, and more than 10; 100: never.",
    20,
    integer(0, 100),
  ),
  dataDir: variable<string | null>(
    "TALLY_DATA_DIR",
    "Where the embedded database lives; systemd's STATE_DIRECTORY comes first.",
    null,
    path,
    "~/.local/share/tally",
  ),
};

const VARIABLES: readonly Variable<unknown>[] = Object.values(TABLE);

/** One line of the settings' documentation. */
export interface SettingDocument {
  readonly name: string;
  readonly takes: string;
  readonly unset: string;
  readonly about: string;
  readonly fromFile: boolean;
}

/** What there is to set, in the table's order. */
export const SETTING_DOCUMENTS: readonly SettingDocument[] = VARIABLES.map(
  ({ name, takes, unset, about, fromFile }) => ({ name, takes, unset, about, fromFile }),
);

/** A variable's text and where it came from; `text` null: unset. */
interface Found {
  readonly text: string | null;
  readonly source: string;
}

function find(entry: Variable<unknown>, env: Environment, faults: string[]): Found {
  const { name, fromFile } = entry;
  const text = env[name];
  const file = fromFile ? env[`${name}_FILE`] : undefined;
  if (text !== undefined && file !== undefined) {
    faults.push(`${name} and ${name}_FILE are both set: keep one`);
    return { text: null, source: "default" };
  }
  if (text === "") faults.push(`${name} is set but empty: unset it, or give it a value`);
  if (file === undefined)
    return text === undefined || text === ""
      ? { text: null, source: "default" }
      : { text, source: "environment" };
  try {
    const content = readFileSync(file, "utf8").replace(/\r?\n$/, "");
    if (content !== "") return { text: content, source: `file ${file}` };
    faults.push(`${name}_FILE names an empty file: ${file}`);
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : "no readable path";
    faults.push(`${name}_FILE names a file that can't be read (${why}): ${file}`);
  }
  return { text: null, source: "default" };
}

/** A suffix that the setting hasn't got (`_FILE`), or a few slips. */
const MOST_SLIPS = 5;

/** Insertions, deletions and replacements from `a` to `b`. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

const KNOWN = VARIABLES.flatMap(({ name, fromFile }) => (fromFile ? [name, `${name}_FILE`] : [name]));

function unknownVariables(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith("TALLY_") && env[name] !== undefined && !KNOWN.includes(name))
    .sort()
    .map((name) => {
      // What is in most names is what is forgotten first.
      const slips = (known: string) =>
        Math.min(distance(name, known), distance(name, known.replace("REPORTING_", "")));
      const nearest = KNOWN.reduce((best, known) => (slips(known) < slips(best) ? known : best));
      // A name that is far from all of them is no slip of the hand.
      const hint =
        slips(nearest) <= MOST_SLIPS
          ? `did you mean ${nearest}?`
          : "unset it, and tally config prints all the settings that there are";
      return `${name} is no setting of Tally: ${hint}`;
    });
}

function isLoopback(name: string): boolean {
  return name === "localhost" || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name);
}

/**
 * Below the home directory, except for a root whose home is closed to others: the embedded server runs as another
 * user then, which could not get there.
 */
function defaultDataDir(home: string): string {
  const closed = existsSync(home) && (statSync(home).mode & 0o001) === 0;
  return process.getuid?.() === 0 && closed ? "/var/lib/tally" : resolve(home, ".local/share/tally");
}

/** One line of `tally config`. */
export interface SettingLine {
  readonly name: string;
  /** Secrets are masked. */
  readonly value: string;
  /** `default`, `environment`, `file <path>` or `STATE_DIRECTORY`. */
  readonly source: string;
}

/** Reads and documents at once: what `readSettings` makes of the environment, and where each value came from. */
export function explainSettings(env: Environment): { settings: Settings; lines: SettingLine[] } {
  const faults = unknownVariables(env);
  const lines: SettingLine[] = [];
  function take<T>(entry: Variable<T>): T {
    const { text, source } = find(entry, env, faults);
    lines.push({ name: entry.name, value: text === null ? entry.unset : entry.mask(text), source });
    if (text === null) return entry.fallback;
    const reading = entry.read(text);
    if ("value" in reading) return reading.value;
    faults.push(`${entry.name} ${reading.fault}`);
    return entry.fallback;
  }
  const own = {
    logLevel: take(TABLE.logLevel),
    http: { host: take(TABLE.httpHost), port: take(TABLE.httpPort) },
    database: {
      url: take(TABLE.databaseUrl),
      maxConnections: take(TABLE.maxConnections),
      autoMigrate: take(TABLE.autoMigrate),
      silenceSeconds: take(TABLE.databaseSilence),
    },
    auth: { mode: take(TABLE.authMode), internalToken: take(TABLE.internalToken) },
    unhealthyThresholdSeconds: take(TABLE.unhealthyThreshold),
    requireSizeSchema: take(TABLE.requireSizeSchema),
    attributingRelationTypes: take(TABLE.attributingRelationTypes),
    metrics: { enabled: take(TABLE.metricsEnabled), refreshSeconds: take(TABLE.metricsRefresh) },
    sync: {
      cloudsConfig: take(TABLE.syncClouds),
      allowAt: take(TABLE.syncAllowAt),
      budgetSeconds: take(TABLE.syncBudget),
      settleSeconds: take(TABLE.syncSettle),
      intervalSeconds: take(TABLE.syncInterval),
      maxAbsentPercent: take(TABLE.syncMaxAbsent),
    },
  };
  const given = take(TABLE.dataDir);
  lines.pop();
  // systemd hands over a colon-separated list when the unit names several directories; Tally's is the first.
  const state = (env.STATE_DIRECTORY ?? "").split(":")[0] ?? "";
  const dataDir = state !== "" ? resolve(state) : (given ?? defaultDataDir(env.HOME || homedir()));
  const source = state !== "" ? "STATE_DIRECTORY" : given === null ? "default" : "environment";
  lines.push({ name: TABLE.dataDir.name, value: dataDir, source });
  if (own.auth.mode === "disabled" && !isLoopback(own.http.host)) {
    faults.push(
      `TALLY_REPORTING_AUTH_MODE=disabled listens on loopback only, not on ${own.http.host}: ` +
        "set TALLY_REPORTING_HTTP_HOST=127.0.0.1",
    );
  }
  if (faults.length > 0) throw new SettingsError(faults);
  return { settings: { ...own, dataDir }, lines };
}

/**
 * Reads the settings.
 * @throws {SettingsError} that lists every fault: unreadable values, unknown TALLY_… variables, impossible pairs
 */
export function readSettings(env: Environment): Settings {
  return explainSettings(env).settings;
}
