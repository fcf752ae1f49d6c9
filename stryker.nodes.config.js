import { readFileSync } from "node:fs";

const src = JSON.parse(readFileSync(new URL("stryker.config.json", import.meta.url), "utf8"));

/** The nodes, with the tests that run them in a Node-RED inside the test process, which each mutant gets anew. */
export default {
  ...src,
  mutate: ["nodes/*.ts"],
  mochaOptions: { ...src.mochaOptions, spec: ["dist/test/nodes/*.test.js"] },
  maxTestRunnerReuse: 1,
  jsonReporter: { fileName: "reports/mutation-nodes.json" },
};
