/**
 * A TCP proxy in front of the database that makes every round trip take longer, as a database on another host does:
 * each chunk, in either direction, is passed on half the delay after it came.
 */
import { startTunnel } from "./tunnel.ts";

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
  const tunnel = await startTunnel({ path }, (from, to) => {
    from.on("data", (chunk) => hold(() => to.write(chunk)));
    from.on("end", () => hold(() => to.end()));
  });
  const proxy: DelayingProxy = {
    port: tunnel.port,
    delayMs: 0,
    async stop() {
      await tunnel.stop();
      timer.terminate();
    },
  };
  return proxy;
}
