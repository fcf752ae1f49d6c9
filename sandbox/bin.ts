#!/usr/bin/env node
import { runSandbox } from "./command.js";

const sandbox = await runSandbox(process.argv.slice(2));
if (sandbox) {
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void sandbox.close());
  console.log(`The sandbox is running. All reports are made up.

  Base URL  ${sandbox.url}
  API key   ${sandbox.apiKey}

Enter both in the SEO service node. Press Ctrl+C to stop.`);
}
