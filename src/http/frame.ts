/** Routes in the envelope: what listens, and what tests call without listening. */
import { type AnyElysia, Elysia } from "elysia";
import { Problem } from "../problem.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { envelope, type Handler } from "./envelope.ts";
import { problemAnswer } from "./problems.ts";
import { routeTable } from "./route-table.ts";

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
