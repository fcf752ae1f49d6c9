import type { MessageTask } from "../../nodes/handler.js";
import { readAllPages } from "../../nodes/reading.js";
import { createClient } from "../../src/client.js";
import type { ListPage } from "../../src/lists.js";
import { rowOf } from "../../src/operations.js";
import { createLane, createTask } from "../../src/scheduler.js";
import { readSettings } from "../../src/schema.js";
import type { Row } from "./lists.js";

interface Reading {
  limit?: unknown;
  concurrency?: number;
  input?: Row;
}

/** Reads all pages of a list as a node does. */
export async function readAll(baseUrl: string, type: string, reading: Reading = {}) {
  const { limit = "", concurrency = 4, input = {} } = reading;
  const client = createClient({ baseUrl, apiKey: "key-of-tests", concurrency, retries: "0" });
  const row = rowOf(type);
  const started = performance.now();
  const task = {
    client,
    ...createTask(createLane()),
    settings: readSettings(row.options, { limit }),
    input: client.validate(row, input, {}),
    msg: {},
    elapsed: () => performance.now() - started,
    send() {},
    progress() {},
  } as unknown as MessageTask;
  const records: unknown[] = [];
  let last: ListPage | undefined;
  for await (const page of readAllPages(task, type, row)) {
    records.push(...page.records);
    last = page;
  }
  await client.close();
  return { records, pages: last?.pages, truncated: last?.truncated };
}
