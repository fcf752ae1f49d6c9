import assert from "node:assert/strict";
import { type Case, cases } from "./support/cases.js";
import { type FaultyServer, listen, signature, tlsFile } from "./support/faulty.js";
import { deploy, failure, type Outcome, operation, service, tlsConfig } from "./support/nodes.js";
import { type ProxyServer, startProxy } from "./support/proxy.js";
import type { FlowNode } from "./support/red.js";
import { fine, type Scenario, scenarios } from "./support/scenarios.js";

const RETRIES = 1;
/** Where redirects lead: nothing may ever come there. */
const other = await listen((socket) => socket.end());

/** One scenario as it is set up: a server, and a node for each case. */
interface Stage {
  scenario: Scenario;
  server: FaultyServer;
  proxy: ProxyServer | undefined;
  nodes: FlowNode[];
  outcomes: Map<Case, Promise<Outcome>>;
}

async function setUp(id: string, scenario: Scenario): Promise<Stage> {
  const { behave, server: options, settings, proxy: kind } = scenario;
  const server = await listen(behave, options === "none" ? {} : options);
  const proxy = kind === undefined ? undefined : await startProxy(typeof kind === "function" ? kind : undefined);
  if (options === "none") await server.close();
  if (kind === "down") await proxy?.close();
  const own = {
    retries: String(RETRIES),
    concurrency: "8",
    timeout: "100",
    ...settings,
    ...(proxy && { proxy: `${id}-proxy` }),
  };
  // Where the service asks to wait, each case has a service node of its own, so that none waits for another's sake.
  const waits = scenario.status === 429 || scenario.status === 503;
  const services = waits ? cases.map((_, i) => `${id}-service-${i}`) : [`${id}-service`];
  const nodes = [
    ...(proxy ? [{ id: `${id}-proxy`, type: "http proxy", name: "", url: proxy.url, noproxy: [] }] : []),
    ...services.map((name) => service(name, server.url, own)),
    ...cases.map(({ type, input }, i) => {
      const fixed = Object.fromEntries(Object.keys(input).map((param) => [`${param}Type`, "str"]));
      return operation(`${id}-${i}`, type, { ...input, ...fixed, service: services[i] ?? services[0] });
    }),
  ];
  return { scenario, server, proxy, nodes, outcomes: new Map() };
}

/** What the rules of issue and design say: how often a case is sent in a scenario, and whether it then succeeds. */
function expected({ code, transient, acted, empty, unseen }: Scenario, { row, once }: Case, name: string) {
  const repeats = transient && !(once && acted);
  const recovers = repeats && name.includes("then well");
  const succeeds = code === undefined || recovers || (empty && row.deletes);
  const attempts = recovers ? 2 : repeats ? 1 + RETRIES : 1;
  return { succeeds, attempts, requests: unseen ? 0 : attempts, uncertain: row.method !== "GET" && acted === true };
}

/** Does all of it, `width` at a time. */
async function inTurns(width: number, work: (() => Promise<unknown>)[]): Promise<void> {
  const rest = work.values();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const one of rest) await one();
    }),
  );
}

describe("Faults of the service and of the network", () => {
  const stages = new Map<string, Stage>();
  const table = Object.entries(scenarios(other.url));
  const random = Math.random;
  let flow: Awaited<ReturnType<typeof deploy>>;

  before(async function () {
    this.timeout(300_000);
    // No back-off: how long it is, is another test's matter.
    Math.random = () => 0;
    await Promise.all(table.map(async ([name, scenario], i) => stages.set(name, await setUp(`s${i}`, scenario))));
    const nodes = [tlsConfig("trusting"), ...[...stages.values()].flatMap((stage) => stage.nodes)];
    flow = await deploy(nodes, { trusting: { cadata: tlsFile("ca") } });
    // Some at a time, or the work for all the others would use up the seconds of those that time out.
    await inTurns(
      8,
      table.map(([name], i) => () => {
        const { outcomes } = stages.get(name) as Stage;
        for (const [k, one] of cases.entries()) outcomes.set(one, flow.send(`s${i}-${k}`, { payload: "untouched" }));
        return Promise.all(outcomes.values());
      }),
    );
  });

  after(async function () {
    this.timeout(60_000);
    Math.random = random;
    await flow.stop();
    for (const { server, proxy, scenario } of stages.values()) {
      if (scenario.server !== "none") await server.close();
      if (scenario.proxy !== "down") await proxy?.close();
    }
    await other.close();
  });

  for (const [name, scenario] of table) {
    it(name, async () => {
      const { server, outcomes } = stages.get(name) as Stage;
      for (const one of cases) {
        const outcome = await (outcomes.get(one) as Promise<Outcome>);
        const { succeeds, attempts, requests, uncertain } = expected(scenario, one, name);
        const seen = server.requests.filter((request) => signature(request) === signature(one.request));
        assert.equal(seen.length, requests, `${one.name}: requests that the server saw`);
        assert.equal(outcome.ends, 1, `${one.name}: told once`);
        if (succeeds) {
          assert.equal(outcome.caught, undefined, `${one.name}: ${JSON.stringify(outcome.caught?.seo)}`);
          const [{ payload, seo } = {}, more] = outcome.outputs;
          assert.equal(more, undefined);
          const said = "payload" in scenario ? scenario.payload : fine;
          assert.deepEqual(payload, scenario.empty ? null : said);
          assert.equal((seo as { attempts: number }).attempts, attempts, `${one.name}: attempts`);
          continue;
        }
        assert.deepEqual(outcome.outputs, [], `${one.name}: nothing comes out`);
        const { payload, error, seo } = failure(outcome);
        assert.equal(payload, "untouched");
        assert.equal(error.code, scenario.code, `${one.name}: ${error.message}`);
        const told = {
          code: scenario.code,
          statusCode: scenario.status,
          attempts,
          uncertain: uncertain && seo.error.attempts > 0,
        };
        const { code, statusCode } = seo.error;
        assert.deepEqual(
          { code, statusCode, attempts: seo.error.attempts, uncertain: seo.error.uncertain },
          told,
          one.name,
        );
        assert.match(error.message, /^The service\b.*\S$/s);
      }
    });
  }

  it("never brings the key to another origin", () => {
    assert.equal(other.connections, 0);
  });

  it("leaves no store and no making again behind that was sent twice", () => {
    const twice = [...stages].flatMap(([name, { scenario, server }]) =>
      cases
        .filter(({ once }) => once && scenario.acted)
        .filter(({ request }) => server.requests.filter((seen) => signature(seen) === signature(request)).length > 1)
        .map((one) => `${name}: ${one.name}`),
    );
    assert.deepEqual(twice, []);
  });
});
