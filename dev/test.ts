import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "./nodered.js";

/** `npm run test:one -- test/src/lists.test.ts`: runs test files by the paths of their sources. Other arguments are mocha's. */
const args = process.argv.slice(2).map((arg) => arg.replace(/^(?:\.\/)?(test\/.*)\.ts$/, "dist/$1.js"));
const mocha = join(root, "node_modules/mocha/bin/mocha.js");
const { status } = spawnSync(process.execPath, [mocha, "--fail-zero", ...args], { cwd: root, stdio: "inherit" });
process.exitCode = status ?? 1;
