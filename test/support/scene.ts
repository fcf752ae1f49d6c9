import type { Case } from "./cases.js";
import { type FaultyServer, signature } from "./faulty.js";
import { fine, type Scenario } from "./scenarios.js";

/** How often the tests of the scenarios send again what failed. */
export const RETRIES = 1;

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
export function expected(scenario: Scenario, { row, once }: Case, name: string): Row {
  const { code, status, transient, acted = false, empty, unseen } = scenario;
  const repeats = transient && !(once && acted);
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
