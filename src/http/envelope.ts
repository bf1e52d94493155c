/**
 * What surrounds every request, whatever answers it: its id, 404 and 405, HEAD and OPTIONS, the last net under
 * errors, the headers of every answer, one access line in the log, one observation in the metrics.
 */
import { randomUUID } from "node:crypto";
import type { Server } from "bun";
import { Problem } from "../problem.ts";
import { type Logger, withRequestId } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { problemAnswer } from "./problems.ts";
import { refusal } from "./refusal.ts";
import { keepFacts, rawPath } from "./request-input.ts";
import type { RouteMatch } from "./route-table.ts";

/** Answers one request. `server` is there when it came over the network. */
export type Handler = (request: Request, server?: Server<undefined>) => Promise<Response>;

/** What the envelope needs around the router. */
export interface Inside {
  readonly route: (path: string) => RouteMatch | null;
  /** The router. What it can't answer it answers by throwing, or as a problem. */
  readonly handle: (request: Request) => Response | Promise<Response>;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Methods that are told apart in the metrics; anything else a client makes up is one. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;
/**
 * How long a body may take to arrive, or an answer to leave, in seconds. The server counts from the moment that
 * this is set, not from the last byte: 32 MiB in this time is 140 KB a second. 255 is the most it takes.
 */
const TRANSFER_TIMEOUT_S = 240;
/** The server's own idle timeout would cut off a handler that works longer than it. */
const NEVER = 0;

/** Wraps a router. The result never throws and never rejects. */
export function envelope({ route, handle, log, metrics }: Inside): Handler {
  return (arrived, server) => {
    const request = hosted(arrived);
    const given = request.headers.get("x-request-id");
    const requestId = given !== null && REQUEST_ID.test(given) ? given : randomUUID();
    return withRequestId(requestId, async () => {
      const start = performance.now();
      const path = rawPath(request.url);
      const match = path === null ? null : route(path);
      // While the handler works nothing limits it here: what it waits for is the database, with its own timeouts.
      server?.timeout(arrived, bringsBody(request) ? TRANSFER_TIMEOUT_S : NEVER);
      const bodyArrived = () => server?.timeout(arrived, NEVER);
      let response: Response;
      try {
        if (path === null) throw refusal([{ loc: "header.host", msg: "is not a host" }]);
        response = await answer(request, match, bodyArrived, handle);
      } catch (error) {
        response = problemAnswer(error, log);
      }
      server?.timeout(arrived, TRANSFER_TIMEOUT_S);
      finish(response, requestId);
      const seconds = (performance.now() - start) / 1_000;
      const pattern = match?.route.pattern ?? "unknown";
      const method = METHODS.has(request.method) ? request.method : "OTHER";
      metrics.httpDuration.observe({ method, route: pattern, status: String(response.status) }, seconds);
      log.info("request", {
        method,
        route: pattern,
        status: response.status,
        duration_ms: Math.round(seconds * 1e6) / 1e3,
      });
      return response;
    });
  };
}

/**
 * The request with a host: HTTP/1.0 has none, which is how some load balancers ask for /healthz, and then the server
 * makes a URL of the path alone. One that names a broken host stays as it is.
 */
function hosted(request: Request): Request {
  if (!request.url.startsWith("/") || (request.headers.get("host") ?? "") !== "") return request;
  return new Request(`http://localhost${request.url}`, request);
}

async function answer(
  request: Request,
  match: RouteMatch | null,
  bodyArrived: () => void,
  handle: Inside["handle"],
): Promise<Response> {
  if (match === null) throw new Problem("not_found");
  const { parameters } = match;
  const { methods, allow } = match.route;
  if (request.method === "OPTIONS") {
    return new Response(null, { status: 204, headers: { allow } });
  }
  if (!methods.has(request.method)) {
    throw new Problem("method_not_allowed", `this path takes ${allow}`, { headers: { allow } });
  }
  if (request.method !== "HEAD") {
    keepFacts(request, { parameters, bodyArrived });
    return await handle(request);
  }
  const get = new Request(request.url, { method: "GET", headers: request.headers });
  keepFacts(get, { parameters, bodyArrived });
  const response = await handle(get);
  const length = (await response.arrayBuffer()).byteLength;
  const headers = new Headers(response.headers);
  // A 304 has no body for another reason: what it would announce is not the length of what the caller has.
  if (response.status !== 304) headers.set("content-length", String(length));
  return new Response(null, { status: response.status, headers });
}

function bringsBody({ headers }: Request): boolean {
  return headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;
}

/** The headers that every answer has. The page of the API sets its own policies. */
function finish(response: Response, requestId: string): void {
  const { headers } = response;
  headers.set("x-request-id", requestId);
  headers.set("x-content-type-options", "nosniff");
  if (!headers.has("content-security-policy"))
    headers.set("content-security-policy", "frame-ancestors 'none'");
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
}
