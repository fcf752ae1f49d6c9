import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";

const BIN = fileURLToPath(new URL("../../sandbox/bin.js", import.meta.url));
const HEADERS = { accept: "application/json", authorization: "Bearer k3y" };

describe("the seo-reports-sandbox command", () => {
  let other: Sandbox;
  before(async () => {
    other = await startSandbox();
  });
  after(() => other.close());

  /** Stops the command when it is running and `use` has ended. */
  async function run(args: string[], use = async (_url: string) => {}) {
    const child = spawn(process.execPath, [BIN, ...args]);
    const result = { code: 0, stdout: "", stderr: "" };
    child.stderr.on("data", (chunk) => (result.stderr += chunk));
    let used = Promise.resolve();
    child.stdout.on("data", (chunk) => {
      result.stdout += chunk;
      const [, url = ""] = /Base URL {2}(\S+).*Ctrl\+C/s.exec(result.stdout) ?? [];
      if (url) used = use(url).finally(() => child.kill("SIGINT"));
    });
    [result.code] = await once(child, "close");
    await used;
    return result;
  }

  it("uses the next port if one is taken, prints URL and key, and stops on SIGINT", async () => {
    const args = ["--port", String(other.port), "--key", "k3y", "--reports", "5", "--live"];
    const { code, stdout, stderr } = await run(args);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, new RegExp(`Port ${other.port} is in use; trying ${other.port + 1}`));
    assert.match(stdout, /Base URL {2}http:\/\/127\.0\.0\.1:\d+\n {2}API key {3}k3y/);
  });

  it("applies --reports, --latency, --store-latency and --rate", async () => {
    const args = ["--port", "0", "--key", "k3y", "--reports", "5"];
    await run([...args, "--latency", "100-150", "--store-latency", "300", "--rate", "2"], async (url) => {
      const timed = async (method: string, body?: URLSearchParams) => {
        const before = performance.now();
        const response = await fetch(`${url}/api/v1/reports`, { method, headers: HEADERS, body: body ?? null });
        return { response, ms: performance.now() - before };
      };
      const listed = await timed("GET");
      const { meta } = (await listed.response.json()) as { meta: { total: number } };
      assert.equal(meta.total, 5);
      assert.ok(listed.ms >= 99, `${listed.ms} ms`);
      const stored = await timed("POST", new URLSearchParams({ url: "https://example.com" }));
      assert.equal(stored.response.status, 201);
      assert.ok(stored.ms >= 299, `${stored.ms} ms`);
      assert.equal((await timed("GET")).response.status, 429);
    });
  });

  it("applies --fail", async () => {
    const { code } = await run(["--port", "0", "--key", "k3y", "--fail", "100"], async (url) => {
      const response = await fetch(`${url}/api/v1/reports`, { headers: HEADERS }).catch(() => undefined);
      assert.ok(!response?.ok);
    });
    assert.equal(code, 0);
  });

  it("describes all its options", async () => {
    const { code, stdout } = await run(["--help"]);
    assert.equal(code, 0);
    for (const name of ["port", "key", "reports", "live", "latency", "store-latency", "rate", "fail"])
      assert.match(stdout, new RegExp(`^ {2}--${name} `, "m"));
    assert.ok(stdout.split("\n").every((line) => line.length <= 100));
  });

  const mistakes: [args: string[], message: RegExp][] = [
    [["--port", "70000"], /--port must be a whole number from 0 to 65535/],
    [["--key", "a b"], /--key must contain only printable ASCII/],
    [["--latency", "fast"], /--latency must be milliseconds or a range/],
    [["--fail", "101"], /--fail must be a whole number from 0 to 100/],
    [["--bogus"], /--bogus/],
    [["extra"], /extra/],
  ];
  for (const [args, message] of mistakes) {
    it(`rejects ${args.join(" ")}`, async () => {
      const { code, stdout, stderr } = await run(args);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, message);
    });
  }
});
