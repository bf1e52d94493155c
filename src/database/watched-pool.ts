/**
 * A pool that outlives a network that swallows everything. Where packets just vanish, nobody tells a client that its
 * server is gone: its statements would wait for ever, and with them the requests. So the server is asked for a sign of
 * life, on a connection of its own, and where it gives none, the whole pool is given up and another one opened.
 */

import type { DatabaseTarget } from "./address.ts";
import type { Database } from "./connection.ts";
import { knownAs, openBeside, openPool, type PoolOptions } from "./pool.ts";

/** How it is watched. Milliseconds. */
export interface WatchOptions extends PoolOptions {
  /** A server that has given no sign of life for so long is taken for gone. Default: 10,000. */
  readonly silenceMs?: number;
  /** How often it is asked. Default: 2,000. */
  readonly everyMs?: number;
  /** Told when a pool was given up. */
  readonly onSilence?: () => void;
}

/** A pool, whichever it is at the moment. */
export interface WatchedPool {
  readonly db: Database;
  /** Ends the watch and closes the pool. @param graceSeconds how long statements in flight may take */
  close(graceSeconds: number): Promise<void>;
}

/** After a pause the answer may be there already, and only not read yet. */
const SECOND_LOOK_MS = 500;

/** Opens it, and watches it until it is closed. What was in flight when a pool is given up fails as `unavailable`. */
export function openWatchedPool(target: DatabaseTarget, options: WatchOptions): WatchedPool {
  const { silenceMs = 10_000, everyMs = 2_000, onSilence = () => {} } = options;
  let pool = openPool(target, options);
  let heart = openBeside(pool);
  let askedAt: number | null = null;
  let closed = false;

  const db = new Proxy(pool, {
    apply: (_, __, parameters) => Reflect.apply(pool, undefined, parameters),
    get(_, name) {
      const value: unknown = Reflect.get(pool, name);
      return typeof value === "function" ? value.bind(pool) : value;
    },
  });
  knownAs(db, pool);

  const renew = async () => {
    const [silent, silentHeart] = [pool, heart];
    pool = openPool(target, options);
    heart = openBeside(pool);
    askedAt = null;
    onSilence();
    await Promise.all([silent.close({ timeout: 0 }), silentHeart.close({ timeout: 0 })]);
  };
  const ask = async () => {
    const asked = performance.now();
    askedAt = asked;
    // An error is a sign of life, too, or of a server that is known to be gone.
    await heart`SELECT`.catch(() => {});
    if (askedAt === asked) askedAt = null;
  };
  const look = async () => {
    if (askedAt === null) return await ask();
    if (performance.now() - askedAt < silenceMs) return;
    const asked = askedAt;
    await Bun.sleep(SECOND_LOOK_MS);
    if (askedAt === asked && !closed) await renew();
  };
  const timer = setInterval(() => void look(), everyMs);
  timer.unref();

  return {
    db,
    async close(graceSeconds) {
      closed = true;
      clearInterval(timer);
      await Promise.all([pool.close({ timeout: graceSeconds }), heart.close({ timeout: 0 })]);
    },
  };
}
