/** /healthz, /readyz and /metrics. */
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { operation } from "../http/operation.ts";
import type { Services } from "../http/services.ts";
import type { Finding, Health } from "./health.ts";

const plain = (description: string, example: string) => ({
  schema: Type.String(),
  contentType: "text/plain",
  description,
  example,
});

const getHealth = operation({
  id: "getHealth",
  tag: "Operation",
  summary: "Is the process fit?",
  description:
    "For a supervisor that restarts: 503 only once `/readyz` has failed for longer than TALLY_REPORTING_UNHEALTHY_THRESHOLD_S.",
  security: null,
  answers: {
    200: plain("It is.", "healthy"),
    503: plain("It has not been ready for too long; the text says why.", "not ready for 601 seconds: …"),
  },
});

const getReadiness = operation({
  id: "getReadiness",
  tag: "Operation",
  summary: "Can it serve now?",
  description: "For a load balancer: the database answers, takes writes, and has the schema of this version.",
  security: null,
  answers: {
    200: plain("It can.", "ready"),
    503: plain("It can't; the text says why.", "the database can't be reached"),
  },
});

const getMetrics = operation({
  id: "getMetrics",
  tag: "Operation",
  summary: "What it counts about itself",
  description: "Prometheus' text format. Switched off by TALLY_METRICS_ENABLED=false: then 404.",
  security: null,
  answers: { 200: plain("All metrics.", 'tally_events_deduplicated_total{cloud="os-prod-eu1"} 3') },
});

export function telemetryRoutes(services: Services, health: Health) {
  const text = (good: string, finding: Finding) =>
    new Response(`${finding ?? good}\n`, {
      status: finding === null ? 200 : 503,
      headers: { "content-type": "text/plain; charset=utf-8" },
    });
  const routes = new Elysia({ name: "telemetry" })
    .get(
      "/healthz",
      ({ request }) => {
        getHealth.readQuery(request);
        return text("healthy", health.health());
      },
      getHealth.hook,
    )
    .get(
      "/readyz",
      async ({ request }) => {
        getReadiness.readQuery(request);
        return text("ready", await health.readiness());
      },
      getReadiness.hook,
    );
  if (!services.settings.metrics.enabled) return routes;
  return routes.get(
    "/metrics",
    async ({ request }) => {
      getMetrics.readQuery(request);
      const { registry } = services.metrics;
      return new Response(await registry.metrics(), { headers: { "content-type": registry.contentType } });
    },
    getMetrics.hook,
  );
}
