import assert from "node:assert/strict";
import { type ClientOptions, createClient } from "../src/client.js";
import type { SeoError } from "../src/errors.js";
import { type Case, cases } from "./support/cases.js";
import { expected, RETRIES, type Row, seen } from "./support/expected.js";
import { deadUrl, type FaultyServer, listen, tlsFile } from "./support/faulty.js";
import { startProxy } from "./support/proxy.js";
import { type Scenario, scenarios } from "./support/scenarios.js";
import { stopBackOff } from "./support/time.js";

const other = await listen((socket) => socket.end());

/** One case of each kind that the rules tell apart; `faults` sends all of them, through the nodes. */
const kinds = [...new Map(cases.map((one) => [`${one.row.method} ${one.once}`, one])).values()];

/** Those that take seconds run side by side. */
const takesTime = ({ code, status }: Scenario) => code === "SEO_TIMEOUT" || status === 429 || status === 503;

/** Sets a scenario up: its server, and the options of a client that asks it. */
async function setUp({ behave, server: how, settings, proxy: kind, code }: Scenario) {
  const server = await listen(behave, how === "none" ? {} : how);
  const works = kind !== undefined && kind !== "down";
  const proxy = works ? await startProxy(typeof kind === "function" ? kind : undefined) : undefined;
  const options: ClientOptions = {
    baseUrl: how === "none" ? deadUrl : server.url,
    apiKey: "key-of-tests",
    retries: String(RETRIES),
    timeout: code === "SEO_TIMEOUT" ? "1" : "600",
    tls: settings && "tls" in settings ? { ca: tlsFile("ca") } : undefined,
    proxy: kind && { url: proxy?.url ?? deadUrl, except: [] },
  };
  const close = async () => {
    await server.close();
    await proxy?.close();
  };
  return { server, options, close };
}

/** How one case ends for a client of its own, so that no case waits for another's sake. */
async function observe(options: ClientOptions, one: Case, server: FaultyServer): Promise<Row> {
  const client = createClient(options);
  try {
    const { attempts, body } = await client.call(one.type, one.input);
    const requests = seen(server, one);
    return { code: undefined, statusCode: undefined, uncertain: undefined, attempts, requests, payloads: [body] };
  } catch (cause) {
    const { code, statusCode, uncertain, attempts } = (cause as SeoError).toJSON();
    return { code, statusCode, uncertain, attempts, requests: seen(server, one), payloads: [] };
  } finally {
    await client.close();
  }
}

describe("A request", function () {
  this.timeout(15_000);
  let goOn = () => {};

  before(() => {
    goOn = stopBackOff();
  });

  after(async () => {
    goOn();
    await other.close();
  });

  async function holds([name, scenario]: [string, Scenario]): Promise<void> {
    const { server, options, close } = await setUp(scenario);
    const rows = await Promise.all(kinds.map((one) => observe(options, one, server)));
    const wanted = kinds.map((one) => expected(scenario, one, name));
    assert.deepEqual(rows, wanted, `${name}, ${kinds.map((one) => one.name).join(", ")}`);
    await close();
  }

  const table = Object.entries(scenarios(other.url));

  for (const one of table.filter(([, scenario]) => !takesTime(scenario)))
    it(`ends as its service and its operation say: ${one[0]}`, () => holds(one));

  it("ends so when it takes its time, too", async () => {
    await Promise.all(table.filter(([, scenario]) => takesTime(scenario)).map(holds));
  });
});
