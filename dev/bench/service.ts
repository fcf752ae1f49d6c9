import { startSandbox } from "../../sandbox/server.js";

/** `latency` in milliseconds. `fail`: the percentage of requests with the faults of the sandbox, and random latencies instead. */
export interface Options {
  latency?: number;
  fail?: number;
}

export interface Address {
  url: string;
  apiKey: string;
}

export interface Seen {
  /** By page, how often its report was created or regenerated. */
  effects: Record<string, number>;
  /** When requests were received: milliseconds since 1970. */
  requests: number[];
}

/** The project `created` keeps only its newest reports, so that lists stay short. */
const KEPT = 2000;
/** Requests until the others are removed, which takes as long as a hundred requests. */
const OFTEN = 100;
/** The share of responses that come after the client's timeout of 2 s. */
const LATE = 0.005;

/** The sandbox in its own process: gets its options, sends its address, then responds to any message with what it has seen. */
process.once("message", async ({ latency = 0, fail = 0 }: Options) => {
  const [requests, removed]: [number[], Seen["effects"]] = [[], {}];
  const count = (into: Seen["effects"], reports: ReturnType<typeof sandbox.reports.list>) => {
    for (const { url, generation } of reports) into[url] = (into[url] ?? 0) + generation + 1;
    return into;
  };
  const sandbox = await startSandbox({
    reports: 0,
    fail,
    latency() {
      requests.push(Date.now());
      if (fail === 0) return latency;
      if (requests.length % OFTEN === 0) {
        const old = sandbox.reports.list({ project: "created.example.com" }).slice(KEPT);
        count(removed, old);
        for (const { id } of old) sandbox.reports.remove(id);
      }
      return Math.random() < LATE ? 3000 : 50 * Math.random();
    },
  });
  process.send?.({ url: sandbox.url, apiKey: sandbox.apiKey });
  process.on("message", () => {
    process.send?.({ effects: count({ ...removed }, sandbox.reports.list({})), requests });
  });
});
process.on("disconnect", () => process.exit());
