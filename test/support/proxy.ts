import { once } from "node:events";
import { createServer, request } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

export interface ProxyServer {
  url: string;
  /** The requests: `GET http://...` or `CONNECT host:port`, each with its Proxy-Authorization. */
  asked: { line: string; authorization: string | undefined }[];
  connections: number;
  /** The proxy's open connections, on either side. */
  open: Set<Socket>;
  close(): Promise<void>;
}

/** A forward proxy for absolute-form requests and CONNECT; `tunnel` rejects CONNECT instead. */
export async function startProxy(tunnel?: (socket: Socket) => void, port = 0): Promise<ProxyServer> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket.on("error", () => {}).on("close", () => sockets.delete(socket)));
  };
  const server = createServer((incoming, outgoing) => {
    const { method, url = "" } = incoming;
    const { "proxy-authorization": authorization, ...headers } = incoming.headers;
    proxy.asked.push({ line: `${method} ${url}`, authorization });
    const onward = request(url, { method: method ?? "GET", headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    onward.on("error", () => outgoing.writeHead(502).end());
    incoming.pipe(onward);
  });
  server.on("connection", (socket: Socket) => {
    proxy.connections++;
    keep(socket);
  });
  server.on("connect", (incoming, socket: Socket) => {
    proxy.asked.push({ line: `CONNECT ${incoming.url}`, authorization: incoming.headers["proxy-authorization"] });
    if (tunnel) {
      tunnel(socket);
      return;
    }
    const { hostname, port } = new URL(`http://${incoming.url}`);
    const onward = connect(Number(port), hostname, () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      onward.pipe(socket).pipe(onward);
    });
    keep(onward);
    onward.on("error", () => socket.destroy());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const proxy: ProxyServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    connections: 0,
    open: sockets,
    async close() {
      if (!server.listening) return;
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return proxy;
}
