import type { Case } from "./cases.js";
import { deadUrl, type FaultyServer, listen, signature } from "./faulty.js";
import { startProxy } from "./proxy.js";
import { fine, type Scenario } from "./scenarios.js";

/** The number of retries in the tests of the scenarios. */
export const RETRIES = 1;

/** The servers of a scenario. */
export interface Scene {
  server: FaultyServer;
  /** The base URL for the requests. */
  baseUrl: string;
  /** The proxy for the requests, if any. */
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

/** The outcome of a case in a scenario. */
export interface Row {
  code: string | undefined;
  statusCode: number | undefined;
  uncertain: boolean | undefined;
  attempts: number;
  /** Requests that the server received. */
  requests: number;
  payloads: unknown[];
}

/** The required outcome of a case in a scenario. */
export function expected(scenario: Scenario, { row, once }: Case, name: string): Row {
  const { code, status, transient, acted = false, empty, unseen } = scenario;
  const repeats = transient && !(once && acted);
  const recovers = repeats && name.includes("then success");
  const attempts = repeats ? 1 + RETRIES : 1;
  const common = { attempts, requests: unseen ? 0 : attempts };
  if (code !== undefined && !recovers && !(empty && row.deletes))
    return { ...common, code, statusCode: status, uncertain: row.method !== "GET" && acted, payloads: [] };
  const said = "payload" in scenario ? scenario.payload : fine;
  const payloads = [empty ? null : said];
  return { ...common, code: undefined, statusCode: undefined, uncertain: undefined, payloads };
}

/** How often the server received a case's request. */
export const seen = ({ requests }: FaultyServer, { request }: Case) =>
  requests.filter((received) => signature(received) === signature(request)).length;
