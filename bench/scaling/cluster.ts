import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxOptions } from "../../sandbox/server.js";
import { startBroker } from "../../test/support/broker.js";
import { readExamples } from "../../test/support/examples.js";
import { type Machine, startMachine } from "../../test/support/machines.js";
import type { FlowNode } from "../../test/support/red.js";
import type { Seen } from "./service.js";

const [, example = []] = readExamples("examples")[11] ?? [];
/** The names of its nodes that are used here. */
export const NODES = {
  start: "submit URLs",
  tick: "every minute",
  jobs: ["a job", "jobs"],
  result: "result",
};
const POLL = 20;

/** How a run differs from the example as it is. */
export interface Setup {
  jobs: number;
  service: SandboxOptions;
  tab?: Record<string, number>;
  /** Properties of the service node. */
  client?: Record<string, string>;
  change?: (node: FlowNode, machine: string) => void;
  /** The URL of the broker for the first machine. */
  broker?: string;
}

type Result = { value: { error?: string } };

async function startService(options: SandboxOptions) {
  const child = fork(new URL("service.js", import.meta.url));
  child.send(options);
  const [address] = (await once(child, "message")) as [{ url: string; apiKey: string }];
  return {
    ...address,
    async seen(): Promise<Seen> {
      child.send("tell");
      return ((await once(child, "message")) as [Seen])[0];
    },
    stop: () => child.disconnect(),
  };
}

/** Starts a broker and `count` Node-REDs with the example; the first of them keeps the ledger. */
export async function startCluster(folder: string, name: string, count: number) {
  const broker = await startBroker();
  if (!broker) throw new Error("Mosquitto is not installed.");
  const names = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  const machines: Machine[] = [];
  for (const one of names) machines.push(await startMachine(folder, one));
  const last = count - 1;

  return {
    broker: broker.url,

    /** Deploys the example to every machine, with a new service. */
    async deploy({ jobs, service: options, tab = {}, client = {}, change = () => {}, broker: relay }: Setup) {
      const service = await startService(options);
      const urls = Array.from({ length: jobs }, (_, index) => `https://example.com/${index}`);
      const env = { SEO_BASE_URL: service.url, SEO_API_KEY: service.apiKey };
      for (const [index, machine] of machines.entries()) {
        await machine.deploy(example, {
          env: { ...env, MQTT_URL: (index === 0 && relay) || broker.url },
          tab,
          service: client,
          change(node) {
            const [payload] = (node.props ?? []) as { v?: string }[];
            if (node.name === NODES.start && payload) payload.v = JSON.stringify(urls);
            change(node, names[index] ?? "");
          },
        });
        await machine.logged("Connected to broker");
      }
      // Subscribing is not logged.
      await sleep(500);
      const [first] = machines as [Machine];
      const results = async () =>
        (await first.probe()).shown.filter(({ name }) => name === NODES.result) as unknown as Result[];
      return {
        press: (button: string) => first.inject(button),
        results,
        failed: async () => (await results()).filter(({ value }) => value.error).length,
        async untilResults(least: number): Promise<void> {
          while ((await results()).length < least) await sleep(POLL);
        },
        seen: service.seen,
        stop: service.stop,
      };
    },

    /** `kill -9` of the last machine. */
    kill: () => machines[last]?.nodeRed.process.kill("SIGKILL"),

    /** Starts the killed machine again, with its files. */
    async restart(): Promise<void> {
      machines[last] = await startMachine(folder, names[last] ?? "");
      await machines[last]?.logged("Connected to broker");
    },

    async stop(): Promise<void> {
      await Promise.all(machines.map(({ nodeRed }) => nodeRed.stop()));
      await broker.stop();
    },
  };
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>;
export type Run = Awaited<ReturnType<Cluster["deploy"]>>;
