import { type SandboxOptions, startSandbox } from "../../sandbox/server.js";

export interface Seen {
  lists: number;
  rateLimited: number;
  /** Reports beyond the first of a page. */
  duplicates: number;
}

/** The sandbox in its own process: gets its options, sends its URL and key; then responds to any message with what it has seen. */
process.once("message", async (options: SandboxOptions) => {
  const sandbox = await startSandbox({ reports: 0, ...options });
  process.send?.({ url: sandbox.url, apiKey: sandbox.apiKey });
  process.on("message", () => {
    const reports = sandbox.reports.list({});
    const seen: Seen = {
      lists: sandbox.requests.filter(({ method, status }) => method === "GET" && status === 200).length,
      rateLimited: sandbox.requests.filter(({ status }) => status === 429).length,
      duplicates: reports.length - new Set(reports.map(({ url }) => url)).size,
    };
    process.send?.(seen);
  });
});
process.on("disconnect", () => process.exit());
