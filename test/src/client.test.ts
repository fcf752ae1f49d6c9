import assert from "node:assert/strict";
import { createServer, connect as reach } from "node:net";
import { setTimeout as late } from "node:timers/promises";
import { type Client, createClient } from "../../src/client.js";
import type { SeoError } from "../../src/errors.js";
import { createLane, createTask, type Task } from "../../src/scheduler.js";
import { cases } from "../support/cases.js";
import { answer, type Behaviour, type FaultyServer, listen, tlsFile } from "../support/faulty.js";
import { openLocally } from "../support/local.js";
import { closeAfterEach } from "../support/opened.js";
import { fine, ok } from "../support/scenarios.js";
import { returned } from "../support/sentences.js";
import { stopBackOff } from "../support/time.js";

const KEY = "key/of-tests";
const SHOW = ["seo-report-show", { reportId: "7" }] as const;
const LONG = 200;

const failed = (status: number, headers = {}) => answer(status, '{"message":"Said so."}', headers);
const mustFail = () => assert.fail("The request did not fail.");
/** The error of a request that must fail, as a flow reads it. */
const failure = (promise: Promise<unknown>) => promise.then(mustFail, (error: SeoError) => error.toJSON());
/** How a request has failed: its code, its attempts, and whether it may have taken effect. */
const end = (promise: Promise<unknown>) =>
  failure(promise).then(({ code, attempts, uncertain }) => [code, attempts, uncertain]);

describe("The client", () => {
  let server: FaultyServer;
  let client: Client;
  let behave: Behaviour;
  const { random } = Math;

  const opened = closeAfterEach();
  const open = async (settings: object = {}) => {
    client = await opened(createClient({ baseUrl: server.url, apiKey: KEY, ...settings }));
  };

  beforeEach(async () => {
    behave = (socket) => socket.write(ok);
    server = await opened(listen((socket, request, nth) => behave(socket, request, nth)));
  });

  afterEach(() => {
    Math.random = random;
  });

  /** Resolves when the server has received `count` requests. */
  const requests = async (count: number) => {
    while (server.requests.length < count) await late(5);
  };

  /** Sends a request in `lane`. A rejection counts as handled. */
  const show = (lane = createLane()) => {
    const sent = client.call(...SHOW, { task: createTask(lane) });
    sent.catch(() => {});
    return sent;
  };

  describe("between attempts", () => {
    for (const [status, headers, own, all] of [
      [500, {}, 250, 0],
      [429, {}, 250, 250],
      [429, { "Retry-After": String(LONG) }, LONG * 1000, LONG * 1000],
      [503, { "Retry-After": String(LONG) }, LONG * 1000, LONG * 1000],
    ] as const)
      it(`pauses this request for ${own} ms and all others for ${all} ms: ${status} ${JSON.stringify(headers)}`, async () => {
        Math.random = () => 0.5;
        behave = (socket) => socket.write(failed(status, headers));
        await open({ retries: "1" });
        const lane = createLane();
        void show(lane);
        while (lane.waiting === 0) await late(1);
        const near = (wait: number, wanted: number) => wait <= wanted && wait >= wanted / 5;
        const [mine, others] = [client.waitingFor(lane), client.waitingFor(createLane())];
        assert.ok(near(mine, own), `${mine} of ${own} ms`);
        assert.ok(near(others, all), `others ${others} of ${all} ms`);
        assert.equal(others === 0, all === 0);
      });

    it("does not count the duration of an attempt as waiting", async () => {
      Math.random = () => 0;
      behave = (socket, _request, nth) => setTimeout(() => socket.write(nth === 1 ? failed(500) : ok), 300);
      await open();
      const { waited, duration } = await show();
      assert.ok(duration - waited >= 590, `waited ${waited} of ${duration} ms`);
    });

    it("fails all waiting requests if Retry-After is longer than five minutes", async () => {
      behave = (socket) => setTimeout(() => socket.write(failed(429, { "Retry-After": "301" })), 50);
      await open({ concurrency: "1" });
      const all = await Promise.all([failure(show()), failure(show())]);
      for (const [i, { code, retryAfter, attempts, uncertain }] of all.entries())
        assert.deepEqual([code, retryAfter, attempts, uncertain], ["SEO_RATE_LIMITED", 301, 1 - i, false]);
      assert.equal(server.requests.length, 1);
    });

    it("reports no effect of a message that waits if a write has failed with so long a limit", async () => {
      const reset = String(Math.ceil(Date.now() / 1000) + 3600);
      behave = (socket) => setTimeout(() => socket.write(failed(503, { "X-RateLimit-Reset": reset })), 50);
      await open({ concurrency: "1" });
      const sent = failure(client.call("seo-report-update", { reportId: "7", update: "1" }));
      const task = createTask(createLane());
      const refused = new Promise<SeoError>((refuse) => client.admit({ task, start() {}, refuse }));
      assert.deepEqual([(await sent).uncertain, (await refused).uncertain], [true, false]);
    });

    it("sends nothing more through a canceled lane, and reports the attempts", async () => {
      Math.random = () => 0;
      behave = (socket) => socket.write(failed(500));
      await open();
      const lane = createLane();
      // The attempt has failed, and the retry is not queued yet.
      lane.changed = () => {
        if (server.requests.length === 1 && lane.running === 0) client.cancel(lane);
      };
      const sent = client.call("seo-report-update", { reportId: "7" }, { task: createTask(lane) });
      assert.deepEqual(await end(sent), ["SEO_CANCELLED", 1, true]);
      assert.deepEqual(await end(show(lane)), ["SEO_CANCELLED", 0, false]);
      assert.equal(server.requests.length, 1);
    });
  });

  const html = answer(404, "<h1>404 Not Found</h1>");
  for (const [what, first, second, found] of [
    ["was lost", undefined, failed(404), true],
    ["was lost, and the 404 is a web page", undefined, html, false],
    ["was rate limited", failed(429, { "Retry-After": "0" }), failed(404), false],
  ] as const)
    it(`treats the service's 404 as success only if an earlier attempt may have deleted the record: the first ${what}`, async () => {
      for (const [type, input, record] of [
        ["seo-report-delete", { reportId: "7" }, { id: 7, object: "report" }],
        ["seo-report-delete", { reportId: "a7" }, { id: "a7", object: "report" }],
        ["seo-project-delete", { project: "7" }, { project: "7", object: "project" }],
        ["seo-report-update", { reportId: "7" }, undefined],
      ] as const) {
        stopBackOff();
        let nth = 0;
        behave = (socket) => {
          if (++nth > 1) socket.write(second);
          else if (first) socket.write(first);
          else socket.destroy();
        };
        await open();
        const sent = client.call(type, input);
        if (found && record) {
          const { duration, waited, ...rest } = await sent;
          const body = { ...record, deleted: true, status: 200 };
          assert.deepEqual(rest, { body, statusCode: 404, headers: {}, attempts: 2, alreadyDeleted: true });
          assert.ok(duration >= waited);
        } else {
          assert.deepEqual(await end(sent), ["SEO_NOT_FOUND", 2, first === undefined]);
        }
      }
    });

  describe("given messages", () => {
    /** A message of `lane` that records how it ended, and sends a request on demand. */
    const admit = (lane = createLane()) => {
      const message = {
        ...createTask(lane),
        get task(): Task {
          return message;
        },
        started: false,
        refused: "",
        start() {
          message.started = true;
        },
        refuse({ code }: SeoError) {
          message.refused = code;
        },
      };
      client.admit(message);
      return message;
    };

    it("cancels the other requests of a message that has ended: in flight, queued, and between attempts", async () => {
      Math.random = () => 1;
      behave = (socket, { path }) => {
        if (path.endsWith("/8")) socket.write(failed(500));
      };
      await open({ concurrency: "2" });
      const [message, other] = [admit(), admit()];
      const call = (reportId: string) => end(client.call("seo-report-show", { reportId }, { task: message }));
      const failing = call("8");
      const kept = client.call("seo-report-show", { reportId: "9" }, { task: other });
      await requests(2);
      while (message.lane.waiting === 0) await late(1);
      const inFlight = call("7");
      const queued = call("6");
      await requests(3);
      assert.equal(message.pending, 3);
      behave = (socket) => socket.write(ok);
      client.end(message);
      await late(1);
      assert.equal(message.pending, 0);
      const canceled = (attempts: number) => ["SEO_CANCELLED", attempts, false];
      const ends = await Promise.all([failing, inFlight, queued]);
      assert.deepEqual(ends, [canceled(1), canceled(1), canceled(0)]);
      assert.deepEqual(await call("5"), canceled(0));
      assert.deepEqual([other.pending, server.requests.length], [1, 3]);
      client.end(other);
      await assert.rejects(kept, { code: "SEO_CANCELLED" });
    });

    it("rejects a message whose lane or client is closed, and sends nothing", async () => {
      await open();
      const lane = createLane();
      client.cancel(lane);
      assert.deepEqual([admit(lane).refused, admit(lane).started], ["SEO_CANCELLED", false]);
      await client.close();
      assert.equal(admit().refused, "SEO_CANCELLED");
      assert.equal((await failure(show())).code, "SEO_CANCELLED");
      assert.equal(server.requests.length, 0);
    });

    it("cancels the requests of one lane, in flight and queued, and no others", async () => {
      behave = () => {};
      await open({ concurrency: "2" });
      const [gone, stays] = [createLane(), createLane()];
      const [first, , queued, last] = [show(gone), show(stays), show(gone), show(stays)] as const;
      await requests(2);
      behave = (socket) => socket.write(ok);
      client.cancel(gone);
      assert.deepEqual(await end(first), ["SEO_CANCELLED", 1, false]);
      assert.deepEqual(await end(queued), ["SEO_CANCELLED", 0, false]);
      assert.deepEqual((await last).body, fine);
      assert.equal(stays.running, 1);
    });
  });

  describe("sends", () => {
    for (const { name, type, input, request } of cases)
      it(`the API key, the accepted formats, and a content type only with a form: ${name}`, async () => {
        await open();
        await client.call(type, input);
        const [{ head, method, body } = { head: "", method: "", body: "" }] = server.requests;
        const lines = head.split("\r\n").slice(1);
        const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(": ")));
        const form = request.body !== undefined;
        assert.deepEqual([method, body], [request.method, request.body ?? ""]);
        assert.equal(headers.authorization, `bearer ${KEY}`);
        assert.equal(headers.accept, "application/json");
        assert.equal(headers["accept-encoding"], "gzip, br");
        assert.match(headers["user-agent"] ?? "", /^@seo-reports\/node-red\/\d+\.\d+\.\d+$/);
        assert.equal(headers["content-type"], form ? "application/x-www-form-urlencoded" : undefined);
      });

    it("nothing for a request that was canceled while it was noted as sent", async () => {
      await open();
      const lane = createLane();
      const beforeAttempt = async () => client.cancel(lane);
      const sent = client.call(...SHOW, { task: createTask(lane), durable: { beforeAttempt } });
      assert.deepEqual(await end(sent), ["SEO_CANCELLED", 0, false]);
      assert.equal(server.requests.length, 0);
    });

    it("nothing for a request that was canceled while connecting", async () => {
      const secure = await opened(listen((socket) => socket.write(ok), { certificate: "cert" }));
      const relay = createServer((socket) => {
        setTimeout(() => socket.pipe(reach(secure.port, "127.0.0.1")).pipe(socket), 200);
      });
      const { port } = await opened(openLocally(relay));
      await open({ baseUrl: `https://127.0.0.1:${port}`, tls: { ca: tlsFile("ca") } });
      const lane = createLane();
      const sent = client.call("seo-report-store", { url: "https://example.com" }, { task: createTask(lane) });
      await late(50);
      client.cancel(lane);
      assert.deepEqual(await end(sent), ["SEO_CANCELLED", 1, false]);
      assert.deepEqual((await show()).body, fine);
      assert.equal(secure.requests.length, 1);
    });
  });

  for (const [record, reconcile] of [
    [{ id: { toString: 1 } }, ""],
    [{ id: "a", created_at: { toString: 1 } }, "300"],
  ] as const)
    it(`returns a report that cannot be looked up as it is: ${JSON.stringify(record)}`, async () => {
      behave = (socket) => socket.end(answer(200, JSON.stringify({ data: record })));
      await open({ reconcile });
      const { body } = await client.call("seo-report-store", { url: "example.com" });
      assert.deepEqual(body, { data: record });
    });

  it("names the service and the timeout if a request times out", async () => {
    behave = () => {};
    await open({ timeout: "1", retries: "0" });
    const { message } = await failure(show());
    assert.equal(message, `The service at ${server.url} did not respond within 1 s.`);
  });

  describe("redacts the API key", () => {
    it("in an error that stays certain, however long the page password is", async () => {
      behave = (socket) => socket.write(answer(422, JSON.stringify({ message: `${KEY} said so.` })));
      await open();
      const password = "é".repeat(8192);
      const { message, uncertain } = await failure(
        client.call("seo-report-store", { url: "example.com", privacy: 2, password }),
      );
      assert.deepEqual([message, uncertain], [returned(422, "*** said so."), false]);
    });

    it("unless it is shorter than eight characters", async () => {
      behave = (socket) => socket.write(answer(200, '"of tests"'));
      await open({ apiKey: "tests" });
      assert.equal((await show()).body, "of tests");
    });
  });
});
