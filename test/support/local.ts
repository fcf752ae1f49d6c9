import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

/** A server on this computer. */
export interface LocalServer {
  port: number;
  url: string;
  /** Its open connections. */
  open: Set<Socket>;
  /** Ends its connections, too. */
  close(): Promise<void>;
}

/** Has a server listen on this computer, on a free port unless one is given. */
export async function openLocally(server: Server, port = 0): Promise<LocalServer> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket.on("error", () => {}).on("close", () => open.delete(socket)));
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  const found = (server.address() as AddressInfo).port;
  return {
    port: found,
    url: `http://127.0.0.1:${found}`,
    open,
    async close() {
      if (!server.listening) return;
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
