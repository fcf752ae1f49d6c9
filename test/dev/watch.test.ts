import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../dev/nodered.js";
import { openFolder } from "../support/opened.js";
import { endGroup } from "../support/processes.js";

/** The files that the build and `npm start` read. */
const PARTS = [
  ...["src", "nodes", "sandbox", "dev", "test", "icons", "examples", "dist"],
  ...["package.json", "tsconfig.json", "README.md"],
];

describe("npm run dev", () => {
  const { path: folder, close: remove } = openFolder();
  let child: ChildProcess;
  let output = "";
  before(() => {
    for (const part of PARTS) cpSync(join(root, part), join(folder, part), { recursive: true });
    for (const stale of ["src/gone.js", "src/gone.d.ts", "nodes/gone.html"])
      writeFileSync(join(folder, "dist", stale), "");
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const args = [join(folder, "dist/dev/watch.js"), "--port", "0"];
    // Detached, it leads a group of its own, with all that it starts.
    child = spawn(process.execPath, args, { cwd: folder, detached: true });
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (output += chunk));
  });
  after(async () => {
    await endGroup(Number(child.pid));
    remove();
  });

  const printed = async (text: string) => {
    while (!output.includes(text)) await sleep(50);
    return output;
  };
  const edit = (from: string, to: string) => {
    output = "";
    const file = join(folder, "src/operations.ts");
    // Saves as many editors do: into a new file, which takes the place of the old one.
    writeFileSync(`${file}~`, readFileSync(file, "utf8").replace(from, to));
    renameSync(`${file}~`, file);
  };
  /** The help of the Node-RED that has started. */
  const help = async () => {
    const [, url] = /open (http\S+)/.exec(await printed("Press Ctrl+C")) ?? [];
    return (await fetch(`${url}/nodes`, { headers: { accept: "text/html" } })).text();
  };

  it("builds first, and removes from dist what has lost its source, but nothing else", async () => {
    await printed("Press Ctrl+C");
    const files = (of: string) => readdirSync(join(of, "dist"), { recursive: true, withFileTypes: true });
    const names = (of: string) => files(of).flatMap((one) => (one.isFile() ? [one.name] : []));
    assert.deepEqual(names(folder).sort(), names(root).sort());
  });

  it("restarts Node-RED with what has changed", async () => {
    const [old, now] = ["Gets a report by its ID.", "Gets one report."];
    assert.ok((await help()).includes(old));
    edit(old, now);
    assert.ok((await help()).includes(now));
  });

  it("prints the compiler's errors and keeps Node-RED running", async () => {
    const before = output;
    edit('help: "Gets one report."', "help: 1");
    assert.match(await printed("The build failed."), /operations\.ts.*error TS2322/);
    output = before;
    assert.ok((await help()).includes("Gets one report."));
  });

  it("ends with all its processes at a signal while it builds", async () => {
    edit("help: 1", 'help: "Gets a report."');
    const built = join(folder, "dist/src/operations.js");
    while (!readFileSync(built, "utf8").includes("Gets a report.")) await sleep(5);
    child.kill("SIGTERM");
    // The output of npm closes after the last process that it has started.
    const [code] = await once(child, "close");
    assert.equal(code, 0);
  });
});
