import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A message that must be shown as text. */
const MARKUP = `<img src=x onerror="window.broken=1">`;
const MEGABYTE = `<!doctype html><title>A site</title>${"<p>words</p>".repeat(90_000)}`;

/** Servers that respond but are not the service: `/html`, `/moved`, `/refuses`. */
export async function startOddServices() {
  const answers: Record<string, [status: number, headers: Record<string, string>, body: string]> = {
    html: [200, { "content-type": "text/html" }, MEGABYTE],
    moved: [301, { location: "https://seo.example.com/api/v1/reports" }, ""],
    refuses: [403, { "content-type": "application/json" }, JSON.stringify({ message: MARKUP })],
  };
  const server = createServer(({ url = "" }, response) => {
    const [status, headers, body] = answers[url.split("/")[1] ?? ""] ?? [404, {}, ""];
    response.writeHead(status, headers).end(body);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
