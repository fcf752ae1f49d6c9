import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createAudit } from "../../../src/audit/audit.js";
import { openFiles } from "../../../src/audit/files.js";
import { requestsOf } from "../../../src/audit/requests.js";
import { createClient } from "../../../src/client.js";
import { answer, listen } from "../../support/faulty.js";
import { createFolder, urls } from "./fake.js";

const json = (value: unknown) => answer(200, JSON.stringify(value));

describe("an audit's slots and the client's", () => {
  it("do not wait for each other if a request is retried during a pause of the service", async () => {
    const { folder, remove } = await createFolder();
    const reports: { id: number; url: string }[] = [];
    /** Requests that wait for their 429 until the lost one is to be resent. */
    const throttled: (() => void)[] = [];
    let stores = 0;
    const service = await listen((socket, { method, body }) => {
      if (method === "GET") {
        socket.write(json({ data: reports.toReversed(), meta: { last_page: 1 } }));
        return;
      }
      const nth = ++stores;
      if (nth === 1) socket.destroy();
      else if (nth <= 4) throttled.push(() => socket.write(answer(429, "{}", { "Retry-After": "1" })));
      else {
        const report = { id: reports.length + 1, url: String(new URLSearchParams(body).get("url")) };
        reports.push(report);
        socket.write(json({ data: report }));
      }
    });
    const client = createClient({ baseUrl: service.url, apiKey: "key", concurrency: 4, reconcile: 1 });
    const results: number[] = [];
    const audit = createAudit({
      open: ({ lost }) => openFiles(folder, "node", lost),
      requests: requestsOf(client),
      share: 3,
      result: ({ index }) => results.push(index),
      progress() {},
      failed: assert.fail,
    });
    try {
      const settings = { existing: "create" as const, maxAge: undefined, privacy: undefined };
      await audit.add({ batch: "default", settings, pages: urls(8) });
      while (throttled.length < 3) await sleep(5);
      const looks = () => service.requests.filter(({ method }) => method === "GET").length;
      const before = looks();
      while (looks() === before) await sleep(5);
      await sleep(200);
      for (const respond of throttled) respond();
      while (results.length < 8) await sleep(5);
      assert.equal(reports.length, 8);
    } finally {
      await audit.close();
      await client.close();
      await service.close();
      await remove();
    }
  });
});
