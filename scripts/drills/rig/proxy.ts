/** A network that fails: slow, narrow, silent, or cut at a moment that is chosen by what goes through. */
import type { NetConnectOpts, Socket } from "node:net";
import { startTunnel, type Tunnel, type Way } from "../../bench/tunnel.ts";

/** What becomes of a chunk: it goes on; both ends are cut before it does; its first half goes on, and then both are cut. */
export type Verdict = "pass" | "cut" | "cut in half";

/** More than this waits in the proxy for no connection: then the sender is held up, as a full network does it. */
const WAITING_BYTES = 256 * 1024;
/** A narrow line passes bytes on so often, in milliseconds. */
const TICK_MS = 20;

export class FaultyNetwork {
  /** Added to each way, in milliseconds. */
  latencyMs = 0;
  /** Of each connection and way; null: as fast as it goes. */
  bytesPerSecond: number | null = null;
  /** Everything vanishes, also the news that an end has closed. */
  swallowing = false;
  /** Asked of each chunk. */
  judge: ((chunk: Buffer, way: Way) => Verdict) | null = null;
  #tunnel: Tunnel | null = null;

  /** Listens on a free port of 127.0.0.1. */
  static async start(target: NetConnectOpts): Promise<FaultyNetwork> {
    const network = new FaultyNetwork();
    network.#tunnel = await startTunnel(target, (from, to, way) => network.#join(from, to, way));
    return network;
  }

  get port(): number {
    return this.#tunnel?.port ?? 0;
  }

  /** Cuts every connection that stands. */
  cut(): void {
    this.#tunnel?.cut();
  }

  async stop(): Promise<void> {
    await this.#tunnel?.stop();
  }

  #join(from: Socket, to: Socket, way: Way): void {
    let waiting = 0;
    let last: Promise<void> = Promise.resolve();
    const inOrder = (step: () => Promise<void>) => {
      last = last.then(step);
    };
    from.on("data", (chunk: Buffer) => {
      if (this.swallowing) return;
      const due = performance.now() + this.latencyMs;
      waiting += chunk.byteLength;
      if (waiting > WAITING_BYTES) from.pause();
      inOrder(async () => {
        const early = due - performance.now();
        if (early > 0) await Bun.sleep(early);
        await this.#pass(chunk, from, to, way);
        waiting -= chunk.byteLength;
        if (waiting <= WAITING_BYTES) from.resume();
      });
    });
    from.on("end", () => {
      if (!this.swallowing) inOrder(async () => void to.end());
    });
  }

  async #pass(chunk: Buffer, from: Socket, to: Socket, way: Way): Promise<void> {
    const verdict = this.judge?.(chunk, way) ?? "pass";
    if (verdict === "pass") return await this.#write(chunk, to);
    if (verdict === "cut in half") await this.#write(chunk.subarray(0, chunk.byteLength >> 1), to);
    from.destroy();
    to.destroy();
  }

  async #write(chunk: Buffer, to: Socket): Promise<void> {
    let rest = chunk;
    while (rest.byteLength > 0 && !to.destroyed) {
      const most =
        this.bytesPerSecond === null ? rest.byteLength : Math.ceil((this.bytesPerSecond * TICK_MS) / 1000);
      to.write(rest.subarray(0, most));
      rest = rest.subarray(most);
      if (this.bytesPerSecond !== null) await Bun.sleep(TICK_MS);
    }
  }
}
