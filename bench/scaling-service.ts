import { type SandboxOptions, startSandbox } from "../sandbox/server.js";

/** What the service was asked, and how often it made the same page's report. */
export interface Asked {
  lists: number;
  refused: number;
  /** Reports beyond the first of a page. */
  doubled: number;
}

/** The sandbox in a process of its own: told its options, it tells its address; then, for any word, what it was asked. */
process.once("message", async (options: SandboxOptions) => {
  const sandbox = await startSandbox({ reports: 0, ...options });
  process.send?.({ url: sandbox.url, apiKey: sandbox.apiKey });
  process.on("message", () => {
    const reports = sandbox.reports.list({});
    const asked: Asked = {
      lists: sandbox.requests.filter(({ method, status }) => method === "GET" && status === 200).length,
      refused: sandbox.requests.filter(({ status }) => status === 429).length,
      doubled: reports.length - new Set(reports.map(({ url }) => url)).size,
    };
    process.send?.(asked);
  });
});
process.on("disconnect", () => process.exit());
