import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../../dev/nodered.js";

const dist = join(root, "dist");
const files = () =>
  readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((file) => statSync(join(dist, file)).isFile());

describe("The build", () => {
  it("removes what has lost its source, and nothing else", () => {
    const before = files();
    const stale = ["dev/gone.js", "dev/gone.d.ts", "nodes/editor/gone/gone.html"].map((file) => join(dist, file));
    for (const file of stale) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "");
    }
    execFileSync(process.execPath, [join(dist, "nodes/editor/build.js")]);
    assert.deepEqual(stale.filter(existsSync), []);
    assert.deepEqual(files(), before);
  });
});
