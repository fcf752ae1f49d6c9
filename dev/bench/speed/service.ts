import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PAGES, page, path } from "./page.js";

/**
 * The service in its own process. Below `/slow`, each page has 100 records and takes 20 ms. Below `/held`, there is never
 * a response. Anything else returns one page immediately.
 */
const DELAY = 20;
const SIZE = 100;
const one = Buffer.from(page(1, 1, 10));
/** Made in advance, so that a response takes no longer than the delay. */
const pages = Array.from({ length: PAGES }, (_, index) => Buffer.from(page(index + 1, PAGES, SIZE)));

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
  if (pathname.startsWith("/held")) return;
  response.setHeader("content-type", "application/json");
  if (!pathname.startsWith(`/slow${path}`)) response.end(one);
  else setTimeout(() => response.end(pages[Number(searchParams.get("page") ?? 1) - 1]), DELAY);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit());
