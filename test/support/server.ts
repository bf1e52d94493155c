/** The real app on a real port over a real database, with credentials to call it. */
import { createHash, randomBytes } from "node:crypto";
import { createApp } from "../../src/app.ts";
import { type Instant, instantFromMicros } from "../../src/event/instant.ts";
import { listen } from "../../src/http/listen.ts";
import type { ConfiguredCloud } from "../../src/reconcile/adapter.ts";
import type { Settings } from "../../src/settings.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createMetrics, type Metrics } from "../../src/telemetry/metrics.ts";
import { type TestDatabase, testDatabase } from "./database.ts";

/** Tokens that the server takes. */
export interface TestCredentials {
  readonly admin: string;
  readonly readAll: string;
  readonly internal: string;
  /** Makes a collector's token. */
  ingest(platform: string, cloud: string): Promise<string>;
  /** Makes a project token. @param ids registry ids (projects.id) */
  project(ids: readonly string[]): Promise<string>;
}

/** A running server. */
export interface TestServer {
  readonly url: string;
  readonly db: TestDatabase;
  readonly metrics: Metrics;
  readonly credentials: TestCredentials;
  /** Every line that was logged so far, parsed. */
  readonly logged: Record<string, unknown>[];
  /** Calls it. `token` becomes the Authorization header; a string body of no stated type is JSON. */
  request(path: string, init?: RequestInit & { token?: string }): Promise<Response>;
  /** Ends it, and drops the database unless it was handed in. */
  stop(): Promise<void>;
}

const INTERNAL_TOKEN = "internal-token-of-the-tests";

/** Settings as an empty environment gives them, with an internal token. */
function testSettings(changed: Partial<Settings>): Settings {
  return {
    logLevel: "DEBUG",
    http: { host: "127.0.0.1", port: 0 },
    database: { url: null, maxConnections: 10, autoMigrate: false, silenceSeconds: 10 },
    auth: { mode: "enforced", internalToken: INTERNAL_TOKEN },
    unhealthyThresholdSeconds: 600,
    requireSizeSchema: false,
    attributingRelationTypes: ["infrastructure_tenant"],
    metrics: { enabled: true, refreshSeconds: 60 },
    sync: {
      cloudsConfig: null,
      allowAt: false,
      budgetSeconds: 45,
      settleSeconds: 60,
      intervalSeconds: 600,
      maxAbsentPercent: 20,
    },
    dataDir: "/nowhere",
    ...changed,
  };
}

/** How a server is started. */
export interface TestServerOptions {
  /** Without it, the server makes a fresh database, which goes with it. */
  readonly db?: TestDatabase;
  readonly settings?: Partial<Settings>;
  readonly now?: () => Instant;
  readonly clouds?: readonly ConfiguredCloud[];
  /** False: writes no API tokens, for a database that can't be written to or reached. */
  readonly credentials?: false;
}

/** Starts the app. */
export async function testServer(options: TestServerOptions = {}): Promise<TestServer> {
  const db = options.db ?? (await testDatabase());
  const logged: Record<string, unknown>[] = [];
  const metrics = createMetrics();
  const settings = testSettings(options.settings ?? {});
  const app = createApp({
    db: db.db,
    settings,
    now: options.now ?? (() => instantFromMicros(`${BigInt(Date.now()) * 1_000n}`)),
    log: createLogger(settings.logLevel, (line) => logged.push(JSON.parse(line))),
    metrics,
    clouds: options.clouds ?? [],
  });
  const listening = listen(app, settings.http);

  const written = options.credentials !== false;
  const credentials: TestCredentials = {
    admin: written ? await apiToken(db, "admin", []) : "",
    readAll: written ? await apiToken(db, "read_all", []) : "",
    internal: INTERNAL_TOKEN,
    project: (ids) => apiToken(db, "project", ids),
    async ingest(platform, cloud) {
      const token = newToken("tly_i_");
      await db.db`INSERT INTO ingest_credentials (platform, cloud, token_sha256)
        VALUES (${platform}, ${cloud}, ${sha256(token)})`;
      return token;
    },
  };

  return {
    url: listening.url,
    db,
    metrics,
    credentials,
    logged,
    request(path, { token, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
      if (typeof init.body === "string" && !headers.has("content-type")) {
        headers.set("content-type", "application/json");
      }
      return fetch(`${listening.url}${path}`, { ...init, headers });
    },
    async stop() {
      await listening.stop();
      if (options.db === undefined) await db.drop();
    },
  };
}

async function apiToken(
  db: TestDatabase,
  role: "admin" | "read_all" | "project",
  projects: readonly string[],
): Promise<string> {
  const token = newToken("tly_a_");
  await db.db`INSERT INTO api_tokens (role, project_ids, token_sha256)
    VALUES (${role}, ${`{${projects.join(",")}}`}::text::uuid[], ${sha256(token)})`;
  return token;
}

function newToken(prefix: string): string {
  return prefix + randomBytes(32).toString("hex");
}

function sha256(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
