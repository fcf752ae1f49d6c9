#!/usr/bin/env node
import { parseArgs } from "node:util";
import { type Sandbox, type SandboxOptions, startSandbox } from "./server.js";

const PORTS_TO_TRY = 20;

const HELP = `Usage: seo-reports-sandbox [options]

A stand-in of the SEO reporting service, on this machine only, with everything in memory.
It fetches no page: reports, scores and results are invented by the sandbox.

  --port <number>     port to listen on, or the next free one (default 8787; 0 = any free one)
  --key <text>        API key that it takes (default sandbox-key)
  --reports <number>  how many reports there are to begin with (default 36)
  --live              let reports come, change and go by themselves
  --help              show this text
`;

function wholeNumber(name: string, text: string, largest: number): number {
  if (!/^\d+$/.test(text) || Number(text) > largest) throw new TypeError(`--${name} must be 0 to ${largest}.`);
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
  if (!/^[\x21-\x7e]+$/.test(values.key)) throw new TypeError("--key must be visible ASCII characters, at least one.");
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
      console.log(`Port ${port} is taken; trying ${port + 1}.`);
    }
  }
}

try {
  const options = readOptions();
  if (options) {
    const sandbox = await startOnFreePort(options);
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void sandbox.close());
    console.log(`The sandbox of the SEO reporting service is running; all that it reports is invented.

  Base URL  ${sandbox.url}
  API key   ${sandbox.apiKey}

Put both into the config node. Ctrl-C stops it.`);
  } else {
    console.log(HELP);
  }
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\nTry --help.`);
  process.exitCode = 1;
}
