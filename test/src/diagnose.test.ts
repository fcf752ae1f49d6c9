import assert from "node:assert/strict";
import { createClient } from "../../src/client.js";
import { diagnose, explain } from "../../src/diagnose.js";
import { SeoError, type Stage } from "../../src/errors.js";
import { answer, type Behaviour, deadUrl, type ListenOptions, listen } from "../support/faulty.js";
import { closeAfterEach } from "../support/opened.js";

const page = (status: number, text = "<!doctype html><title>Welcome</title>", headers = {}) =>
  answer(status, text, { "Content-Type": "text/html", ...headers });

/** What is wrong, how the server behaves then, and the stage that is reported. */
const rows: Record<
  string,
  { says?: Buffer; server?: ListenOptions; baseUrl?: string; settings?: object; stage: Stage; values?: object }
> = {
  "an unknown host": { baseUrl: "http://no-such-host.invalid", stage: "name" },
  "a closed port": { baseUrl: deadUrl, stage: "connect" },
  "an https URL of a server without TLS": {
    server: { scheme: "https", connected: (socket) => socket.once("data", () => socket.end(page(400))) },
    stage: "tls",
  },
  "an untrusted certificate": { server: { certificate: "cert" }, stage: "tls" },
  "a proxy that is down": { settings: { proxy: { url: deadUrl, except: [] } }, stage: "proxy" },
  "no response": { server: { connected: (socket) => socket.pause() }, settings: { timeout: "1" }, stage: "time" },
  "a redirect to https": {
    says: page(301, "", { Location: "https://127.0.0.1/" }),
    stage: "redirect",
    values: { status: 301, target: "https://127.0.0.1" },
  },
  "an invalid API key": { says: answer(401, '{"message":"Unauthenticated."}'), stage: "key", values: { status: 401 } },
  "a wrong path": { says: page(404), stage: "path" },
  "HTML with 200": { says: page(200), stage: "answer" },
  "JSON without reports": { says: answer(200, '{"hello":"world"}'), stage: "answer" },
  "a server error": { says: page(500), stage: "service" },
  "no problem": {
    says: answer(200, '{"data":[{"id":1}],"meta":{"total":37,"current_page":1,"last_page":4}}'),
    stage: "done",
    values: { count: 37 },
  },
};

describe("The connection test", () => {
  const open = closeAfterEach();

  for (const [name, { says = page(200), server: options, baseUrl, settings, stage, values }] of Object.entries(rows))
    it(`reports the stage: ${name}`, async () => {
      const behave: Behaviour = (socket) => stage !== "time" && socket.write(says);
      const server = await open(listen(behave, options));
      const place = { baseUrl: baseUrl ?? server.url, apiKey: "canary-key" };
      const found = await diagnose(await open(createClient({ ...place, retries: "0", ...settings })));
      assert.deepEqual([found.stage, found.ok], [stage, stage === "done"]);
      assert.deepEqual(found.values, { ...found.values, ...values });
      assert.doesNotMatch(JSON.stringify(found), /canary-key/);
    });

  it("names the URL that was requested", async () => {
    const server = await open(listen((socket) => socket.write(page(404))));
    const client = await open(createClient({ baseUrl: `${server.url}/seo/`, apiKey: "canary-key", retries: "0" }));
    const { values } = await diagnose(client);
    assert.deepEqual(values, { status: 404, url: `${server.url}/seo/api/v1/reports` });
  });

  it("distinguishes a configuration error from an unexpected error, and quotes neither", () => {
    const config = new SeoError("SEO_CONFIG", "No key.");
    assert.deepEqual(explain(config), { ok: false, stage: "config", values: { status: "" } });
    assert.deepEqual(explain(new Error("secret")), { ok: false, stage: "unknown", values: {} });
  });
});
