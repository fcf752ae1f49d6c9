import assert from "node:assert/strict";
import { LIST, requestsOf, STORE } from "../../../src/audit/requests.js";
import { createClient } from "../../../src/client.js";
import { answer, listen } from "../../support/faulty.js";
import { closeAfterEach } from "../../support/opened.js";
import { until } from "../../support/time.js";

describe("The requests of an audit", () => {
  const use = closeAfterEach();

  it("say for how many milliseconds none can start, and are canceled together", async () => {
    const rejection = answer(429, "", { "Retry-After": "60" });
    let requests = 0;
    const server = await use(listen((socket) => void (++requests > 1 && socket.write(rejection))));
    const client = await use(createClient({ baseUrl: server.url, apiKey: "key" }));
    const [waiting, silent] = [requestsOf(client, 2, () => {}), requestsOf(client, 2, () => {})];
    const pages = async () => {
      for await (const _ of silent.pages(LIST, {})) assert.fail("There is no response.");
    };
    assert.equal(waiting.waitingFor(), 0);
    const list = pages();
    await until(() => requests === 1);
    const stored = waiting.request(STORE, { url: "example.org" });
    await until(() => waiting.waitingFor() > 0);
    assert.ok(waiting.waitingFor() > 30_000 && waiting.waitingFor() <= 60_000, `${waiting.waitingFor()} ms`);
    assert.equal(silent.waitingFor(), 0);
    const canceled = { code: "SEO_CANCELLED" };
    const ended = [assert.rejects(list, canceled), assert.rejects(stored, canceled)];
    for (const { cancel } of [waiting, silent]) cancel();
    await Promise.all(ended);
  });
});
