/** The app: every feature's routes, in one frame. */
import { type TSchema, TypeGuard } from "@sinclair/typebox";
import { Elysia } from "elysia";
import * as accessModels from "./access/model.ts";
import { auditRoutes } from "./access/routes.ts";
import { countingTransactions } from "./database/counted-pool.ts";
import * as deadLetterModels from "./dead-letters/model.ts";
import { deadLetterRoutes } from "./dead-letters/routes.ts";
import { docsRoutes } from "./http/docs.ts";
import { type App, assemble } from "./http/frame.ts";
import { openApiDocument } from "./http/openapi.ts";
import type { Services } from "./http/services.ts";
import * as ingestModels from "./ingest/model.ts";
import { ingestRoutes } from "./ingest/routes.ts";
import * as inventoryModels from "./inventory/model.ts";
import { inventoryRoutes } from "./inventory/routes.ts";
import * as projectionModels from "./projection/model.ts";
import { projectionRoutes } from "./projection/routes.ts";
import * as projectModels from "./projects/model.ts";
import { relationRoutes } from "./projects/relation-routes.ts";
import { projectRoutes } from "./projects/routes.ts";
import * as reconcileModels from "./reconcile/model.ts";
import { reconcileRoutes } from "./reconcile/routes.ts";
import { syncRoutes } from "./reconcile/sync-routes.ts";
import * as resourceTypeModels from "./resource-types/model.ts";
import { resourceTypeRoutes } from "./resource-types/routes.ts";
import * as statisticsModels from "./statistics/model.ts";
import { statisticsRoutes } from "./statistics/routes.ts";
import { createHealth } from "./telemetry/health.ts";
import { probeDatabase } from "./telemetry/probe.ts";
import { keepResourceGauge } from "./telemetry/resource-gauge.ts";
import { telemetryRoutes } from "./telemetry/routes.ts";

/** How often the database is probed when nobody asks, in milliseconds. */
const PROBE_INTERVAL_MS = 5_000;

/** The bodies of every feature, by the names that the document gives them. */
const MODELS: readonly TSchema[] = [
  accessModels,
  deadLetterModels,
  ingestModels,
  inventoryModels,
  projectionModels,
  projectModels,
  reconcileModels,
  resourceTypeModels,
  statisticsModels,
].flatMap((room) =>
  Object.values(room).filter((schema) => TypeGuard.IsSchema(schema) && schema.$id !== undefined),
);

/** Composes the app over its services. It listens to nothing yet. */
export function createApp(given: Services): App {
  const { settings, log, metrics } = given;
  const db = countingTransactions(given.db, (by) => metrics.transactions.inc(by));
  const services = { ...given, db };
  metrics.poolMax.set(settings.database.maxConnections);
  const health = createHealth({
    probe: async () => (await probeDatabase(db)) ?? services.hindrance?.() ?? null,
    thresholdSeconds: settings.unhealthyThresholdSeconds,
    monotonicMs: () => performance.now(),
    changed(finding) {
      metrics.ready.set(finding === null ? 1 : 0);
      if (finding === null) log.info("ready");
      else log.warn("not ready", { reason: finding });
    },
  });
  // The document is made of the routes, and one of them serves it.
  const document = Promise.withResolvers<string>();
  const routes = new Elysia()
    .use(ingestRoutes(services))
    .use(inventoryRoutes(services))
    .use(deadLetterRoutes(services))
    .use(auditRoutes(services))
    .use(reconcileRoutes(services))
    .use(syncRoutes(services))
    .use(projectionRoutes(services))
    .use(projectRoutes(services))
    .use(relationRoutes(services))
    .use(resourceTypeRoutes(services))
    .use(statisticsRoutes(services))
    .use(telemetryRoutes(services, health))
    .use(docsRoutes(document.promise));
  document.resolve(openApiDocument(routes, MODELS).then((value) => JSON.stringify(value)));

  return {
    ...assemble(routes, services),
    startBackground() {
      const endProbe = health.watch(PROBE_INTERVAL_MS);
      const endGauge = settings.metrics.enabled
        ? keepResourceGauge(services, settings.metrics.refreshSeconds)
        : () => {};
      return () => {
        endProbe();
        endGauge();
      };
    },
  };
}
