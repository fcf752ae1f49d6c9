import { request } from "undici";
import { type FlowNode, serviceNode } from "../runtime.js";
import { IN_FLIGHT } from "./measure.js";
import { headers, key, path, query } from "./service.js";

export const OURS = "seo-report-list";
export const RECONCILE = "with reconcile";
export const FLOOR = "floor";
export const CORE = "http request, keep-alive";
export const BARE = "undici.request";

/** One way to request a page: the node `measured` of a flow, or a function. */
interface Contender {
  flow?(origin: string): FlowNode[];
  request?(url: string): Promise<unknown>;
}

export const href = (origin: string) => `${origin}${path}?${new URLSearchParams(query)}`;

const measured = { id: "measured", wires: [["received"]] };

export const list = (url: string, settings: object, node: object = {}): FlowNode[] => [
  serviceNode({ url, apiKey: key }, settings),
  { ...measured, type: "seo-report-list", output: "body", ...node },
];

/** By name, in the order of the chart. */
export const contenders: Record<string, Contender> = {
  [OURS]: { flow: (origin) => list(origin, { concurrency: IN_FLIGHT }) },
  [RECONCILE]: { flow: (origin) => list(origin, { concurrency: IN_FLIGHT, reconcile: 300 }) },
  [FLOOR]: {
    flow: (origin) => [{ ...measured, type: "bench-floor", url: href(origin), headers, connections: IN_FLIGHT }],
  },
  [CORE]: {
    flow: (origin) => [
      {
        ...measured,
        type: "http request",
        method: "GET",
        ret: "obj",
        paytoqs: "ignore",
        senderr: true,
        persist: true,
        url: href(origin),
        headers: Object.entries(headers).map(([keyValue, valueValue]) => ({
          keyType: "other",
          keyValue,
          valueType: "other",
          valueValue,
        })),
      },
    ],
  },
  [BARE]: { request: async (url) => (await request(url, { headers })).body.json() },
  fetch: { request: async (url) => (await fetch(url, { headers })).json() },
};
