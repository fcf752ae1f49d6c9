import assert from "node:assert/strict";
import { inspect } from "node:util";
import { type Case, cases } from "../support/cases.js";
import { answer, type Behaviour, type FaultyServer, listen, tlsFile } from "../support/faulty.js";
import { type Flow, failure, node, type Outcome, service, startFlow, tlsConfig } from "../support/flow.js";
import type { FlowNode } from "../support/red.js";
import { type Scenario, scenarios } from "../support/scenarios.js";
import { expected, RETRIES, type Row, type Scene, seen, setUp } from "../support/scene.js";
import { stopBackOff } from "../support/time.js";

/** The target of redirects, which must never receive a connection. */
const other = await listen((socket) => socket.end());

/** One scenario with a node for each of its cases. */
interface Stage extends Scene {
  scenario: Scenario;
  nodes: FlowNode[];
  /** Sends a message to each node. */
  run(flow: Flow): Promise<unknown>;
  outcomes: Map<Case, Outcome>;
}

async function setStage(id: string, scenario: Scenario, used = cases): Promise<Stage> {
  const scene = await setUp(scenario);
  const { baseUrl, proxyUrl } = scene;
  const own = {
    retries: String(RETRIES),
    concurrency: "8",
    timeout: "600",
    ...scenario.settings,
    ...(proxyUrl && { proxy: `${id}-proxy` }),
  };
  // A 429 or 503 can pause all nodes of a service node, so each case has its own.
  const waits = scenario.status === 429 || scenario.status === 503;
  const services = waits ? used.map((_, i) => `${id}-service-${i}`) : [`${id}-service`];
  const nodes = [
    ...(proxyUrl ? [{ id: `${id}-proxy`, type: "http proxy", name: "", url: proxyUrl, noproxy: [] }] : []),
    ...services.map((name) => service(name, baseUrl, own)),
    ...used.map(({ type, input }, i) => {
      const fixed = Object.fromEntries(Object.keys(input).map((param) => [`${param}Type`, "str"]));
      return node(`${id}-${i}`, type, { ...input, ...fixed, service: services[i] ?? services[0] });
    }),
  ];
  const outcomes = new Map<Case, Outcome>();
  const send = async (flow: Flow, one: Case, i: number) =>
    outcomes.set(one, await flow.send(`${id}-${i}`, { payload: "untouched" }));
  return { ...scene, scenario, nodes, outcomes, run: (flow) => Promise.all(used.map((one, i) => send(flow, one, i))) };
}

function observed({ outputs, caught }: Outcome, one: Case, server: FaultyServer): Row {
  const error = caught && failure({ caught }).seo.error;
  const success = outputs[0]?.seo as { attempts: number } | undefined;
  return {
    code: error?.code,
    statusCode: error?.statusCode,
    uncertain: error?.uncertain,
    attempts: error?.attempts ?? success?.attempts ?? 0,
    requests: seen(server, one),
    payloads: outputs.map(({ payload }) => payload),
  };
}

/** Runs the stages in one Node-RED instance, `width` at a time. */
async function play(stages: Stage[], width: number) {
  // Other tests cover the length of the back-off.
  const goOn = stopBackOff();
  const nodes = [tlsConfig("trusting"), ...stages.flatMap((stage) => stage.nodes)];
  const flow = await startFlow(nodes, { trusting: { cadata: tlsFile("ca") } });
  const isLate = ({ scenario }: Stage) => scenario.code === "SEO_TIMEOUT";
  const others = stages.filter((stage) => !isLate(stage)).values();
  const inTurn = async () => {
    for (const stage of others) await stage.run(flow);
  };
  // Those that time out only wait. CPU time for the others counts towards each request's timeout, so only some run at a time.
  await Promise.all([...stages.filter(isLate).map(({ run }) => run(flow)), ...Array.from({ length: width }, inTurn)]);
  return {
    flow,
    async close(): Promise<void> {
      goOn();
      await flow.stop();
      for (const stage of stages) await stage.close();
    },
  };
}

describe("Every operation", () => {
  const table = Object.entries(scenarios(other.url));
  let stages: Stage[];
  let played: Awaited<ReturnType<typeof play>>;

  before(async () => {
    stages = await Promise.all(table.map(([, scenario], i) => setStage(`s${i}`, scenario)));
    played = await play(stages, 8);
  });

  after(() => played.close());

  for (const [i, [name, scenario]] of table.entries()) {
    it(`has the expected outcome: ${name}`, () => {
      const { server, outcomes } = stages[i] as Stage;
      for (const [one, outcome] of outcomes) {
        const { caught } = outcome;
        const message = caught ? failure(outcome).error.message : "succeeded";
        const row = observed(outcome, one, server);
        assert.deepEqual(row, expected(scenario, one, name), `${one.name}: ${message}`);
        assert.equal(outcome.ends, 1, `${one.name}: done is called once`);
        if (caught) assert.deepEqual([caught.payload, caught.error === undefined], ["untouched", false]);
        assert.match(message, /^The (request|response|service)\b.*\S$|^succeeded$/s);
        assert.equal(message.endsWith(". The request may have taken effect."), Boolean(row.uncertain), message);
      }
    });
  }

  it("never sends the API key to another origin", () => {
    assert.equal(other.connections, 0);
  });

  it("reveals neither the API key nor a password in an error, a status or the log", () => {
    const { flow } = played;
    const ends = stages.flatMap(({ outcomes }) => [...outcomes.values()]);
    assert.equal(ends.length, table.length * cases.length);
    const errors = ends.flatMap(({ caught }) => (caught ? [caught.error, caught.seo] : []));
    assert.ok(errors.length > 100);
    assert.doesNotMatch(inspect([errors, flow.log, flow.statuses()], { depth: 20 }), /key-of-tests|\bsecret\b/);
  });

  it("never creates or regenerates a report twice", () => {
    const twice = stages.flatMap(({ scenario, server }, i) =>
      cases
        .filter((one) => one.once && scenario.acted && seen(server, one) > 1)
        .map((one) => [table[i]?.[0], one.name]),
    );
    assert.deepEqual(twice, []);
  });
});

/** A scenario for what creates or regenerates a report, from a service that then shows whether it did. */
const withLooks = (behave: Behaviour, carriedOut: boolean): Behaviour => {
  let sent = 0;
  return (socket, request, nth) => {
    if (request.method !== "GET") {
      sent++;
      return behave(socket, request, nth);
    }
    const isDone = carriedOut && sent > 0;
    const [headers, recent] = [{ Date: new Date().toUTCString() }, new Date().toISOString()];
    const generated_at = isDone ? recent : "2026-01-01T00:00:00Z";
    const report = { id: 27, url: "example.com/pricing", privacy: 2, generated_at };
    const list = isDone ? [report] : [];
    const data = /\/reports\?/.test(request.path) ? list : report;
    socket.write(answer(200, JSON.stringify({ data }), headers));
  };
};

describe("Every lost response of an SEO service node with a reconcile time", () => {
  const table = Object.entries(scenarios(other.url)).filter(
    ([, { acted, unseen, server }]) => acted && !unseen && !Object(server).connected,
  );
  const writes = cases.filter(({ once }) => once);
  const all = table.flatMap(([name, scenario]) =>
    writes.flatMap((one) => [true, false].map((carriedOut) => ({ name, scenario, one, carriedOut }))),
  );
  let stages: Stage[];
  let played: Awaited<ReturnType<typeof play>>;

  before(async () => {
    const setUpAll = all.map(({ scenario, one, carriedOut }, i) => {
      const late = scenario.code === "SEO_TIMEOUT" && { timeout: "2" };
      const settings = { ...scenario.settings, reconcile: "1", ...late };
      return setStage(`r${i}`, { ...scenario, behave: withLooks(scenario.behave, carriedOut), settings }, [one]);
    });
    stages = await Promise.all(setUpAll);
    played = await play(stages, 48);
  });

  after(async () => {
    await played.close();
    await other.close();
  });

  for (const [i, { name, scenario, one, carriedOut }] of all.entries())
    it(`is found out: ${name}, ${one.type}, ${carriedOut ? "took effect" : "had no effect"}`, () => {
      const { outcomes, server } = stages[i] as Stage;
      const outcome = outcomes.get(one) ?? assert.fail();
      const { code, statusCode, uncertain, attempts, requests } = observed(outcome, one, server);
      // The service itself rejected the page, and would again.
      const repeats = !carriedOut && scenario.transient && name !== "500 with JSON";
      const sent = repeats ? 1 + RETRIES : 1;
      const succeeds = carriedOut || name.includes("then success");
      const end = succeeds ? [undefined, undefined, undefined] : [scenario.code, scenario.status, false];
      assert.deepEqual([[code, statusCode, uncertain], attempts, requests, outcome.ends], [end, sent, sent, 1]);
      if (!carriedOut) return;
      const { payload, seo } = outcome.outputs[0] as { payload: { data: { id: number } }; seo: { reconciled: object } };
      assert.equal(payload.data.id, 27);
      assert.deepEqual(Object.keys(seo.reconciled), ["looks", "after"]);
    });
});
