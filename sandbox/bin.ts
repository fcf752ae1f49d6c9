#!/usr/bin/env node
import { parseArgs } from "node:util";
import { type Sandbox, type SandboxOptions, startSandbox } from "./server.js";

const PORTS_TO_TRY = 20;

const HELP = `Usage: seo-reports-sandbox [options]

A local stand-in for the SEO reporting service. It listens on 127.0.0.1, keeps all data in memory,
and does not fetch any pages: all reports and scores are made up.

  --port <number>     port to listen on; if it is in use, the next free one (default 8787; 0 = any)
  --key <text>        API key to accept (default sandbox-key)
  --reports <number>  number of reports to start with (default 36)
  --live              create, regenerate and delete reports every few seconds
  --help              show this text
`;

function wholeNumber(name: string, text: string, largest: number): number {
  if (!/^\d+$/.test(text) || Number(text) > largest)
    throw new TypeError(`--${name} must be a whole number from 0 to ${largest}.`);
  return Number(text);
}

/** The options of the command line, or nothing when help was asked for. */
function readOptions(): (SandboxOptions & { port: number }) | undefined {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "8787" },
      key: { type: "string", default: "sandbox-key" },
      reports: { type: "string", default: "36" },
      live: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  if (!/^[\x21-\x7e]+$/.test(values.key))
    throw new TypeError("--key must be printable ASCII characters, without spaces.");
  return {
    port: wholeNumber("port", values.port, 65_535),
    apiKey: values.key,
    reports: wholeNumber("reports", values.reports, 1_000_000),
    live: values.live,
  };
}

async function startOnFreePort(options: SandboxOptions & { port: number }): Promise<Sandbox> {
  const last = Math.min(options.port + PORTS_TO_TRY, 65_535);
  for (let port = options.port; ; port++) {
    try {
      return await startSandbox({ ...options, port });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || port >= last) throw error;
      console.log(`Port ${port} is in use; trying ${port + 1}.`);
    }
  }
}

try {
  const options = readOptions();
  if (options) {
    const sandbox = await startOnFreePort(options);
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void sandbox.close());
    console.log(`The sandbox is running. All reports are made up.

  Base URL  ${sandbox.url}
  API key   ${sandbox.apiKey}

Enter both in the SEO service node. Press Ctrl+C to stop.`);
  } else {
    console.log(HELP);
  }
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\nRun with --help for usage.`);
  process.exitCode = 1;
}
