#!/usr/bin/env node
import { readOptions, startOnFreePort } from "./command.js";
import { startSandbox } from "./server.js";

try {
  const options = readOptions(process.argv.slice(2));
  if (options) {
    const sandbox = await startOnFreePort(options.port, (port) => startSandbox({ ...options, port }));
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void sandbox.close());
    console.log(`The sandbox is running. All reports are made up.

  Base URL  ${sandbox.url}
  API key   ${sandbox.apiKey}

Enter both in the SEO service node. Press Ctrl+C to stop.`);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
