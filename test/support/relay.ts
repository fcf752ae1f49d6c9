import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Relay {
  port: number;
  /** Closes all connections, and accepts none until `mend`. */
  cut(): void;
  mend(): void;
  stop(): void;
}

/** Passes connections on to a port of this computer, as a network between them that can be cut. */
export async function startRelay(to: number): Promise<Relay> {
  const clients = new Set<Socket>();
  let broken = false;
  const server = createServer((client) => {
    if (broken) return client.destroy();
    const upstream = connect(to, "127.0.0.1");
    clients.add(client);
    client.on("close", () => clients.delete(client) && upstream.destroy()).on("error", () => {});
    upstream.on("close", () => client.destroy()).on("error", () => {});
    client.pipe(upstream).pipe(client);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    broken = true;
    for (const client of clients) client.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    mend() {
      broken = false;
    },
    stop() {
      server.close();
      cut();
    },
  };
}
