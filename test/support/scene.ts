import type { Case } from "./cases.js";
import { deadUrl, type FaultyServer, listen, signature } from "./faulty.js";
import { startProxy } from "./proxy.js";
import { fine, type Scenario } from "./scenarios.js";

/** How often the tests of the scenarios send again what failed. */
export const RETRIES = 1;

/** A scenario as it is set up. */
export interface Scene {
  server: FaultyServer;
  /** What is asked. */
  baseUrl: string;
  /** The proxy that it is asked through, if any. */
  proxyUrl: string | undefined;
  close(): Promise<void>;
}

export async function setUp({ behave, server: how, proxy: kind }: Scenario): Promise<Scene> {
  const server = await listen(behave, how === "none" ? {} : how);
  const works = kind !== undefined && kind !== "down";
  const proxy = works ? await startProxy(typeof kind === "function" ? kind : undefined) : undefined;
  return {
    server,
    baseUrl: how === "none" ? deadUrl : server.url,
    proxyUrl: kind && (proxy?.url ?? deadUrl),
    async close() {
      await server.close();
      await proxy?.close();
    },
  };
}

/** What is known of a case in a scenario in the end. */
export interface Row {
  code: string | undefined;
  statusCode: number | undefined;
  uncertain: boolean | undefined;
  attempts: number;
  /** Requests that the server saw. */
  requests: number;
  payloads: unknown[];
}

/** What must become of a case in a scenario. */
export function expected(scenario: Scenario, { row, idempotent }: Case, name: string): Row {
  const { code, status, transient, acted = false, empty, unseen } = scenario;
  const repeats = transient && (idempotent || !acted);
  const recovers = repeats && name.includes("then well");
  const attempts = repeats ? 1 + RETRIES : 1;
  const common = { attempts, requests: unseen ? 0 : attempts };
  if (code !== undefined && !recovers && !(empty && row.deletes))
    return { ...common, code, statusCode: status, uncertain: row.method !== "GET" && acted, payloads: [] };
  const said = "payload" in scenario ? scenario.payload : fine;
  const payloads = [empty ? null : said];
  return { ...common, code: undefined, statusCode: undefined, uncertain: undefined, payloads };
}

/** How often the server saw a case's request. */
export const seen = ({ requests }: FaultyServer, { request }: Case) =>
  requests.filter((received) => signature(received) === signature(request)).length;
