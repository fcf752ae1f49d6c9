import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { requestsOf } from "../../../src/audit/requests.js";
import { type Client, createClient } from "../../../src/client.js";
import { createLane } from "../../../src/scheduler.js";
import { answer, listen, tlsFile } from "../../support/faulty.js";
import { openLocally } from "../../support/local.js";
import { closeAfterEach, openFolder } from "../../support/opened.js";
import { createBench, createFake, urls } from "./fake.js";

const json = (value: unknown) => answer(200, JSON.stringify(value));

describe("An audit whose request is canceled before it has an effect", () => {
  let folder: string;
  const open = closeAfterEach();

  beforeEach(async () => {
    folder = (await open(openFolder())).path;
  });

  /** An audit with a client of its own. */
  function openAudit(baseUrl: string) {
    const client = createClient({ baseUrl, apiKey: "key", retries: 1, reconcile: 1, tls: { ca: tlsFile("ca") } });
    const bench = createBench(folder, createFake(), { connect: (changed) => requestsOf(client, 3, changed) });
    return open({ ...bench, client, close: () => bench.audit.close().then(client.close) });
  }

  /** Waits until a request is held up, closes its audit, and returns what the next audit requests, and its results. */
  async function closeAndContinue(url: string, isHeldUp: (client: Client) => boolean) {
    const first = await openAudit(url);
    await first.add(urls(1));
    while (!isHeldUp(first.client)) await sleep(5);
    await first.close();
    const service = await open(
      listen((socket, { method }) =>
        socket.write(json({ data: method === "GET" ? [] : { id: 1, url: "example.org/page/1" } })),
      ),
    );
    const second = await openAudit(service.url);
    const { created } = await second.finished();
    return { created, requested: service.requests.map(({ method, path }) => `${method} ${path}`) };
  }

  const requestedOnce = {
    created: 1,
    requested: ["GET /api/v1/reports?sort_by=id&sort=desc&per_page=10", "POST /api/v1/reports"],
  };

  it("does not look for it if it waited for the service's pause", async () => {
    const service = await open(
      listen((socket, { method }) =>
        socket.write(method === "GET" ? json({ data: [] }) : answer(429, "{}", { "Retry-After": "60" })),
      ),
    );
    assert.deepEqual(
      await closeAndContinue(service.url, ({ waitingFor }) => waitingFor(createLane()) > 0),
      requestedOnce,
    );
  });

  it("does not look for it if it waited for a TLS handshake", async () => {
    let held = false;
    const service = await open(listen((socket) => socket.write(json({ data: [] })), { certificate: "cert" }));
    // The request to create a report has a connection of its own.
    const relay = createServer((socket) => {
      if (service.requests.length > 0) held = true;
      else socket.pipe(connect(service.port, "127.0.0.1")).pipe(socket);
    });
    const { port } = await open(openLocally(relay));
    assert.deepEqual(await closeAndContinue(`https://127.0.0.1:${port}`, () => held), requestedOnce);
  });
});
