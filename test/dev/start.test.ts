import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, root, startFrom } from "../../dev/nodered.js";
import { createClient } from "../../src/client.js";
import { endGroup, isRunning } from "../support/processes.js";

const PACKAGE = "@seo-reports/node-red";
const START = join(root, "dist/dev/start.js");

/** A module from the palette that only exists on this disk. */
function userModule(folder: string, name: string): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "package.json"), JSON.stringify({ name, version: "1.0.0", "node-red": { nodes: {} } }));
  return `file:${path}`;
}

function start(cwd: string, args: string[], more: Record<string, string> = {}) {
  const { SEO_BASE_URL: _url, SEO_API_KEY: _key, ...env } = process.env;
  // Detached, it leads a group of its own, with npm and Node-RED in it.
  const child = spawn(process.execPath, [START, ...args], { cwd, env: { ...env, ...more }, detached: true });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (output.stdout += chunk));
  child.stderr.on("data", (chunk) => (output.stderr += chunk));
  let running = true;
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.once("close", (code) => {
      running = false;
      resolve({ code, ...output });
    }),
  );
  const { pid = assert.fail("npm start did not start") } = child;
  return {
    child,
    pid,
    ended,
    /** Resolves with what it has printed. */
    async until(holds: (stdout: string) => boolean): Promise<string> {
      while (!holds(output.stdout)) {
        if (!running) assert.fail(`npm start ended: ${output.stdout}${output.stderr}`);
        await sleep(5);
      }
      return output.stdout;
    },
  };
}

describe("npm start", () => {
  const cwd = mkdtempSync(join(tmpdir(), "seo-start-"));
  const userDir = join(cwd, ".sandbox");
  const lock = join(userDir, "start.pid");
  let groups: number[] = [];
  const run = (...args: string[]) => {
    const one = start(cwd, args);
    groups.push(one.pid);
    return one;
  };
  const endAll = async () => {
    await Promise.all(groups.map(endGroup));
    groups = [];
    rmSync(lock, { force: true });
  };
  const runs = (stdout: string) => stdout.includes("Press Ctrl+C");
  const pids = () => (existsSync(lock) ? readFileSync(lock, "utf8").trim().split("\n").map(Number) : []);

  before(() => {
    mkdirSync(userDir);
    const dependencies = { "user-module": userModule(cwd, "user-module") };
    writeFileSync(join(userDir, "package.json"), JSON.stringify({ name: "mine", private: true, dependencies }));
    // As the palette manager leaves it when an earlier state of the package is installed.
    const old = { version: "1.0.0", resolved: "file:old.tgz", integrity: `sha512-${"A".repeat(86)}==` };
    const packages = { "": { name: "mine", dependencies }, [`node_modules/${PACKAGE}`]: old };
    writeFileSync(join(userDir, "package-lock.json"), JSON.stringify({ name: "mine", lockfileVersion: 3, packages }));
  });
  after(() => rmSync(cwd, { recursive: true, force: true }));

  describe("in a folder with modules", () => {
    let first: ReturnType<typeof run>;
    before(async () => {
      first = run();
      await first.until(runs);
    });
    after(endAll);

    it("keeps the modules that the user has installed", () => {
      const { dependencies } = JSON.parse(readFileSync(join(userDir, "package.json"), "utf8"));
      assert.deepEqual(Object.keys(dependencies).sort(), [PACKAGE, "bullmq", "ioredis", "user-module"]);
      for (const name of Object.keys(dependencies))
        assert.ok(existsSync(join(userDir, "node_modules", name, "package.json")), name);
    });

    it("updates the lock file, so that the palette manager does not restore an earlier state of the package", () => {
      const integrity = (file: string) =>
        JSON.parse(readFileSync(join(userDir, file), "utf8")).packages[`node_modules/${PACKAGE}`].integrity;
      assert.equal(integrity("package-lock.json"), integrity("node_modules/.package-lock.json"));
    });

    it("prints the warnings of nodes, but not those of Node-RED's start", async () => {
      const holds = (pattern: RegExp) => first.until((stdout) => pattern.test(stdout));
      const begun = await holds(/open \S+/);
      const nodes = [
        { id: "once", type: "inject", once: true, onceDelay: 0, props: [], wires: [["warns"]] },
        { id: "warns", type: "function", func: 'node.warn("Careful.");', wires: [[]] },
      ];
      const [, url] = /open (\S+)/.exec(begun) ?? [];
      const headers = { "content-type": "application/json" };
      await fetch(`${url}/flow`, { method: "POST", headers, body: JSON.stringify({ label: "Warns", nodes }) });
      assert.doesNotMatch(await holds(/\[warn\] \[function:.*\] Careful\.\n/), /Projects/);
    });

    it("fails with a message while another one uses the folder", async () => {
      const { code, stdout, stderr } = await run().ended;
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, new RegExp(`^The folder ${userDir} is in use by process ${first.pid}, `));
      assert.ok(isRunning(first.pid));
    });

    it("says that Node-RED has ended", async () => {
      for (const pid of pids().filter(isRunning)) if (pid !== first.pid) process.kill(pid, "SIGKILL");
      assert.match((await first.ended).stdout, /\nNode-RED has ended\. To start it again, run npm start\.\n$/);
    });
  });

  describe("alone", () => {
    afterEach(endAll);

    async function endsAt(signal: NodeJS.Signals, one: ReturnType<typeof run>): Promise<void> {
      one.child.kill(signal);
      const { code, stdout, stderr } = await one.ended;
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(stdout, /\nStopped\.\n$/);
      assert.ok(!isRunning(-one.pid), "processes are left");
      assert.ok(!existsSync(lock), "the lock is left");
    }

    it("fails while the instance of a killed one still uses the folder, and starts and ends after that has ended", async () => {
      const killed = run();
      await killed.until(runs);
      assert.equal(pids()[0], killed.pid);
      const lastReport = () => Number(readFileSync(join(userDir, "last-report"), "utf8"));
      const taken = lastReport();
      killed.child.kill("SIGKILL");
      await killed.ended;
      // An instance that found its port in use is in the lock, too, but has ended.
      const [nodeRed = assert.fail("no instance in the lock")] = pids().filter(isRunning);
      const { code, stderr } = await run().ended;
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`in use by process ${nodeRed}, `));
      process.kill(nodeRed, "SIGTERM");
      while (pids().some(isRunning)) await sleep(20);
      const next = run();
      const [, baseUrl = ""] = /sandbox at (\S+)/.exec(await next.until(runs)) ?? [];
      const client = createClient({ baseUrl, apiKey: "sandbox-key" });
      const { body } = await client.call("seo-report-list", { sort_by: "id", sort: "asc" });
      await client.close();
      assert.equal((body as { data: { id: number }[] }).data[0]?.id, taken + 1);
      assert.equal(lastReport(), taken + 1_000_000);
      await endsAt("SIGINT", next);
    });

    const moments: [moment: string, reached: (stdout: string) => boolean, signal: NodeJS.Signals][] = [
      ["npm installs the package", (stdout) => stdout !== "", "SIGTERM"],
      ["Node-RED starts", () => pids().length > 1, "SIGINT"],
    ];
    for (const [moment, reached, signal] of moments)
      it(`ends with all its processes at a ${signal} while ${moment}`, async () => {
        const one = run();
        await one.until(reached);
        await endsAt(signal, one);
      });
  });

  it("gives each of two instances its own port if both start at once", async () => {
    const port = await freePort();
    const running = await Promise.all(["one", "two"].map((name) => startFrom(port, join(cwd, name))));
    const urls = running.map(({ url }) => url);
    await Promise.all(running.map((one) => one.stop()));
    assert.equal(new Set(urls).size, 2, `${urls}`);
  });

  it("describes its options, with defaults that show how requests wait and fail", async () => {
    const { code, stdout } = await run("--help").ended;
    assert.equal(code, 0);
    assert.match(stdout, /^Usage: npm start -- \[options\]/);
    for (const name of ["latency", "store-latency", "rate", "fail"])
      assert.match(stdout, new RegExp(`--${name} .*\\(default [1-9]`));
    assert.ok(!existsSync(lock));
  });
});
