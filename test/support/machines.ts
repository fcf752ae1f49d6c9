import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linkPackage, type Running, startNodeRed } from "../../dev/nodered.js";
import type { Result } from "../../src/audit/options.js";
import type { Progress } from "../../src/audit/progress.js";
import { drive, type Instance } from "./examples.js";
import type { FlowNode } from "./red.js";
import { startRelay } from "./relay.js";
import type { Server } from "./servers.js";
import { installStandIns } from "./standins.js";
import { until as waitUntil } from "./time.js";

type Told = Omit<Result, "record">;

/** A Node-RED process with the package. Its files outlive it. */
export interface Machine {
  name: string;
  /** The running instance; another one after `start`. */
  red(): Instance & { nodeRed: Running };
  /** Starts it again, with its flow. */
  start(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
  /** The messages that its audit node has sent, in all of its processes. */
  results(): Told[];
  progress(): Progress[];
  /** The statuses that its audit node has shown. */
  statuses(): { text?: string; fill?: string }[];
}

/** Starts a Node-RED instance with its own user directory below `folder`, in which the package is installed. */
export async function startMachine(folder: string, name: string): Promise<Machine> {
  const own = join(folder, name);
  mkdirSync(own, { recursive: true });
  if (!existsSync(join(own, "node_modules"))) symlinkSync(join(folder, "node_modules"), join(own, "node_modules"));
  installStandIns(own);
  const lines = <T>(file: string): T[] => {
    const path = join(own, file);
    if (!existsSync(path)) return [];
    const text = readFileSync(path, "utf8");
    // A process that was killed may have written half a line.
    return text
      .slice(0, text.lastIndexOf("\n") + 1)
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as T);
  };
  let red: (Instance & { nodeRed: Running }) | undefined;
  const machine: Machine = {
    name,
    red() {
      if (!red) throw new Error(`${name} does not run.`);
      return red;
    },
    async start() {
      const nodeRed = await startNodeRed(own);
      red = { ...drive(nodeRed), nodeRed };
    },
    kill: (signal) => void machine.red().nodeRed.process.kill(signal),
    async stop() {
      machine.kill("SIGCONT");
      await red?.nodeRed.stop();
    },
    results: () => lines<Told>("results.jsonl"),
    progress: () => lines<Progress>("progress.jsonl"),
    statuses: () => lines("statuses.jsonl"),
  };
  await machine.start();
  return machine;
}

const lastOf = (machine: Machine) => ({
  name: machine.name,
  progress: machine.progress().at(-1),
  statuses: machine.statuses().slice(-3),
});

/** A node that is drawn in the flow; others are config nodes. Its name is its ID. */
const node = (id: string, type: string, wires: string[][], more: object): FlowNode => {
  const place = { z: "tab", x: 0, y: 0, wires };
  return { id, type, name: id, ...place, ...more };
};
const file = (id: string) =>
  node(id, "file", [[]], { filename: `${id}.jsonl`, filenameType: "str", appendNewline: true, overwriteFile: "false" });
const inject = (id: string, more: object) => node(id, "inject", [["audit"]], { topic: "shared", ...more });
const topic = { p: "topic", vt: "str" };
const list = { payloadType: "json", props: [{ p: "payload" }, topic] };
const intoFile = (id: string, from: string, to: string) =>
  node(id, "change", [[to]], { rules: [{ t: "set", p: "payload", pt: "msg", to: from, tot: "msg" }] });

const audit = { service: "service", queue: "queue", existingType: "str" };

/** An audit that writes its results, its progress and its status into files, at once. */
const flow: FlowNode[] = [
  { id: "tab", type: "tab", label: "Shared", env: [] },
  { id: "queue", type: "seo-queue", prefix: "", tls: "", credentials: { url: "${SEO_QUEUE_URL}" } },
  { id: "service", type: "seo-service", baseUrl: "${SEO_BASE_URL}", credentials: { apiKey: "${SEO_API_KEY}" } },
  inject("start", list),
  ...["pause", "resume", "retry", "reset"].map((id) =>
    inject(id, { props: [{ p: id, v: "true", vt: "bool" }, topic] }),
  ),
  node("audit", "seo-report-audit", [["seo"], ["progress"]], audit),
  intoFile("seo", "seo", "results"),
  node("status", "status", [["condition"]], { scope: ["audit"] }),
  intoFile("condition", "status", "statuses"),
  file("results"),
  file("progress"),
  file("statuses"),
  node("catch", "catch", [["error"]], { scope: null }),
  node("error", "debug", [], { active: true, tosidebar: true, complete: "error.message", targetType: "msg" }),
];

/** The settings of the SEO service node, unless a round has others. */
const usual = { reconcile: "300", rate: "", concurrency: "4", retries: "3", timeout: "" };

export interface Round {
  /** Where the service is. */
  service: { url: string; apiKey: string };
  pages: string[];
  /** The audit's `existing`. */
  existing?: "create" | "regenerate";
  /** Properties of the SEO service node. */
  settings?: Record<string, string>;
}

export type Group = Awaited<ReturnType<typeof startGroup>>;

/** Starts several instances, each with its own network to `server`; without a server, they keep their batches in files. */
export async function startGroup(count: number, server?: Server) {
  const folder = mkdtempSync(join(tmpdir(), "seo-machines-"));
  linkPackage(folder);
  const relays = await Promise.all(Array.from({ length: count }, () => startRelay(server?.port ?? 0)));
  const names = Array.from({ length: count }, (_, index) => `machine-${index + 1}`);
  const machines = await Promise.all(names.map((name) => startMachine(folder, name)));
  const results = () => machines.flatMap((machine) => machine.results());
  let rounds = 0;
  /** The flow that each machine was deployed last. */
  const deployed: Parameters<Instance["deploy"]>[] = [];
  const urlFor = (index: number) => server?.url.replace(`:${server.port}`, `:${relays[index]?.port}`) ?? "";

  const now = () => `${results().length} results, ${JSON.stringify(machines.map(lastOf))}`;
  const until = (holds: () => unknown, patience: number) => waitUntil(holds, { patience, between: 50, now });

  return {
    machines,
    relays,
    results,

    /** Deploys the flow, with jobs of their own, to the first `used` machines, and an empty one to the others. */
    async deploy({ service, pages, existing = "create", settings = {} }: Round, used = count): Promise<void> {
      const prefix = `round-${++rounds}`;
      const change = (node: FlowNode) => {
        if (node.id === "queue") node.prefix = prefix;
        if (node.name?.toString().startsWith("start")) node.payload = JSON.stringify(pages);
        if (node.type === "seo-report-audit") Object.assign(node, { existing, queue: server ? "queue" : "" });
      };
      await Promise.all(
        machines.map(async (machine, index) => {
          const env = { SEO_BASE_URL: service.url, SEO_API_KEY: service.apiKey, SEO_QUEUE_URL: urlFor(index) };
          await machine.red().deploy([], { env: {} });
          for (const name of ["results", "progress", "statuses"])
            rmSync(join(folder, machine.name, `${name}.jsonl`), { force: true });
          deployed[index] = [flow, { env, service: { ...usual, ...settings }, change }];
          if (index < used) await machine.red().deploy(...deployed[index]);
        }),
      );
    },

    /** Deploys to one machine what it has, which restarts all nodes. */
    async redeploy(index: number): Promise<void> {
      const [nodes, options] = deployed[index] ?? [[], { env: {} }];
      await machines[index]?.red().deploy(nodes, options);
    },

    until,

    /** The machine that leads: it sends the next result. Rejects after `patience` ms. */
    async leader(patience: number): Promise<number> {
      const counts = () => machines.map((one) => one.results().length);
      const before = counts();
      let index = -1;
      await until(() => {
        index = counts().findIndex((count, index) => count > (before[index] ?? 0));
        return index >= 0;
      }, patience);
      return index;
    },

    /** Resolves when a machine has sent the final progress and every row has a result. Rejects after `patience` ms. */
    finished(rows: number, patience: number): Promise<void> {
      const isLast = ({ finished }: Progress) => finished;
      const isEnd = () => machines.some((machine) => machine.progress().some(isLast));
      return until(() => isEnd() && new Set(results().map(({ index }) => index)).size >= rows, patience);
    },

    async stop(): Promise<void> {
      await Promise.all(machines.map((machine) => machine.stop()));
      for (const relay of relays) relay.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
