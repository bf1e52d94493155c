/** The app: every feature's routes, in one envelope. */
import { type TSchema, TypeGuard } from "@sinclair/typebox";
import { type AnyElysia, Elysia } from "elysia";
import * as ingestModels from "../ingest/model.ts";
import { ingestRoutes } from "../ingest/routes.ts";
import * as inventoryModels from "../inventory/model.ts";
import { inventoryRoutes } from "../inventory/routes.ts";
import { Problem } from "../problem.ts";
import * as projectionModels from "../projection/model.ts";
import { projectionRoutes } from "../projection/routes.ts";
import * as resourceTypeModels from "../resource-types/model.ts";
import { resourceTypeRoutes } from "../resource-types/routes.ts";
import { createHealth } from "../telemetry/health.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { probeDatabase } from "../telemetry/probe.ts";
import { keepResourceGauge } from "../telemetry/resource-gauge.ts";
import { telemetryRoutes } from "../telemetry/routes.ts";
import { docsRoutes } from "./docs.ts";
import { envelope, type Handler } from "./envelope.ts";
import { openApiDocument } from "./openapi.ts";
import { problemAnswer } from "./problems.ts";
import { routeTable } from "./route-table.ts";
import type { Services } from "./services.ts";

/** How often the database is probed when nobody asks, in milliseconds. */
const PROBE_INTERVAL_MS = 5_000;

/** The bodies of every feature, by the names that the document gives them. */
const MODELS: readonly TSchema[] = [
  ingestModels,
  inventoryModels,
  projectionModels,
  resourceTypeModels,
].flatMap((room) =>
  Object.values(room).filter((schema) => TypeGuard.IsSchema(schema) && schema.$id !== undefined),
);

/** One route that answers. */
export interface AppRoute {
  readonly method: string;
  /** As it was registered: `/api/v1/resource-types/:platform/:resource_type`. */
  readonly path: string;
  /** Not in the document: the assets of the page. */
  readonly hidden: boolean;
}

/** The whole of Tally's HTTP side. */
export interface App {
  /** Answers one request; never rejects. */
  readonly fetch: Handler;
  readonly routes: readonly AppRoute[];
  /** Starts what runs beside the requests (health probe, gauges). @returns stops it. */
  startBackground(): () => void;
}

/** What the app needs whatever its routes are. */
export interface AppOptions {
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Composes the app over its services. It listens to nothing yet. */
export function createApp(services: Services): App {
  const { db, settings, log, metrics } = services;
  metrics.poolMax.set(settings.database.maxConnections);
  const health = createHealth({
    probe: () => probeDatabase(db),
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
    .use(projectionRoutes(services))
    .use(resourceTypeRoutes(services))
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

/** Puts routes into the envelope. */
export function assemble(routes: AnyElysia, { log, metrics }: AppOptions): App {
  const router = new Elysia({
    // The default would strip members that a schema doesn't name.
    normalize: false,
    // `/events/` is not `/events`.
    strictPath: true,
    // The default looks for the path from the URL's eleventh character on, and finds none behind `http://api/`.
    handler: { standardHostname: false },
  })
    .onError(({ code, error }) =>
      // The route table has told unknown paths already; should the router ever see one otherwise, it's no 500.
      problemAnswer(code === "NOT_FOUND" ? new Problem("not_found") : error, log),
    )
    .use(routes);
  return {
    fetch: envelope({
      route: routeTable(router.routes),
      handle: (request) => router.fetch(request),
      log,
      metrics,
    }),
    routes: router.routes.map(({ method, path, hooks }) => ({
      method,
      path,
      hidden: hooks.detail?.hide === true,
    })),
    startBackground: () => () => {},
  };
}
