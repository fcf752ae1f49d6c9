import { type SandboxOptions, startSandbox } from "../../../sandbox/server.js";

export interface Seen {
  /** Reports beyond the first of a page. */
  duplicates: number;
  /** When requests were received: milliseconds since 1970. */
  requests: number[];
}

/** The sandbox in its own process: gets its options, sends its URL and key; then responds to any message with what it has seen. */
process.once("message", async ({ latency = 0, ...options }: SandboxOptions & { latency?: number }) => {
  const requests: number[] = [];
  const sandbox = await startSandbox({
    reports: 0,
    ...options,
    latency() {
      requests.push(Date.now());
      return latency;
    },
  });
  process.send?.({ url: sandbox.url, apiKey: sandbox.apiKey });
  process.on("message", () => {
    const reports = sandbox.reports.list({});
    const seen: Seen = { duplicates: reports.length - new Set(reports.map(({ url }) => url)).size, requests };
    process.send?.(seen);
  });
});
process.on("disconnect", () => process.exit());
