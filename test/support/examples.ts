import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import { linkPackage, type Running, root, startNodeRed } from "../../dev/nodered.js";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.js";
import { deferred } from "../../src/turns.js";
import { launch, needChromium } from "./chromium.js";
import { openLocally } from "./local.js";
import type { FlowNode } from "./red.js";
import { installStandIns, type Seen } from "./standins.js";

const PATIENCE = 150_000;
const PAUSE = 40;
/** The sandbox's clock, so that dates can be compared. */
const NOW = Date.UTC(2026, 10, 12, 9, 30);

/** The examples in a folder, in the order of their numbers: title and nodes. */
export function readExamples(folder: string): [title: string, nodes: FlowNode[]][] {
  return readdirSync(join(root, folder))
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => [file.replace(/\.json$/, ""), JSON.parse(readFileSync(join(root, folder, file), "utf8"))]);
}

type Env = Record<string, string | number>;

const envOf = (env: Env) =>
  Object.entries(env).map(([name, value]) => ({
    name,
    value: String(value),
    type: typeof value === "number" ? "num" : "str",
  }));

export interface Deployment {
  /** Environment variables, set globally. */
  env: Env;
  /** Values of the flow's own properties that differ from the example's. */
  tab?: Env;
  /** Properties of the service node that differ from the example's. */
  service?: Record<string, string>;
  change?: (node: FlowNode) => void;
  /** Whether changes nodes run by themselves. */
  intervals?: boolean;
  /** Which nodes are restarted: all, or those that have changed. */
  type?: "full" | "nodes";
  /** Which nodes are deployed; by default all. */
  only?: (node: FlowNode) => boolean;
}

/** The messages that the Debug nodes and widgets received, by their names. */
export type Outputs = Record<string, unknown[]>;

/** Asserts that the outputs are one text in `name`, which matches. */
export function only(outputs: Outputs, name: string, text: RegExp): void {
  assert.deepEqual(Object.keys(outputs), [name]);
  assert.equal(outputs[name]?.length, 1);
  assert.match(String(outputs[name]), text);
}

export type Instance = ReturnType<typeof drive>;

/** Deploys one example at a time to a running Node-RED with the probe, and reads what it did. */
export function drive(nodeRed: Pick<Running, "url" | "log">) {
  let nodes: FlowNode[] = [];
  let logged = 0;

  async function ask(method: string, path: string, body?: object, more?: Record<string, string>): Promise<Response> {
    // The server could close a kept connection just as the next request is sent.
    const headers = { connection: "close", "content-type": "application/json", "Node-RED-API-Version": "v2", ...more };
    const answer = await fetch(nodeRed.url + path, { method, headers, body: body ? JSON.stringify(body) : null });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }

  const probe = async () => (await (await ask("GET", "/probe")).json()) as Seen;

  const driver = {
    url: nodeRed.url,
    /** Sends a request to the admin API. */
    ask,

    async deploy(
      example: FlowNode[],
      { env, tab = {}, service = {}, change = () => {}, intervals, type = "full", only = () => true }: Deployment,
    ): Promise<void> {
      nodes = structuredClone(example.filter(only));
      for (const node of nodes) {
        if (node.type === "seo-report-changes" && !intervals) node.interval = "";
        change(node);
        if (node.type === "seo-service") Object.assign(node, service);
        if (node.type === "tab") {
          const kept = (node.env as { name: string }[]).filter(({ name }) => tab[name] === undefined);
          node.env = [...kept, ...envOf(tab)];
        }
        // Only the test starts anything.
        if (node.type === "inject") Object.assign(node, { once: false, repeat: "", crontab: "" });
        if (node.type === "trigger") node.duration = "0.01";
        // A node that is sent with credentials counts as changed.
        if (type === "nodes") delete node.credentials;
      }
      logged = nodeRed.log.length;
      await ask("DELETE", "/probe");
      const globals = { id: "global-env", type: "global-config", env: envOf(env) };
      await ask("POST", "/flows", { flows: [...nodes, globals] }, { "Node-RED-Deployment-Type": type });
      // The response comes before the flows have started.
      await driver.logged(type === "full" ? "Started flows" : "Started modified nodes");
    },

    /** Presses a button: that of an inject node, or one of a dashboard. */
    async inject(name: string): Promise<void> {
      const node = nodes.find((node) => /^(inject|ui-button)$/.test(node.type) && node.name === name);
      if (!node) throw new Error(`There is no button ${name}.`);
      await ask("POST", `/inject/${node.id}`, {});
    },

    probe,

    /** Waits until no message is on its way, and returns what was shown since the last call. */
    async outputs(
      ready: (seen: Seen) => boolean = ({ received }) => received > 0,
      { except = [] }: { except?: string[] } = {},
    ): Promise<Outputs> {
      const deadline = Date.now() + PATIENCE;
      let before = -1;
      for (;;) {
        const seen = await probe();
        const open = Object.keys(seen.open).filter((name) => !except.includes(name));
        if (ready(seen) && seen.received === before && seen.sent === 0 && open.length === 0) {
          await ask("DELETE", "/probe");
          const names = new Set(seen.shown.map(({ name }) => name));
          return Object.fromEntries(
            [...names].map((name) => [name, seen.shown.filter((one) => one.name === name).map(({ value }) => value)]),
          );
        }
        if (Date.now() > deadline) throw new Error(`The flow does not end: ${JSON.stringify(seen)}`);
        before = seen.received;
        await sleep(PAUSE);
      }
    },

    /** Waits until a line with this text is logged, since the last deploy. */
    async logged(text: string): Promise<void> {
      while (!nodeRed.log.slice(logged).some((line) => line.includes(text))) await sleep(PAUSE);
    },

    /** The errors and warnings in the log since the deploy. */
    complaints: () => nodeRed.log.slice(logged).filter((line) => /\[(error|warn)\]|Uncaught/.test(line)),
  };
  return driver;
}

/** A request that a stand-in received. */
export interface Asked {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

type Answer = (asked: Asked) => { status?: number; headers?: Record<string, string>; body?: string };

/** A local web server: a chat's webhook, a static site, a service that rejects everything. */
async function startStandIn(answer: Answer) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const { method = "", url: path = "", headers } = request;
    const one = { method, path, headers, body: await text(request) };
    asked.push(one);
    const reply = answer(one);
    response.writeHead(reply.status ?? 200, reply.headers).end(reply.body);
  });
  return Object.assign(await openLocally(server), { asked });
}

type StandIn = Awaited<ReturnType<typeof startStandIn>>;

export const json = (status: number, body: unknown, headers = {}) => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

/** A service that has no report, and creates this one. */
export const creates =
  (record: object): Answer =>
  ({ method }) =>
    method === "GET" ? json(200, []) : json(201, { data: record });

/** A report as the sandbox returns it. */
export async function recordOf({ url, apiKey }: Sandbox, id: number): Promise<{ results: object }> {
  const headers = { accept: "application/json", authorization: `Bearer ${apiKey}` };
  const answer = await fetch(`${url}/api/v1/reports/${id}`, { headers });
  return ((await answer.json()) as { data: { results: object } }).data;
}

export const tooMany = () => json(429, { message: "Too Many Attempts." }, { "retry-after": "3600" });

/** The code and message of an error, as a service that is unavailable causes it. */
export interface Refusal {
  code: string;
  says: RegExp;
}

/** A latency of the sandbox: it responds to so many changes, and to others only after `release`. */
export function holdAfter(count: number) {
  const { promise, resolve } = deferred();
  let changes = 0;
  return {
    release: resolve,
    async latency({ method }: { method: string }): Promise<number> {
      if (method !== "GET" && ++changes > count) await promise;
      return 0;
    },
  };
}

/** Whether a batch has ended, or has paused by itself: a Debug node shows the progress. */
export const batchEnded = ({ shown }: Seen) =>
  shown.some(({ name, value }) => {
    const { finished, paused } = Object(value) as { finished?: boolean; paused?: unknown };
    return name === "progress" && Boolean(finished || paused);
  });

const DOWN: Refusal = { code: "SEO_NETWORK", says: /127\.0\.0\.1:1\b.*\(ECONNREFUSED\)/ };
const LIMITED: Refusal = { code: "SEO_RATE_LIMITED", says: /429: Too Many Attempts\..* 3600 s/ };

type Scene = ReturnType<typeof setScene>;

/** Registers the hooks that start and stop what examples need: a real Node-RED, a sandbox, stand-ins, a folder. */
export function setScene() {
  const standIns: StandIn[] = [];
  let folder: string;
  let nodeRed: Running;
  let red: Instance;
  let sandbox: Sandbox | undefined;

  before(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "seo-examples-")));
    linkPackage(folder);
    installStandIns(folder);
    nodeRed = await startNodeRed(folder);
    red = drive(nodeRed);
  });
  afterEach(async function () {
    // What is no JSON is a test's own.
    const complaints = red.complaints().filter((line) => !/\[http request:.*\] JSON parse error$/.test(line));
    // Removing the nodes drops the batches, so that no test continues another's.
    await red.deploy([], { env: {} });
    await Promise.all([sandbox?.close(), ...standIns.splice(0).map((standIn) => standIn.close())]);
    sandbox = undefined;
    if (this.currentTest?.state === "passed") assert.deepEqual(complaints, [], "errors and warnings in Node-RED's log");
  });
  after(async () => {
    await nodeRed?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const scene = {
    /** A path in the user directory. */
    file: (name: string) => join(folder, name),
    red: () => red,

    async up(options: SandboxOptions = {}): Promise<Sandbox> {
      await sandbox?.close();
      sandbox = await startSandbox({ now: () => NOW, ...options });
      return sandbox;
    },

    async standIn(answer: Answer): Promise<StandIn> {
      const one = await startStandIn(answer);
      standIns.push(one);
      return one;
    },

    /** Deploys an example for a service, without retries and without looking up lost responses. */
    deploy: (example: FlowNode[], url: string, { env = {}, service = {}, ...more }: Partial<Deployment> = {}) =>
      red.deploy(example, {
        ...more,
        env: { SEO_BASE_URL: url, SEO_API_KEY: "sandbox-key", ...env },
        service: { retries: "0", reconcile: "", ...service },
      }),

    async press(button: string, ready?: (seen: Seen) => boolean): Promise<Outputs> {
      await red.inject(button);
      return red.outputs(ready);
    },

    quiet: () => assert.deepEqual(red.complaints(), []),

    /** A chat, and the texts that it received since the last call. */
    async chat(answer: Answer = () => ({ body: "from the chat" })) {
      const { url, asked } = await scene.standIn(answer);
      return { url, texts: () => asked.splice(0).map(({ body }) => (JSON.parse(body) as { text: string }).text) };
    },

    /** A page that a flow serves: one that runs no script, and loads nothing. */
    async page(path: string, init?: RequestInit) {
      const answer = await fetch(`${red.url}/${path}`, init);
      const text = await answer.text();
      if (answer.headers.get("content-type")?.startsWith("text/html")) {
        assert.equal(answer.headers.get("content-security-policy"), "default-src 'none'; style-src 'unsafe-inline'");
        assert.doesNotMatch(text, /<script|<img|src=|href=/i);
      }
      return { status: answer.status, headers: answer.headers, text };
    },

    /** Tests that a page is as wide as a phone, once `start` has deployed its flow. `look` looks further. */
    fitsPhone(path: string, start: () => Promise<void>, look: (page: Page) => Promise<void> = async () => {}): void {
      it("fits a phone", async function () {
        const chromium = needChromium() ?? this.skip();
        await start();
        const browser = await launch(chromium);
        try {
          const page = await browser.newPage({ viewport: { width: 360, height: 740 } });
          await page.goto(`${red.url}/${path}`);
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
          await look(page);
        } finally {
          await browser.close();
        }
      });
    },

    /** Runs a test with a service that is down, and with one that is rate limited. */
    unavailable(run: (url: string, refusal: Refusal) => Promise<void>): void {
      it("reports a service that is down", async () => {
        await run("http://127.0.0.1:1", DOWN);
      });
      it("reports a 429 whose wait time is too long", async () => {
        await run((await scene.standIn(tooMany)).url, LIMITED);
      });
    },
  };
  return scene;
}

/** The tests of one example, in a Node-RED of their own. */
export function describeExample(title: string, define: (scene: ExampleScene) => void): void {
  describe(`example ${title}`, () => {
    const [, example] = readExamples("examples").find(([name]) => name === title) ?? [title, []];
    const scene = setScene();
    define({ ...scene, example, deploy: (url, more) => scene.deploy(example, url, more) });
  });
}

export type ExampleScene = Omit<Scene, "deploy"> & {
  example: FlowNode[];
  deploy: (url: string, more?: Partial<Deployment>) => Promise<void>;
};
