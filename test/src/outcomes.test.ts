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

/** One case for each combination of method and `once`. `faults` sends every case, through the nodes. */
const kinds = [...new Map(cases.map((one) => [`${one.row.method} ${one.once}`, one])).values()];

/** Scenarios that take seconds run in parallel. */
const takesTime = ({ code, status }: Scenario) => code === "SEO_TIMEOUT" || status === 429 || status === 503;

const optionsFor = ({ settings = {}, code }: Scenario, { baseUrl, proxyUrl }: Scene): ClientOptions => ({
  baseUrl,
  apiKey: "key-of-tests",
  retries: String(RETRIES),
  timeout: code === "SEO_TIMEOUT" ? "3" : "600",
  tls: "tls" in settings ? { ca: tlsFile("ca") } : undefined,
  proxy: proxyUrl === undefined ? undefined : { url: proxyUrl, except: [] },
});

/** The outcome of one case. Each case has its own client, because a 429 pauses all requests of a client. */
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

describe("A request in any scenario", () => {
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
    const rows = await Promise.all(kinds.map((one) => observe(options, one, scene.server))).finally(scene.close);
    const wanted = kinds.map((one) => expected(scenario, one, name));
    assert.deepEqual(rows, wanted, `${name}, ${kinds.map((one) => one.name).join(", ")}`);
  }

  const table = Object.entries(scenarios(other.url));

  for (const one of table.filter(([, scenario]) => !takesTime(scenario)))
    it(`has the expected outcome: ${one[0]}`, () => holds(one));

  it("has the expected outcome in each scenario that takes seconds", async () => {
    await Promise.all(table.filter(([, scenario]) => takesTime(scenario)).map(holds));
  });
});
