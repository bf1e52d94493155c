/** The app on a TCP port, and its orderly end. */
import type { App } from "./frame.ts";

/** A running server. */
export interface Listening {
  readonly host: string;
  /** The port it got, where 0 was asked for. */
  readonly port: number;
  readonly url: string;
  /**
   * Takes no more connections and lets what is in flight end, for `graceSeconds` at most; what is left then
   * is cut off. The app's background work ends, too.
   */
  stop(graceSeconds?: number): Promise<void>;
}

/**
 * In seconds, what the server's timeouts are until a request sets its own (envelope.ts). What has sent no whole head is
 * ended by Bun after ten seconds, whatever stands here.
 */
const IDLE_TIMEOUT_S = 60;
/** How often it is looked whether all is answered, in milliseconds. */
const POLL_MS = 10;
/** A stream counts as sent before its end mark has left. In milliseconds. */
const LAST_BYTES_MS = 50;

/**
 * Starts listening, and the app's background work.
 * @throws what Bun throws when the address is taken or refused (`code` EADDRINUSE, EACCES, …).
 */
export function listen(app: App, where: { readonly host: string; readonly port: number }): Listening {
  let stopping = false;

  const server = Bun.serve({
    hostname: where.host,
    port: where.port,
    idleTimeout: IDLE_TIMEOUT_S,
    // The bound is ours (body.ts), with a body that says so; the server's own is an empty 413.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    async fetch(request, self) {
      const response = await app.fetch(request, self);
      if (stopping) response.headers.set("connection", "close");
      return response;
    },
  });
  const endBackground = app.startBackground();

  let stopped: Promise<void> | null = null;
  const stop = async (graceSeconds: number) => {
    stopping = true;
    endBackground();
    void server.stop();
    // Answers that a slow reader takes are pending until they have left; half a request's head is none.
    const end = performance.now() + graceSeconds * 1_000;
    while (server.pendingRequests > 0 && performance.now() < end) await Bun.sleep(POLL_MS);
    await Bun.sleep(LAST_BYTES_MS);
    await server.stop(true);
  };
  const host = server.hostname ?? where.host;
  const port = server.port ?? where.port;
  return {
    host,
    port,
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    stop(graceSeconds = 10) {
      stopped ??= stop(graceSeconds);
      return stopped;
    },
  };
}
