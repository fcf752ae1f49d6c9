import { createServer, request } from "node:http";
import { connect, type Socket } from "node:net";
import { type LocalServer, openLocally } from "./local.js";

export interface ProxyServer extends LocalServer {
  /** The requests: `GET http://...` or `CONNECT host:port`, each with its Proxy-Authorization. */
  asked: { line: string; authorization: string | undefined }[];
  connections: number;
}

/** A forward proxy for absolute-form requests and CONNECT; `tunnel` rejects CONNECT instead. */
export async function startProxy(tunnel?: (socket: Socket) => void, port = 0): Promise<ProxyServer> {
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
  server.on("connection", () => proxy.connections++);
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
    onward.on("error", () => socket.destroy());
    socket.on("close", () => onward.destroy());
  });
  const proxy: ProxyServer = { ...(await openLocally(server, port)), asked: [], connections: 0 };
  return proxy;
}
