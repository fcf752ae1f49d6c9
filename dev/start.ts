import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startSandbox } from "../sandbox/server.js";
import { freePort, installPackage, nodeRed, root, startNodeRed } from "./nodered.js";

/** `npm start`: Node-RED with the package and a first flow, beside the sandbox or a real service. */
const userDir = join(root, ".sandbox");
const SERVICE = "seo-examples-service";
const say = (line: string) => console.log(line);

const { SEO_BASE_URL, SEO_API_KEY } = process.env;
const real = SEO_BASE_URL !== undefined && SEO_API_KEY !== undefined;
if (!real && (SEO_BASE_URL || SEO_API_KEY))
  say("Using the sandbox. To use a real service, set both SEO_BASE_URL and SEO_API_KEY.");

const { version } = nodeRed();
say(`Installing the package into .sandbox, as Node-RED's palette would…`);
await installPackage(userDir);
const flows = join(userDir, "flows.json");
if (!existsSync(flows)) {
  copyFileSync(join(root, "examples/01 - First report.json"), flows);
  writeFileSync(join(userDir, "flows_cred.json"), JSON.stringify({ [SERVICE]: { apiKey: "${SEO_API_KEY}" } }));
}
const sandbox = real
  ? undefined
  : await startSandbox({ port: await freePort(8787, say), live: process.argv.includes("--live") });
const env = sandbox && { SEO_BASE_URL: sandbox.url, SEO_API_KEY: sandbox.apiKey };
const running = await startNodeRed(userDir, {
  port: await freePort(1880, say),
  ...(env && { env }),
  print: (line) => /\[error\]/.test(line) && say(line),
});
say(`
Node-RED ${version} with the SEO report nodes: open ${running.url}
Click the button of an Inject node. The response appears in the debug sidebar.

${sandbox ? `Service: sandbox at ${sandbox.url} (API key ${sandbox.apiKey}). All reports are made up.` : `The service is ${SEO_BASE_URL}.`}
Your flow is saved in .sandbox. Delete that folder to start over. Press Ctrl+C to stop.`);

let stopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, async () => {
    if (stopping) return;
    stopping = true;
    await Promise.all([running.stop(), sandbox?.close()]);
    say("Stopped.");
  });
}
running.process.once("exit", () => {
  if (!stopping) void sandbox?.close();
});
