import assert from "node:assert/strict";
import { createClient } from "../../src/client.js";
import type { ClientOptions } from "../../src/config.js";
import type { SeoError } from "../../src/errors.js";
import { type Case, cases } from "../support/cases.js";
import { type FaultyServer, listen, tlsFile } from "../support/faulty.js";
import { type Scenario, scenarios } from "../support/scenarios.js";
import { expected, RETRIES, type Row, type Scene, seen, setUp } from "../support/scene.js";
import { stopBackOff } from "../support/time.js";

const other = await listen((socket) => socket.end());

/** One case of each kind that the rules tell apart; `faults` sends all of them, through the nodes. */
const kinds = [...new Map(cases.map((one) => [`${one.row.method} ${one.idempotent}`, one])).values()];

/** Those that take seconds run side by side. */
const takesTime = ({ code, status }: Scenario) => code === "SEO_TIMEOUT" || status === 429 || status === 503;

const optionsFor = ({ settings = {}, code }: Scenario, { baseUrl, proxyUrl }: Scene): ClientOptions => ({
  baseUrl,
  apiKey: "key-of-tests",
  retries: String(RETRIES),
  timeout: code === "SEO_TIMEOUT" ? "1" : "600",
  tls: "tls" in settings ? { ca: tlsFile("ca") } : undefined,
  proxy: proxyUrl === undefined ? undefined : { url: proxyUrl, except: [] },
});

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
    const scene = await setUp(scenario);
    const options = optionsFor(scenario, scene);
    const rows = await Promise.all(kinds.map((one) => observe(options, one, scene.server)));
    const wanted = kinds.map((one) => expected(scenario, one, name));
    assert.deepEqual(rows, wanted, `${name}, ${kinds.map((one) => one.name).join(", ")}`);
    await scene.close();
  }

  const table = Object.entries(scenarios(other.url));

  for (const one of table.filter(([, scenario]) => !takesTime(scenario)))
    it(`ends as its service and its operation say: ${one[0]}`, () => holds(one));

  it("ends so when it takes its time, too", async () => {
    await Promise.all(table.filter(([, scenario]) => takesTime(scenario)).map(holds));
  });
});
