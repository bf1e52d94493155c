/**
 * A TCP proxy in front of the database that makes every round trip take longer, as a database on another host does:
 * each chunk, in either direction, is passed on half the delay after it came.
 */
import { connect, createServer, type Socket } from "node:net";

/** A chunk that waits. */
interface Held {
  readonly due: number;
  readonly pass: () => void;
}

/** A running proxy. */
export interface DelayingProxy {
  readonly port: number;
  /** What is added to a round trip, in milliseconds: what is asked for, not what the timers make of it. */
  delayMs: number;
  stop(): Promise<void>;
}

/** Listens on 127.0.0.1 and forwards to the socket at `path`. */
export async function startProxy(path: string): Promise<DelayingProxy> {
  // setTimeout's resolution is a millisecond. A thread that waits on memory has one of tens of microseconds.
  const timer = new Worker(new URL("delay-timer.ts", import.meta.url).href);
  const held: Held[] = [];
  const sockets = new Set<Socket>();
  let waiting = false;

  const arm = () => {
    const first = held[0];
    if (waiting || first === undefined) return;
    waiting = true;
    timer.postMessage(Math.max(0, first.due - performance.now()));
  };
  timer.onmessage = () => {
    waiting = false;
    const now = performance.now();
    // The delay is one for all, so that what came first is due first.
    while (held[0] !== undefined && held[0].due <= now) held.shift()?.pass();
    arm();
  };
  const hold = (pass: () => void) => {
    held.push({ due: performance.now() + proxy.delayMs / 2, pass });
    arm();
  };
  const forward = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on("data", (chunk) => hold(() => to.write(chunk)));
    from.on("end", () => hold(() => to.end()));
    from.on("error", () => to.destroy());
    from.on("close", () => sockets.delete(from));
  };
  const server = createServer((client) => {
    const upstream = connect({ path });
    forward(client, upstream);
    forward(upstream, client);
  });
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(0, "127.0.0.1", resolve);
  await listening;
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const proxy: DelayingProxy = {
    port: address.port,
    delayMs: 0,
    async stop() {
      for (const socket of sockets) socket.destroy();
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      await closed.promise;
      timer.terminate();
    },
  };
  return proxy;
}
