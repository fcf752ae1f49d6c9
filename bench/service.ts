import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PAGES, page, path } from "./page.js";

/**
 * A stand-in in a process of its own. Below `/slow` each page, of 100 records, takes 20 ms, below `/held` an answer never comes,
 * and everywhere else the one page comes at once.
 */
const DELAY = 20;
const SIZE = 100;
const one = Buffer.from(page(1, 1, 10));
/** Made before, so that an answer takes no longer than it says. */
const pages = Array.from({ length: PAGES }, (_, index) => Buffer.from(page(index + 1, PAGES, SIZE)));

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
  if (pathname.startsWith("/held")) return;
  response.setHeader("content-type", "application/json");
  if (!pathname.startsWith(`/slow${path}`)) {
    response.end(one);
    return;
  }
  setTimeout(() => response.end(pages[Number(searchParams.get("page") ?? 1) - 1]), DELAY);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit());
