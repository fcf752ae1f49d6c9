import { driver, drivers } from "../driver.js";
import type { FlowNode } from "../runtime.js";
import type { Send } from "./measure.js";
import { headers, key, path, query } from "./service.js";

/** Messages in flight. */
export const loads = [1, 32, 256];

export const OURS = "seo-report-list";
export const RECONCILE = "with reconcile";
export const CORE = "http request, keep-alive";
export const FLOOR = "floor";
export const BARE = "undici.request";

/** One way to request a page, measured in a Node-RED of its own. */
export interface Contender {
  flow(origin: string): FlowNode[];
  /** Prepares the function that sends one request. */
  prepare(origin: string, inFlight: number): Promise<Send>;
}

/** Sends a message through a node and back. A message from a Catch node has `error`. */
const through =
  (id: string): Send =>
  (received) =>
    drivers.get(id)?.({ payload: query, received: ({ error, payload }) => received(error ?? payload) });

const caught = (target: string) => ({ id: "catch", type: "catch", scope: null, wires: [[target]] });

/** A driver and a list node with its service node. */
export const list = (name: string, baseUrl: string, service: object = {}, node: object = {}) => [
  { id: `service-${name}`, type: "seo-service", baseUrl, credentials: { apiKey: key }, ...service },
  { id: `list-${name}`, type: "seo-report-list", service: `service-${name}`, output: "body", wires: [[name]], ...node },
  driver(name, `list-${name}`),
];

const href = (origin: string) =>
  `${origin}${path}?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`;

const core = (persist: boolean): Contender => ({
  flow: (origin) => [
    {
      id: "request",
      type: "http request",
      method: "GET",
      ret: "obj",
      paytoqs: "ignore",
      senderr: true,
      persist,
      url: href(origin),
      headers: Object.entries(headers).map(([keyValue, valueValue]) => ({
        keyType: "other",
        keyValue,
        valueType: "other",
        valueValue,
      })),
      wires: [["driver"]],
    },
    driver("driver", "request"),
    caught("driver"),
  ],
  prepare: async () => through("driver"),
});

const bare = (load: () => Promise<(url: string) => Promise<unknown>>): Contender => ({
  flow: () => [],
  async prepare(origin) {
    const request = await load();
    const url = href(origin);
    return (received) => void request(url).then(received, received);
  },
});

/** A service node and a list node for each number of messages in flight: a queue would only hide the cost of a request. */
const ours = (service: object = {}): Contender => ({
  flow: (origin) => [
    ...loads.flatMap((inFlight) => list(`driver-${inFlight}`, origin, { concurrency: inFlight, ...service })),
    caught("driver-1"),
  ],
  prepare: async (_origin, inFlight) => through(`driver-${inFlight}`),
});

/** By name. The last two use no Node-RED node. */
export const contenders: Record<string, Contender> = {
  [OURS]: ours(),
  [RECONCILE]: ours({ reconcile: 300 }),
  [FLOOR]: {
    flow: (origin) => [
      ...loads.flatMap((connections) => {
        const [id, target] = [`floor-${connections}`, `driver-${connections}`];
        const node = { id, type: "bench-floor", url: href(origin), headers, connections, wires: [[target]] };
        return [node, driver(target, id)];
      }),
      caught("driver-1"),
    ],
    prepare: async (_origin, inFlight) => through(`driver-${inFlight}`),
  },
  [CORE]: core(true),
  "http request": core(false),
  [BARE]: bare(async () => {
    const { request } = await import("undici");
    return async (url) => (await request(url, { headers })).body.json();
  }),
  fetch: bare(async () => async (url) => (await fetch(url, { headers })).json()),
};
