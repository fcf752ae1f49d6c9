import type { MessageTask } from "../../nodes/handler.js";
import { readAllPages } from "../../nodes/reading.js";
import { type Client, createClient } from "../../src/client.js";
import { createLane, createTask } from "../../src/lane.js";
import type { ListPage } from "../../src/lists.js";
import { rowOf } from "../../src/operations.js";
import { readSettings } from "../../src/schema.js";
import type { Row } from "./lists.js";

export interface Reading {
  limit?: unknown;
  concurrency?: number;
  input?: Row;
}

const clients = new Map<string, Client>();

function clientFor(baseUrl: string, concurrency: number): Client {
  const known = clients.get(`${baseUrl} ${concurrency}`);
  const client = known ?? createClient({ baseUrl, apiKey: "key-of-tests", concurrency, retries: "0" });
  clients.set(`${baseUrl} ${concurrency}`, client);
  return client;
}

export async function closeClients(): Promise<void> {
  await Promise.all([...clients.values()].map((client) => client.close()));
  clients.clear();
}

/** Reads the pages of a list as a node does. */
function pagesOf(url: string, type: string, { limit = "", concurrency = 4, input = {} }: Reading = {}) {
  const row = rowOf(type);
  const settings = readSettings(row.options, { limit });
  const client = clientFor(url, concurrency);
  const started = performance.now();
  const task: MessageTask = {
    client,
    ...createTask(createLane()),
    settings,
    input: client.validate(row, input, {}),
    msg: {},
    elapsed: () => performance.now() - started,
    send() {},
    progress() {},
  };
  return readAllPages(task, type, row);
}

/** Reads all pages of a list. */
export async function readAll(url: string, type: string, reading?: Reading) {
  const records: unknown[] = [];
  let last: ListPage | undefined;
  for await (const page of pagesOf(url, type, reading)) {
    records.push(...page.records);
    last = page;
  }
  return { records, page: last?.page, pages: last?.pages, total: last?.total, truncated: last?.truncated };
}
