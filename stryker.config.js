import { existsSync } from "node:fs";

const { PART: part = "src" } = process.env;
const hooks = ["dist/test/support/limit.js", "dist/test/support/unhandled.js"];
const tests = (names, folder = "") => names.map((name) => `dist/test/${folder}${name}.test.js`);
/** Those that take longest run last: most mutants are detected before. */
const LAST = "checks|connections|lists|lost|outcomes|reconcile|scheduler";
const LAST_OF_NODES = "audit|faults|hostile|queue";
/** What a mutant leaves running would fail the tests of the next one. */
const alone = { maxTestRunnerReuse: 1 };

/** What both parts of audits need. */
const audits = {
  // With more, some mutants would seem to time out.
  concurrency: 15,
  timeoutMS: 45_000,
  timeoutFactor: 1.25,
  // No score is required until both have it: docs/testing.md.
  thresholds: { high: 95, low: 90, break: null },
  incremental: true,
  incrementalFile: `reports/mutation-${part}-incremental.json`,
  // A mutant that never stops reading must not take the machine's memory.
  testRunnerNodeArgs: ["--max-old-space-size=512"],
  ...alone,
  env: {
    // In one of the tests, a connection can hang for 20 seconds.
    TEST_LIMIT: "25000",
    // Only the queue in memory: each mutant would wait for the start of the servers.
    ENGINES: "",
    // The same stories of machines for each mutant.
    RUNS: "15",
    SEED: "77",
    // A folder in memory, so that no test waits for the disk.
    ...(existsSync("/dev/shm") && { TMPDIR: process.env.TMPDIR ?? "/dev/shm" }),
  },
};

/**
 * What is changed, by which tests, and what differs from the options below. Most tests wait for most of the time: two cores do the
 * work of many processes.
 */
const parts = {
  src: {
    mutate: ["src/**/*.ts", "!src/audit/**"],
    spec: [...tests([`!(${LAST})`, `@(${LAST})`], "src/"), ...tests(["!(response)", "response"], "src/http/")],
    // Without the tests that take as long as all others together, or wait for them.
    grep: "^(?!.*(\\d\\d,000|a million values|bounded memory|no rejection unhandled))",
    concurrency: 10,
    timeoutMS: 15_000,
    env: { TEST_LIMIT: "40000" },
  },
  /** The tests that run the nodes in a Node-RED inside the test process, but for one that takes 40 seconds. */
  nodes: {
    mutate: ["nodes/*.ts"],
    spec: tests([`!(shared-*|lost|${LAST_OF_NODES})`, `@(${LAST_OF_NODES})`], "nodes/"),
    concurrency: 16,
    env: { TEST_LIMIT: "60000" },
    ...alone,
  },
  audit: {
    mutate: ["src/audit/*.ts"],
    spec: [
      ...tests(["state", "rows", "progress", "canceled", "@(clock|failures|requests)"], "src/audit/"),
      ...tests(["files", "audit", "lock"], "src/audit/"),
      ...tests(["sidebar"], "nodes/"),
      ...tests(["network", "letters"], "src/audit/"),
    ],
    ...audits,
  },
  /** What machines share, but for the clients of Redis and PostgreSQL: the queue is in memory. */
  shared: {
    mutate: ["src/audit/shared/{host,letter,log,member,post,store,term}.ts"],
    spec: tests(["network", "stores", "letters"], "src/audit/"),
    ...audits,
  },
};

const { spec, grep = "", env, ...options } = parts[part];
// Of `env`, TEST_LIMIT ends a test that a mutant leaves waiting.
Object.assign(process.env, env);
export default {
  tsconfigFile: "none",
  buildCommand: "npx tsc",
  testRunner: "mocha",
  plugins: ["@stryker-mutator/mocha-runner"],
  mochaOptions: { "no-config": true, "no-package": true, require: hooks, spec, grep },
  coverageAnalysis: "perTest",
  ignoreStatic: true,
  timeoutMS: 30_000,
  dryRunTimeoutMinutes: 20,
  tempDirName: "reports/mutation",
  reporters: ["clear-text", "json", "progress-append-only"],
  thresholds: { high: 95, low: 90, break: 90 },
  jsonReporter: { fileName: part === "src" ? "reports/mutation.json" : `reports/mutation-${part}.json` },
  ...options,
};
