import { connect, createServer, type Socket } from "node:net";
import { openLocally } from "./local.js";

export interface Relay {
  port: number;
  /** Closes all connections, and accepts none until `mend`. */
  cut(): void;
  mend(): void;
  /** Passes nothing on over the connections that are open, as if the other host were gone. New ones work. */
  hang(): void;
  /** Loses what the server returns over the connections that are open. */
  mute(): void;
  /** New connections are for another port. */
  direct(to: number): void;
  stop(): void;
}

/** Passes connections on to a port of this computer, as a network between them that can be cut. `read` gets what clients send. */
export async function startRelay(port: number, read: (chunk: Buffer) => void = () => {}): Promise<Relay> {
  const upstreams = new Set<Socket>();
  let broken = false;
  let to = port;
  const server = createServer((client) => {
    if (broken) return client.destroy();
    const upstream = connect(to, "127.0.0.1");
    upstreams.add(upstream);
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => upstreams.delete(upstream) && client.destroy()).on("error", () => {});
    client.on("data", read).pipe(upstream).pipe(client);
  });
  const { port: own, open, close } = await openLocally(server);
  return {
    port: own,
    cut() {
      broken = true;
      for (const client of open) client.destroy();
    },
    mend() {
      broken = false;
    },
    hang() {
      for (const client of open) client.unpipe().pause();
    },
    mute() {
      for (const upstream of upstreams) upstream.unpipe().resume();
    },
    direct(other) {
      to = other;
    },
    stop: () => void close(),
  };
}
