/** The app: every feature's routes, in one envelope. */
import { Elysia } from "elysia";
import { envelope, type Handler } from "./envelope.ts";
import { problemAnswer } from "./problems.ts";
import { routeTable } from "./route-table.ts";
import type { Services } from "./services.ts";

/** The whole of Tally's HTTP side. */
export interface App {
  /** Answers one request; never rejects. */
  readonly fetch: Handler;
  /** Every route that answers, as it was registered. */
  readonly routes: readonly { readonly method: string; readonly path: string; readonly hidden: boolean }[];
}

/** Composes the app over its services. It listens to nothing yet. */
export function createApp(services: Services): App {
  const elysia = new Elysia({
    // The default would strip members that a schema doesn't name.
    normalize: false,
    // `/events/` is not `/events`.
    strictPath: true,
  }).onError(({ error }) => problemAnswer(error, services.log));

  return {
    fetch: envelope({
      route: routeTable(elysia.routes),
      handle: (request) => elysia.fetch(request),
      log: services.log,
      metrics: services.metrics,
    }),
    routes: elysia.routes.map(({ method, path, hooks }) => ({
      method,
      path,
      hidden: hooks.detail?.hide === true,
    })),
  };
}
