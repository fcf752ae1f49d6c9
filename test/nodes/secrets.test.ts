import assert from "node:assert/strict";
import { inspect } from "node:util";
import { operations } from "../../src/operations.js";
import { answer, type Behaviour, listen } from "../support/faulty.js";
import { failure, node, service, startFlow } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";
import { helper } from "../support/red.js";

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
  const open = closeAfterEach();

  for (const status of [200, 201, 401, 403, 404, 422, 500, 503]) {
    it(`are redacted from a ${status} response that repeats them`, async () => {
      const all = [service("service", (await open(listen(echo(status)))).url, { retries: "0" }), ...nodes()];
      const flow = await open(startFlow(all, { service: { apiKey: KEY } }));
      for (const type of types) {
        const { outputs, caught } = await flow.send(type, { payload: { ...payload } });
        const { payload: came, ...rest } = (outputs[0] ?? caught) as Record<string, unknown>;
        assert.doesNotMatch(inspect(rest, { depth: 20 }), secret, type);
        assert.doesNotMatch(inspect(outputs.length > 0 ? came : undefined, { depth: 20 }), secret, type);
        if (outputs.length === 0) assert.deepEqual(came, payload, "a failed message keeps its payload");
      }
      for (const id of ["service", ...types]) assert.doesNotMatch(inspect(helper.getNode(id), { depth: 4 }), secret);
      assert.doesNotMatch(inspect([flow.log, flow.statuses()], { depth: 20 }), secret);
    });
  }

  it("do not change the outcome if they equal the name of a detail in the client's own errors", async () => {
    const words = ["uncertain", "message", "details", "transient", "attempts"];
    words.push("stage", "code", "statusCode", "retryAfter");
    const server = await open(listen((socket) => socket.resetAndDestroy()));
    const stores = words.flatMap((word) => [
      service(`service-${word}`, server.url),
      node(word, "seo-report-store", { service: `service-${word}` }),
    ]);
    const keys = words.map((word) => [`service-${word}`, { apiKey: word }]);
    const flow = await open(startFlow(stores, Object.fromEntries(keys)));
    for (const [before, word] of words.entries()) {
      const { seo } = failure(await flow.send(word, { payload: { ...payload, password: word } }));
      const { code, attempts, uncertain } = seo.error;
      assert.deepEqual([code, attempts, uncertain], ["SEO_NETWORK", 1, true], word);
      assert.equal(server.requests.length, before + 1, word);
    }
  });

  it("are sent only to the configured service, whatever another node does with the SEO service node", async () => {
    const stranger = await open(listen((socket) => socket.end()));
    const server = await open(listen((socket) => socket.end(answer(200, '{"data":{}}', { Connection: "close" }))));
    const all = [service("service", server.url), node("show", "seo-report-show")];
    const flow = await open(startFlow(all, { service: { apiKey: KEY } }));
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
  });
});
