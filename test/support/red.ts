import { createRequire } from "node:module";
import type { Node, NodeAPI } from "node-red";

const require = createRequire(import.meta.url);

/** A node of a flow file. */
export interface FlowNode {
  id: string;
  type: string;
  [property: string]: unknown;
}

export type Credentials = Record<string, Record<string, string>>;

/** A line of Node-RED's log, of whatever level. */
export interface LogLine {
  level: number;
  id?: string;
  msg: unknown;
}

/** As much of node-red-node-test-helper as the tests use; it has no types of its own. */
interface Helper {
  init(nodeRed: string): void;
  load(types: ((RED: NodeAPI) => void)[], flow: FlowNode[], credentials?: Credentials): Promise<void>;
  setFlows(flow: FlowNode[], type: "full" | "flows" | "nodes", credentials?: Credentials): Promise<void>;
  unload(): Promise<void>;
  getNode(id: string): Node | null;
  log(): { args: [LogLine][]; WARN: number; ERROR: number };
}

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

/** The entry of the Node-RED under test: 5 where the running Node can, else 4.1. */
export const nodeRed = require.resolve(major > 22 || (major === 22 && minor >= 9) ? "node-red" : "node-red-4");

/** A module of that Node-RED. */
export const nodeRedModule = <T>(name: string): T => createRequire(nodeRed)(name) as T;

export const helper = require("node-red-node-test-helper") as Helper;
helper.init(nodeRed);
