/** The plumbing of a TCP proxy on loopback: every connection that comes is one to the target, with two ways to mind. */
import { connect, createServer, type NetConnectOpts, type Socket } from "node:net";

/** Which way bytes go: `up` to the target. */
export type Way = "up" | "down";

/** What joins the two sockets of a connection, a way at a time: it listens to `from` and writes to `to`. */
export type Join = (from: Socket, to: Socket, way: Way) => void;

/** A listening proxy. */
export interface Tunnel {
  readonly port: number;
  /** Cuts every connection that stands. */
  cut(): void;
  stop(): Promise<void>;
}

/** Listens on a free port of 127.0.0.1. */
export async function startTunnel(target: NetConnectOpts, join: Join): Promise<Tunnel> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    const upstream = connect(target);
    for (const [from, to, way] of [
      [client, upstream, "up"],
      [upstream, client, "down"],
    ] as const) {
      keep(from);
      from.on("error", () => to.destroy());
      join(from, to, way);
    }
  });
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    cut,
    async stop() {
      cut();
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      await closed.promise;
    },
  };
}
