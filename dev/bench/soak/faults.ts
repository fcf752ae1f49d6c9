import { type Sandbox, startSandbox } from "../../../sandbox/server.js";

/** The sandbox with faults, in its own process. The `created` project keeps only its newest reports, so that lists stay short. */
const KEPT = 500;
/** The share of responses that come after the client's timeout of 2 s. */
const LATE = 0.005;

/** By page, how often its report was created or regenerated. */
export type Effects = Record<string, number>;

const effects: Effects = {};
const count = (into: Effects, reports: ReturnType<Sandbox["reports"]["list"]>) => {
  for (const { url, generation } of reports) into[url] = (into[url] ?? 0) + generation + 1;
};

const sandbox = await startSandbox({
  reports: 0,
  fail: 8,
  latency() {
    const old = sandbox.reports.list({ project: "created.example.com" }).slice(KEPT);
    count(effects, old);
    for (const { id } of old) sandbox.reports.remove(id);
    return Math.random() < LATE ? 3000 : 50 * Math.random();
  },
});
process.on("message", () => {
  const all = { ...effects };
  count(all, sandbox.reports.list({}));
  process.send?.(all);
});
process.on("disconnect", () => process.exit());
process.send?.(sandbox.url);
