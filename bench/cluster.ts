import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxOptions } from "../sandbox/server.js";
import { type Broker, startBroker } from "../test/support/broker.js";
import { readExamples } from "../test/support/examples.js";
import { type Machine, startMachine } from "../test/support/machines.js";
import type { FlowNode } from "../test/support/red.js";
import type { Asked } from "./scaling-service.js";

const [, example = []] = readExamples("examples")[11] ?? [];
const POLL = 20;

/** What differs from the example as it is. */
export interface Setup {
  jobs: number;
  service: SandboxOptions;
  tab?: Record<string, number>;
  /** Properties of the service node. */
  client?: Record<string, string>;
  change?: (node: FlowNode, machine: string) => void;
  /** Where the first machine finds the broker. */
  broker?: string;
}

type Result = { value: { error?: string } };

async function startService(options: SandboxOptions) {
  const child = fork(new URL("scaling-service.js", import.meta.url));
  child.send(options);
  const [address] = (await once(child, "message")) as [{ url: string; apiKey: string }];
  return {
    ...address,
    async asked(): Promise<Asked> {
      child.send("tell");
      return ((await once(child, "message")) as [Asked])[0];
    },
    stop: () => child.disconnect(),
  };
}

/** A broker, and so many Node-REDs that run the example; the first of them keeps the ledger. */
export async function startCluster(folder: string, name: string, count: number) {
  const started = await startBroker();
  if (!started) throw new Error("No mosquitto is installed.");
  const broker: Broker = started;
  const names = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  const machines: Machine[] = [];
  for (const one of names) machines.push(await startMachine(folder, one));
  const last = count - 1;

  return {
    broker,

    /** Brings the example onto every machine, beside a service of its own, and hands out the jobs. */
    async start({ jobs, service: options, tab = {}, client = {}, change = () => {}, broker: relay }: Setup) {
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
            if (node.name === "submit URLs" && payload) payload.v = JSON.stringify(urls);
            change(node, names[index] ?? "");
          },
        });
        await machine.logged("Connected to broker");
      }
      // Subscribing has no line in the log.
      await sleep(500);
      const [first] = machines as [Machine];
      const results = async () =>
        (await first.probe()).shown.filter(({ name }) => name === "result") as unknown as Result[];
      return {
        results,
        press: (button: string) => first.inject(button),
        async came(least: number): Promise<void> {
          while ((await results()).length < least) await sleep(POLL);
        },
        asked: service.asked,
        stop: service.stop,
      };
    },

    /** `kill -9` of the last machine. */
    kill: () => machines[last]?.nodeRed.process.kill("SIGKILL"),

    /** The killed machine starts again, with what it had on its disk. */
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
