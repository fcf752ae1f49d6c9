import assert from "node:assert/strict";
import { inspect } from "node:util";
import { operations } from "../../src/operations.js";
import { answer, type Behaviour, listen } from "../support/faulty.js";
import { failure, node, service, startFlow } from "../support/flow.js";
import { helper } from "../support/red.js";
import { stopBackOff } from "../support/time.js";

const KEY = "canary-key/5f0c1e";
const PASSWORD = "canary-password 77!";
const secret = /canary-(key|password)/;

const types = Object.keys(operations);
const payload = { url: "https://example.com", id: 7, project: "p", privacy: 2, password: PASSWORD };
const nodes = () => types.map((type) => node(type, type));

/** Returns everything it received: in the body, with slashes escaped as PHP does, of a 201 also letters, and in a header. */
const echo =
  (status: number): Behaviour =>
  (socket, { head, body }) => {
    const said = JSON.stringify({
      message: `${head} ${body} ${decodeURIComponent(body.replaceAll("+", " "))}`,
      [KEY]: 1,
    });
    const key = /authorization: (.*)/i.exec(head)?.[1] ?? "";
    const escaped = said.replaceAll("/", "\\/").replaceAll("c", status === 201 ? "\\u0063" : "c");
    socket.end(answer(status, escaped, { "X-Echo": key, Connection: "close" }));
  };

describe("Secrets", () => {
  for (const status of [200, 201, 401, 403, 404, 422, 500, 503]) {
    it(`are redacted from a ${status} response that repeats them`, async () => {
      const server = await listen(echo(status));
      const flow = await startFlow([service("service", server.url, { retries: "0" }), ...nodes()], {
        service: { apiKey: KEY },
      });
      for (const type of types) {
        const { outputs, caught } = await flow.send(type, { payload: { ...payload } });
        const { payload: came, ...rest } = (outputs[0] ?? caught) as Record<string, unknown>;
        assert.doesNotMatch(inspect(rest, { depth: 20 }), secret, type);
        assert.doesNotMatch(inspect(outputs.length > 0 ? came : undefined, { depth: 20 }), secret, type);
        if (outputs.length === 0) assert.deepEqual(came, payload, "a failed message keeps its payload");
      }
      for (const id of ["service", ...types]) assert.doesNotMatch(inspect(helper.getNode(id), { depth: 4 }), secret);
      assert.doesNotMatch(inspect([flow.log, flow.statuses()], { depth: 20 }), secret);
      await flow.stop();
      await server.close();
    });
  }

  /** The names of details in the client's own errors. */
  const words = [
    "uncertain",
    "message",
    "details",
    "transient",
    "attempts",
    "stage",
    "code",
    "statusCode",
    "retryAfter",
  ];

  for (const word of words)
    it(`do not change the outcome if they equal the word ${word}`, async () => {
      const goOn = stopBackOff();
      const server = await listen((socket) => socket.resetAndDestroy());
      const flow = await startFlow([service("service", server.url), node("store", "seo-report-store")], {
        service: { apiKey: word },
      });
      const { seo } = failure(await flow.send("store", { payload: { ...payload, password: word } }));
      const { code, attempts, uncertain } = seo.error;
      assert.deepEqual([code, attempts, uncertain, server.requests.length], ["SEO_NETWORK", 1, true, 1]);
      await flow.stop();
      await server.close();
      goOn();
    });

  for (const password of ["message", "errors", "url", "privacy"])
    it(`do not remove the messages by field if a password is ${password}`, async () => {
      const body = {
        message: "Invalid.",
        errors: { url: ["No host."], privacy: [`Not ${password}.`] },
        [`a ${password}`]: 1,
      };
      const server = await listen((socket) => socket.end(answer(422, JSON.stringify(body), { Connection: "close" })));
      const flow = await startFlow([service("service", server.url), node("store", "seo-report-store")], {
        service: { apiKey: KEY },
      });
      const { error } = failure(await flow.send("store", { payload: { ...payload, password } })).seo;
      assert.deepEqual(error.fields, { url: ["No host."], privacy: ["Not ***."] });
      assert.equal(error.message, "The service rejected the request (422): url: No host. privacy: Not ***.");
      assert.ok(Object.hasOwn(error.body as object, "a ***"));
      await flow.stop();
      await server.close();
    });

  it("are sent only to the configured service, whatever another node does with the SEO service node", async () => {
    const stranger = await listen((socket) => socket.end());
    const server = await listen((socket) => socket.end(answer(200, '{"data":{}}', { Connection: "close" })));
    const flow = await startFlow([service("service", server.url), node("show", "seo-report-show")], {
      service: { apiKey: KEY },
    });
    const own = helper.getNode("service") as unknown as Record<string, unknown>;
    const strange = { baseUrl: stranger.url, proxy: "", tls: "" };
    Object.assign(own, strange, { settings: strange, config: strange });
    for (const [name, member] of Object.entries(own)) {
      if (typeof member !== "function" || name.startsWith("_")) continue;
      for (const args of [[strange], [{ settings: strange }], [stranger.url]]) {
        try {
          const client = (await member.apply(own, args)) as { call?: (...args: unknown[]) => Promise<unknown> };
          await client?.call?.("seo-report-show", { reportId: "7" }).catch(() => {});
        } catch {}
      }
    }
    await flow.send("show", { payload: 7 });
    assert.equal(stranger.connections, 0);
    assert.equal(server.requests.length > 0, true);
    await flow.stop();
    await server.close();
    await stranger.close();
  });
});
