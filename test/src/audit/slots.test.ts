import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createAudit } from "../../../src/audit/audit.js";
import { openFiles } from "../../../src/audit/files.js";
import { requestsOf } from "../../../src/audit/requests.js";
import { readRows } from "../../../src/audit/rows.js";
import type { Result } from "../../../src/audit/work.js";
import { createClient } from "../../../src/client.js";
import { answer, listen } from "../../support/faulty.js";
import { createFolder, urls } from "./fake.js";

const json = (value: unknown) => answer(200, JSON.stringify(value));
const throttle = (socket: Socket, seconds: number) =>
  socket.write(answer(429, "{}", { "Retry-After": String(seconds) }));

describe("an audit's slots and the client's", () => {
  /**
   * Audits eight pages. The first request is lost; the next `share` requests wait until it is to be resent, and then get a 429
   * that asks for a pause of so many seconds. Returns the results, and the number of reports.
   */
  async function auditThrottled(seconds: number, share: number): Promise<{ results: Result[]; created: number }> {
    const { folder, remove } = await createFolder();
    const reports: { id: number; url: string }[] = [];
    const throttled: (() => void)[] = [];
    let stores = 0;
    const service = await listen((socket, { method, body }) => {
      if (method === "GET") {
        socket.write(json({ data: reports.toReversed(), meta: { last_page: 1 } }));
        return;
      }
      const nth = ++stores;
      if (nth === 1) socket.destroy();
      else if (nth <= share + 1) throttled.push(() => throttle(socket, seconds));
      else {
        const report = { id: reports.length + 1, url: String(new URLSearchParams(body).get("url")) };
        reports.push(report);
        socket.write(json({ data: report }));
      }
    });
    const client = createClient({ baseUrl: service.url, apiKey: "key", concurrency: share + 1, reconcile: 1 });
    const results: Result[] = [];
    const audit = createAudit({
      open: (lost) => openFiles(folder, "node", lost),
      connect: () => requestsOf(client),
      share,
      result: (result) => results.push(result),
      progress() {},
      failed: assert.fail,
    });
    try {
      const settings = { existing: "create" as const, maxAge: undefined, privacy: undefined };
      await audit.add({ batch: "default", settings, rows: readRows(urls(8)) });
      while (throttled.length < share) await sleep(5);
      const looks = () => service.requests.filter(({ method }) => method === "GET").length;
      const before = looks();
      while (looks() === before) await sleep(5);
      // It backs off for up to half a second.
      await sleep(700);
      for (const respond of throttled) respond();
      while (results.length < 8) await sleep(5);
      return { results, created: reports.length };
    } finally {
      await audit.close();
      await client.close();
      await service.close();
      await remove();
    }
  }

  it("do not wait for each other if a request is retried during a pause of the service", async () => {
    const { results, created } = await auditThrottled(1, 3);
    assert.deepEqual([results.length, created], [8, 8]);
  });

  it("say for how long no request can start, once none is in flight", async () => {
    let respond = () => {};
    const service = await listen((socket) => {
      respond = () => socket.write(json({ data: [] }));
    });
    const client = createClient({ baseUrl: service.url, apiKey: "key", rate: 1 });
    try {
      const requests = requestsOf(client);
      assert.equal(requests.waitingFor(), 0);
      const sent = requests.send("seo-project-list", {});
      while (service.requests.length === 0) await sleep(5);
      assert.equal(requests.waitingFor(), 0);
      respond();
      await sent;
      assert.ok(requests.waitingFor() > 30_000);
    } finally {
      await client.close();
      await service.close();
    }
  });

  it("are free again if a request waits for its retry when the service requires too long a pause", async () => {
    const { results, created } = await auditThrottled(3600, 1);
    assert.deepEqual([results.length, created], [8, 6]);
  });
});
