import assert from "node:assert/strict";
import { describeExample, json, tooMany } from "../support/examples.js";

const TYPE = { "content-type": "application/json" };
const codes = (errors: unknown) => (errors as { code: string }[]).map(({ code }) => code);

describeExample("10 - Catch and route", ({ up, standIn, deploy, press, red }) => {
  async function start(url: string, tab = {}) {
    await deploy(url, { tab: { RETRIES: 2, ...tab } });
    return press("store a page");
  }

  it("lets a success pass, and shows why a bad URL is rejected", async () => {
    const { url } = await up({ reports: 0 });
    const { stored: [stored] = [], ...rest } = await start(url);
    assert.deepEqual([(stored as { data: { id: number } }).data.id, rest], [1, {}]);
    assert.deepEqual(codes((await press("store a bad URL"))["rejected: see its fields"]), ["SEO_REJECTED"]);
  });

  const kinds: [status: number, headers: Record<string, string>, body: string, code: string, output: string][] = [
    [401, {}, '{"message":"Unauthenticated."}', "SEO_UNAUTHORIZED", "API key: tell the owner"],
    [403, {}, '{"message":"No."}', "SEO_FORBIDDEN", "API key: tell the owner"],
    [422, {}, '{"message":{"url":["It is invalid."]}}', "SEO_REJECTED", "rejected: see its fields"],
    [503, { "retry-after": "0" }, "{}", "SEO_SERVER", "gave up"],
    [429, { "retry-after": "0" }, "{}", "SEO_RATE_LIMITED", "gave up"],
    [504, {}, "", "SEO_SERVER", "check before retrying"],
    [200, { "content-type": "text/html" }, "<html></html>", "SEO_RESPONSE", "check before retrying"],
    [302, { location: "/login" }, "", "SEO_RESPONSE", "anything else"],
  ];
  for (const [status, headers, body, code, output] of kinds) {
    it(`sends a ${status} to "${output}"`, async () => {
      const service = await standIn(() => ({ status, headers: { ...TYPE, ...headers }, body }));
      const outputs = await start(service.url);
      assert.deepEqual([Object.keys(outputs), codes(outputs[output])], [[output], [code]]);
      assert.equal(service.asked.length, output === "gave up" ? 3 : 1);
    });
  }

  it("retries if no report can have been created", async () => {
    let asked = 0;
    const service = await standIn(() =>
      asked++ === 0 ? { ...tooMany(), headers: { "retry-after": "0" } } : json(201, { data: { id: 1 } }),
    );
    assert.deepEqual(await start(service.url), { stored: [{ data: { id: 1 } }] });
  });

  it("retries while the service is down, and gives up", async () => {
    const outputs = await start("http://127.0.0.1:1", { WAIT: 0 });
    assert.deepEqual([Object.keys(outputs), codes(outputs["gave up"])], [["gave up"], ["SEO_NETWORK"]]);
  });

  it("gives up at once if the service returned a wait of 30 days, for which no timer can be set", async () => {
    const service = await standIn(() => ({ ...tooMany(), headers: { ...TYPE, "retry-after": "2592000" } }));
    const outputs = await start(service.url);
    assert.deepEqual([Object.keys(outputs), codes(outputs["gave up"])], [["gave up"], ["SEO_RATE_LIMITED"]]);
    assert.equal(service.asked.length, 1);
  });

  it("waits for the time that the service returned", async () => {
    await deploy((await standIn(tooMany)).url);
    await red().inject("store a page");
    await red().outputs(({ open }) => open.wait === 1, { except: ["wait"] });
  });
});
