import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { answer, listen, type Received } from "../support/faulty.js";
import { fixedReport, node, service, startFlow } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";
import { ok } from "../support/scenarios.js";

describe("The limits that all nodes of a service share", () => {
  const open = closeAfterEach();

  it("pause every node after a 429, then resume with a single request", async () => {
    const came: { at: number; underWay: number }[] = [];
    let underWay = 0;
    const limited = (socket: Socket, _: Received) => {
      came.push({ at: performance.now(), underWay: ++underWay });
      const first = came.length === 1;
      setTimeout(
        () => {
          underWay--;
          socket.write(first ? answer(429, '{"message":"Too Many Attempts."}', { "Retry-After": "1" }) : ok);
        },
        first ? 0 : 50,
      );
    };
    const server = await open(listen(limited));
    const nodes = ["a", "b"].map((id) => node(id, "seo-report-show", fixedReport));
    const flow = await open(startFlow([service("service", server.url, { concurrency: "4" }), ...nodes]));
    const told = flow.until(() => flow.statuses().some(({ fill }) => fill === "yellow"));
    const first = flow.send("a");
    await told;
    const others = Array.from({ length: 6 }, (_, i) => flow.send(i % 2 ? "a" : "b"));
    const outcomes = await Promise.all([first, ...others]);
    assert.ok(outcomes.every(({ outputs }) => outputs.length === 1));
    const [asked, ...after] = came;
    for (const { at } of after) assert.ok(at - (asked?.at ?? 0) >= 990, "no request for one second");
    assert.equal(after[0]?.underWay, 1);
    assert.ok((after[1]?.at ?? 0) - (after[0]?.at ?? 0) >= 45, "the second request waits for the first response");
    const [{ seo } = {}] = (await first).outputs;
    const { attempts, waited } = seo as { attempts: number; waited: number };
    assert.equal(attempts, 2);
    assert.ok(waited >= 990 && waited < 20_000, `waited ${waited} ms`);
    const waiting = flow.statuses().find(({ fill }) => fill === "yellow");
    assert.equal(waiting?.text, 'seo-reports.status.waiting {"seconds":1,"queued":1}');
  });
});
