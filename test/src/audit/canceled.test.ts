import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { requestsOf } from "../../../src/audit/requests.js";
import { createClient } from "../../../src/client.js";
import { createLane } from "../../../src/scheduler.js";
import { answer, listen } from "../../support/faulty.js";
import { closeAfterEach, openFolder } from "../../support/opened.js";
import { createBench, createFake, urls } from "./fake.js";

const none = answer(200, '{"data":[]}');

describe("An audit whose request is canceled before it has an effect", () => {
  const open = closeAfterEach();

  /** A service without reports. */
  const serve = (post: typeof none) =>
    open(listen((socket, { method }) => socket.write(method === "GET" ? none : post)));

  /** An audit with a client of its own. */
  function openAudit(folder: string, baseUrl: string) {
    const client = createClient({ baseUrl, apiKey: "key", retries: 1, reconcile: 1 });
    const bench = createBench(folder, createFake(), { connect: (changed) => requestsOf(client, 3, changed) });
    return open({ ...bench, client, close: () => bench.audit.close().then(client.close) });
  }

  it("does not look for it if it waited for the service's pause", async () => {
    const { path } = await open(openFolder());
    const limited = await serve(answer(429, "{}", { "Retry-After": "60" }));
    const first = await openAudit(path, limited.url);
    await first.add(urls(1));
    while (first.client.waitingFor(createLane()) === 0) await sleep(5);
    await first.close();
    const service = await serve(answer(200, '{"data":{"id":1,"url":"example.org/page/1"}}'));
    const second = await openAudit(path, service.url);
    assert.equal((await second.finished()).created, 1);
    const sent = service.requests.map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(sent, ["GET /api/v1/reports?sort_by=id&sort=desc&per_page=10", "POST /api/v1/reports"]);
  });
});
