import { drivers } from "./driver.js";
import type { Ask } from "./measure.js";
import { headers, key, path, query } from "./page.js";

/** Messages in flight. */
export const loads = [1, 32, 256];

/** One way to ask for a page, in a Node-RED of its own. */
export interface Contender {
  /** The flow's nodes. */
  flow(origin: string): object[];
  ask(origin: string, inFlight: number): Promise<Ask>;
}

export const driver = (id: string, target: string) => ({ id, type: "bench-driver", wires: [[target]] });

/** A message through a node and back. A message that a Catch node brings has `error`. */
const through =
  (id: string): Ask =>
  (answered) =>
    drivers.get(id)?.({ payload: query, answered: ({ error, payload }) => answered(error ?? payload) });

const caught = (target: string) => ({ id: "catch", type: "catch", scope: null, wires: [[target]] });

/** A service node and a list node, which send to a driver and take from it. */
export const list = (name: string, baseUrl: string, service: object = {}, node: object = {}) => [
  { id: `service-${name}`, type: "seo-service", baseUrl, credentials: { apiKey: key }, ...service },
  { id: `list-${name}`, type: "seo-report-list", service: `service-${name}`, output: "body", wires: [[name]], ...node },
  driver(name, `list-${name}`),
];

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
      url: `${origin}${path}?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`,
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
  ask: async () => through("driver"),
});

const address = (origin: string) => {
  const url = new URL(path, origin);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  return url.href;
};

/** By name. The first is ours; the last two use no Node-RED node, and are the limit of what one could reach. */
export const contenders: Record<string, Contender> = {
  "seo-report-list": {
    // As many requests at a time as there are messages in flight: a queue would only hide what a request costs.
    flow: (origin) => [
      ...loads.flatMap((inFlight) => list(`driver-${inFlight}`, origin, { concurrency: inFlight })),
      caught("driver-1"),
    ],
    ask: async (_origin, inFlight) => through(`driver-${inFlight}`),
  },
  "http request, keep-alive": core(true),
  "http request": core(false),
  "undici.request": {
    flow: () => [],
    async ask(origin) {
      const { request } = await import("undici");
      const url = address(origin);
      return (answered) => {
        request(url, { headers })
          .then(({ body }) => body.json())
          .then(answered, answered);
      };
    },
  },
  fetch: {
    flow: () => [],
    async ask(origin) {
      const url = address(origin);
      return (answered) => {
        fetch(url, { headers })
          .then((answer) => answer.json())
          .then(answered, answered);
      };
    },
  },
};
