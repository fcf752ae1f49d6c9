import { type SandboxOptions, startSandbox } from "../../sandbox/server.js";

export interface Seen {
  rateLimited: number;
  /** Reports beyond the first of a page. */
  duplicates: number;
  /** When lists were requested: milliseconds since 1970. */
  lists: number[];
}

/** The sandbox in its own process: gets its options, sends its URL and key; then responds to any message with what it has seen. */
process.once("message", async ({ latency = 0, ...options }: SandboxOptions & { latency?: number }) => {
  const lists: number[] = [];
  const sandbox = await startSandbox({
    reports: 0,
    ...options,
    latency({ method }) {
      if (method === "GET") lists.push(Date.now());
      return latency;
    },
  });
  process.send?.({ url: sandbox.url, apiKey: sandbox.apiKey });
  process.on("message", () => {
    const reports = sandbox.reports.list({});
    const seen: Seen = {
      rateLimited: sandbox.requests.filter(({ status }) => status === 429).length,
      duplicates: reports.length - new Set(reports.map(({ url }) => url)).size,
      lists,
    };
    process.send?.(seen);
  });
});
process.on("disconnect", () => process.exit());
