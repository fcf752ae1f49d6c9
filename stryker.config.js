import { existsSync } from "node:fs";

const { PART: part = "src" } = process.env;
const hooks = ["dist/test/support/limit.js", "dist/test/support/unhandled.js"];
const tests = (names, folder = "") => names.map((name) => `dist/test/${folder}${name}.test.js`);
/** In `nodes/`, those that take more than ten seconds. */
const LONG = "audit|faults|hostile|lost|queue";
/** What a mutant leaves running would fail the tests of the next one. */
const alone = { maxTestRunnerReuse: 1 };

/** What is changed, by which tests, and what differs from the options below. */
const parts = {
  src: { mutate: ["src/**/*.ts", "!src/audit/**"], spec: tests(["src/*", "src/http/*"]) },
  /** The tests that run the nodes in a Node-RED inside the test process. Those that take long come last. */
  nodes: {
    mutate: ["nodes/*.ts"],
    spec: tests([`!(shared-*|${LONG})`, `@(${LONG})`], "nodes/"),
    // Most tests wait for most of the time.
    concurrency: 8,
    ...alone,
  },
  /** The tests that need neither a server nor other processes. */
  audit: {
    mutate: ["src/audit/*.ts", "src/audit/shared/{host,letter,log,member,post,store,term}.ts"],
    spec: [
      ...tests(["audit", "canceled", "files", "letters", "lock", "network", "progress", "rows", "state"], "src/audit/"),
      ...tests(["sidebar"], "nodes/"),
    ],
    timeoutMS: 5000,
    timeoutFactor: 1,
    ...alone,
    // A mutant that never stops reading must not take the machine's memory.
    testRunnerNodeArgs: ["--max-old-space-size=512"],
    // No score is required until all parts were measured in one run: docs/testing.md.
    thresholds: { high: 95, low: 90, break: null },
    incremental: true,
    incrementalFile: "reports/mutation-audit-incremental.json",
  },
};

if (part === "audit") {
  // Ends a test that a mutant leaves waiting. In one of them, a connection can hang for 20 seconds.
  process.env.TEST_LIMIT = "25000";
  // Only the queue in memory: each mutant would wait for the start of the servers.
  process.env.ENGINES = "";
  // The same stories of machines for each mutant.
  Object.assign(process.env, { RUNS: "15", SEED: "77" });
  // A folder in memory, so that no test waits for the disk.
  if (existsSync("/dev/shm")) process.env.TMPDIR ??= "/dev/shm";
}

const { spec, ...options } = parts[part];
export default {
  tsconfigFile: "none",
  buildCommand: "npx tsc",
  testRunner: "mocha",
  plugins: ["@stryker-mutator/mocha-runner"],
  mochaOptions: { "no-config": true, "no-package": true, require: hooks, spec },
  coverageAnalysis: "perTest",
  ignoreStatic: true,
  concurrency: 2,
  timeoutMS: 30_000,
  dryRunTimeoutMinutes: 20,
  tempDirName: "reports/mutation",
  reporters: ["clear-text", "json", "progress-append-only"],
  thresholds: { high: 95, low: 90, break: 90 },
  jsonReporter: { fileName: part === "src" ? "reports/mutation.json" : `reports/mutation-${part}.json` },
  ...options,
};
