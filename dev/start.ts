import { once } from "node:events";
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { readOptions, startOnFreePort } from "../sandbox/command.js";
import { startSandbox } from "../sandbox/server.js";
import { lockFolder } from "./lock.js";
import { installPackage, nodeRed, root, settings, startFrom } from "./nodered.js";
import { whenOrphaned } from "./orphan.js";

/** `npm start`: Node-RED with the package and a first flow, beside the sandbox or a real service. */
const userDir = resolve(".sandbox");
const SERVICE = "seo-examples-service";
/** Slow and faulty enough to show every status: a request in flight, waiting, a retry, an error. */
const SANDBOX = { latency: "100-400", "store-latency": "1000-2500", rate: "300", fail: "5" };
/** Each start has as many IDs for its reports, which no later one uses again, however it ends. */
const IDS = 1_000_000;
const say = (line: string) => console.log(line);

/** Ends npm, Node-RED and the sandbox, whichever runs. This process ends after the last of them. */
const stopping = new AbortController();
const { signal } = stopping;
for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => stopping.abort());
whenOrphaned(() => stopping.abort());
process.once("exit", () => signal.aborted && say("Stopped."));

/** Opens the debug sidebar, in which the first click shows its response. Node-RED opens another one. */
const OPEN_DEBUG = `const timer = setInterval(() => {
  if (!window.RED?.workspaces?.active?.() || !document.querySelector(".red-ui-debug-content")) return;
  clearInterval(timer);
  RED.sidebar.show("debug");
}, 100);
`;

async function start(): Promise<void> {
  const { PORT = "1880" } = process.env;
  const options = readOptions(process.argv.slice(2), SANDBOX, "npm start --");
  if (!options)
    return say("The environment variable PORT is the port of Node-RED, or the first one to try (default 1880).");
  if (!/^\d{1,5}$/.test(PORT)) throw new Error("The environment variable PORT must be a number.");
  const lock = lockFolder(userDir);
  const { SEO_BASE_URL, SEO_API_KEY, SEO_QUEUE_URL = "redis://127.0.0.1:6379" } = process.env;
  const real = SEO_BASE_URL !== undefined && SEO_API_KEY !== undefined;
  if (!real && (SEO_BASE_URL || SEO_API_KEY))
    say("Using the sandbox. To use a real service, set both SEO_BASE_URL and SEO_API_KEY.");

  say("Installing the package into .sandbox, as the palette manager would…");
  await installPackage(userDir, ["bullmq", "ioredis"], signal);
  const flows = join(userDir, "flows.json");
  if (!existsSync(flows)) {
    copyFileSync(join(root, "examples/01 - First report.json"), flows);
    copyFileSync(join(root, "examples/urls.csv"), join(userDir, "urls.csv"));
    writeFileSync(join(userDir, "flows_cred.json"), JSON.stringify({ [SERVICE]: { apiKey: "${SEO_API_KEY}" } }));
  }
  const script = join(userDir, "debug-sidebar.js");
  writeFileSync(script, OPEN_DEBUG);
  // An audit that continues would otherwise regenerate other pages' reports.
  const last = join(userDir, "last-report");
  const lastId = existsSync(last) ? Number(readFileSync(last, "utf8")) || 0 : 0;
  if (!real) writeFileSync(last, String(lastId + IDS));
  const startOn = (port: number) => startSandbox({ ...options, lastId, port });
  const sandbox = real ? undefined : await startOnFreePort(options.port, startOn);
  try {
    const running = await startFrom(Number(PORT), userDir, {
      more: { editorTheme: { ...settings.editorTheme, page: { scripts: [script] } } },
      env: { SEO_QUEUE_URL, ...(sandbox && { SEO_BASE_URL: sandbox.url, SEO_API_KEY: sandbox.apiKey }) },
      print: (line) => /\[error\]|\[warn\] \[|Waiting for the debugger/.test(line) && say(line),
      spawned: lock.share,
      signal,
    });
    const service = sandbox
      ? `Service: sandbox at ${sandbox.url} (API key ${sandbox.apiKey}). All reports are made up, and gone after a restart.
It responds slowly, limits the rate, and some requests fail. To change that, see: npm start -- --help`
      : `Service: ${SEO_BASE_URL}`;
    say(`
Node-RED ${nodeRed().version} with the SEO report nodes: open ${running.url}
Click the button of an Inject node. The response appears in the debug sidebar.

${service}
Your flow is saved in .sandbox. Delete that folder to start over. Press Ctrl+C to stop.`);
    await once(running.process, "exit");
    if (!signal.aborted) say("Node-RED has ended. To start it again, run npm start.");
  } finally {
    await sandbox?.close();
  }
}

start().catch((error: unknown) => {
  if (signal.aborted) return;
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
