import { existsSync, readFileSync } from "node:fs";

const src = JSON.parse(readFileSync(new URL("stryker.config.json", import.meta.url), "utf8"));
const specs = ["audit", "files", "letters", "lock", "network", "state"];

// Ends a test that a mutant leaves waiting: without a mutant, each takes less than three seconds.
process.env.TEST_LIMIT = "5000";
// So many stories of machines, for each of which it takes a tenth of a second.
process.env.RUNS = "15";
// A folder in memory, so that no test waits for the disk.
if (existsSync("/dev/shm")) process.env.TMPDIR ??= "/dev/shm";

/** Audits, with the tests that need neither a server nor other processes. */
export default {
  ...src,
  mutate: ["src/audit/*.ts", "src/audit/shared/{host,journal,letter,member,post,store,term}.ts"],
  mochaOptions: { ...src.mochaOptions, spec: specs.map((name) => `dist/test/src/audit/${name}.test.js`) },
  timeoutMS: 5000,
  timeoutFactor: 1,
  // What a mutant leaves running would fail the tests of the next one.
  maxTestRunnerReuse: 1,
  // A mutant that never stops reading must not take the machine's memory.
  testRunnerNodeArgs: ["--max-old-space-size=512"],
  // No score is required until all parts were measured in one run: docs/testing.md.
  thresholds: { ...src.thresholds, break: null },
  incremental: true,
  incrementalFile: "reports/mutation-audit-incremental.json",
  jsonReporter: { fileName: "reports/mutation-audit.json" },
};
