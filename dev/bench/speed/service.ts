import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The request that every contender sends. */
export const query = { project: "example.com", sort_by: "score", per_page: "10" };
export const path = "/api/v1/reports";
export const key = "0123456789abcdef0123456789abcdef";
/** What every contender sends besides the headers of its own client. */
export const headers = { authorization: `Bearer ${key}`, accept: "application/json" };

/** The number of pages in the long list. */
export const PAGES = 1000;

const date = "2025-01-31T12:00:00.000000Z";
const record = (id: number) => ({
  id,
  url: `example.com/${id}`,
  project: "example.com",
  score: id % 101,
  result: "good",
  privacy: 0,
  password: false,
  generated_at: date,
  created_at: date,
  updated_at: null,
});

/** One page of a list, as the service writes it. */
function page(number: number, pages: number, size: number): string {
  const data = Array.from({ length: size }, (_, index) => record((number - 1) * size + index + 1));
  const link = (to: number) => (to > pages || to < 1 ? null : `http://127.0.0.1${path}?page=${to}`);
  const links = { first: link(1), last: link(pages), prev: link(number - 1), next: link(number + 1) };
  const meta = { current_page: number, last_page: pages, per_page: size, total: pages * size };
  return JSON.stringify({ data, links, meta, status: 200 });
}

const one = page(1, 1, 10);

/** The configuration of a server that returns one page, and needs less of the machine than what is measured. */
export const nginx = `keepalive_requests 1000000000;
    location = ${path} { default_type application/json; return 200 '${one}'; }`;

/**
 * Starts the service. Below `/slow`, each page has 100 records and takes 20 ms. Below `/held`, there is never a response. Anything else
 * returns one page immediately.
 */
export async function startService(): Promise<{ url: string; stop(): void }> {
  // Made in advance, so that a response takes no longer than the delay.
  const pages = Array.from({ length: PAGES }, (_, index) => Buffer.from(page(index + 1, PAGES, 100)));
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
    if (pathname.startsWith("/held")) return;
    response.setHeader("content-type", "application/json");
    if (!pathname.startsWith("/slow")) response.end(one);
    else setTimeout(() => response.end(pages[Number(searchParams.get("page") ?? 1) - 1]), 20);
  });
  server.keepAliveTimeout = 60_000;
  await once(server.listen(0, "127.0.0.1"), "listening");
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}
