import { parseArgs } from "node:util";
import { createLatency } from "./faults.js";
import type { SandboxOptions } from "./server.js";

const PORTS_TO_TRY = 20;
const MAX_LATENCY = 600_000;

/** As on the command line; blank `store-latency` and `rate` leave them out. */
const DEFAULTS = {
  port: "8787",
  key: "sandbox-key",
  reports: "36",
  latency: "0",
  "store-latency": "",
  rate: "",
  fail: "0",
};
type Defaults = Partial<typeof DEFAULTS>;

const help = (command: string, defaults: typeof DEFAULTS): string => `Usage: ${command} [options]

A local stand-in for the SEO reporting service. It listens on 127.0.0.1, keeps all data in memory,
and does not fetch any pages: all reports and scores are made up.

  --port <number>        port to listen on, or the next free one (default ${defaults.port}; 0 = any)
  --key <text>           API key to accept (default ${defaults.key})
  --reports <number>     number of reports to start with (default ${defaults.reports})
  --live                 create, regenerate and delete reports every few seconds
  --latency <ms>         response time, or a range such as 100-300 (default ${defaults.latency})
  --store-latency <ms>   the same for creating or regenerating a report (default ${defaults["store-latency"] || "--latency"})
  --rate <number>        requests per minute; others are rejected with 429 (default ${defaults.rate || "unlimited"})
  --fail <percent>       share of requests, and of pages, that fail (default ${defaults.fail})
  --help                 show this text

What fails with --fail is the same in every run:
  requests   429 or 503 with Retry-After, 500, 502, or a closed connection. With a 502 or
             a closed connection, the request takes effect, and only its response is lost.
  pages      Creating or regenerating the report of such a page always returns 500.

Sample data, without an API key: /sitemap.xml lists the 12 pages of shop.example.com,
and /shop.example.com is its home page in HTML. The report of a page with ?images=5000 in its
URL can have a failed check with as many errors.
`;

function wholeNumber(name: string, text: string, least: number, most: number): number {
  if (!/^\d+$/.test(text) || Number(text) < least || Number(text) > most)
    throw new TypeError(`--${name} must be a whole number from ${least} to ${most}.`);
  return Number(text);
}

function range(name: string, text: string): [from: number, to: number] {
  const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(text) ?? [];
  if (from === undefined || Number(from) > Number(to) || Number(to) > MAX_LATENCY)
    throw new TypeError(`--${name} must be milliseconds or a range such as 100-300, up to ${MAX_LATENCY}.`);
  return [Number(from), Number(to)];
}

/** Reads a command line. Prints the help and returns nothing if that is what it requests. */
export function readOptions(args: string[], defaults: Defaults = {}, command = "seo-reports-sandbox") {
  const all = { ...DEFAULTS, ...defaults };
  try {
    const options = parse(args, all);
    if (!options) console.log(help(command, all));
    return options;
  } catch (error) {
    throw new TypeError(`${error instanceof Error ? error.message : error}\nRun with --help for usage.`);
  }
}

const flag = { type: "boolean" } as const;
const OPTIONS = {
  ...Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, { type: "string" } as const])),
  live: flag,
  help: flag,
};

function parse(args: string[], defaults: typeof DEFAULTS): (SandboxOptions & { port: number }) | undefined {
  const values: typeof DEFAULTS & { live?: boolean; help?: boolean } = {
    ...defaults,
    ...parseArgs({ args, options: OPTIONS }).values,
  };
  if (values.help) return undefined;
  if (!/^[\x21-\x7e]+$/.test(values.key))
    throw new TypeError("--key must contain only printable ASCII characters, without spaces.");
  const latency = range("latency", values.latency);
  return {
    port: wholeNumber("port", values.port, 0, 65_535),
    apiKey: values.key,
    reports: wholeNumber("reports", values.reports, 0, 1_000_000),
    live: values.live ?? false,
    latency: createLatency(
      latency,
      values["store-latency"] ? range("store-latency", values["store-latency"]) : latency,
    ),
    ...(values.rate && { rateLimit: wholeNumber("rate", values.rate, 1, 1_000_000) }),
    fail: wholeNumber("fail", values.fail, 0, 100),
  };
}

/** Starts a server on a port or, if that is in use, on one of the next. */
export async function startOnFreePort<Server>(
  first: number,
  start: (port: number) => Promise<Server>,
): Promise<Server> {
  const last = Math.min(first + PORTS_TO_TRY, 65_535);
  for (let port = first; ; port++) {
    try {
      return await start(port);
    } catch (error) {
      if (!/EADDRINUSE|port in use/.test(String(error)) || port >= last) throw error;
      console.log(`Port ${port} is in use; trying ${port + 1}.`);
    }
  }
}
