import assert from "node:assert/strict";
import { type Flow, type Message, node, service } from "./flow.js";
import { type Lists, startLists } from "./lists.js";

export interface Parts {
  id: string;
  index: number;
  count?: number;
  type: string;
  len: number;
  parts?: Message;
}

export const parts = (msg: Message | undefined) => msg?.parts as Parts;
export const seo = (msg: Message | undefined) => msg?.seo as Record<string, unknown>;
export const payloads = (messages: Message[]) => messages.map(({ payload }) => payload);

/** A list node for each output, with a Join node behind each stream. */
export const outputs = (type: string, settings: object = {}) => [
  ...["body", "data", "all"].map((output) => node(output, type, { output, ...settings, wires: [[`${output}-out`]] })),
  ...["pages", "records"].flatMap((output) => [
    node(output, type, { output, ...settings, wires: [[`${output}-out`, `${output}-join`]] }),
    node(`${output}-join`, "join", { mode: "auto", wires: [[`${output}-joined`]] }),
  ]),
];

/** A list server for one suite, which starts and stops `flow` itself. */
export function withLists() {
  const suite = {
    lists: undefined as unknown as Lists,
    flow: undefined as unknown as Flow,
    /** The service node for the list server. */
    service: (settings: object = {}) => service("service", suite.lists.url, { retries: "0", ...settings }),
    /** Replaces the served records and clears all recorded requests and messages. */
    serve(options: Lists["options"]) {
      suite.lists.asked.length = 0;
      suite.lists.options = options;
      suite.flow.forget();
    },
    ask: (id: string, msg?: Message) => succeed(suite.flow, id, msg),
  };
  before(async () => {
    suite.lists = await startLists({ all: [] });
  });
  after(() => suite.lists.close());
  return suite;
}

/** Sends a message to a node and expects it to succeed. */
async function succeed(flow: Flow, id: string, msg: Message = {}): Promise<void> {
  const { caught } = await flow.send(id, msg);
  assert.equal(caught, undefined, String((caught?.error as Error | undefined)?.message));
}
