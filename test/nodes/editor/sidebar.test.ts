import assert from "node:assert/strict";
import { needChromium } from "../../support/chromium.js";
import { startWorkbench } from "../../support/workbench.js";

/** The part of Node-RED's editor that the test uses. */
declare const RED: { sidebar: { show(id: string): void } };

const place = (id: string, type: string, x: number, more: object) => ({ id, type, z: "tab", x, y: 100, ...more });

describe("The debug sidebar", () => {
  it("shows the whole sentence of an error without a Catch node", async function () {
    const chromium = needChromium();
    if (!chromium) return this.skip();
    const flows = [
      { id: "tab", type: "tab", label: "" },
      { id: "service", type: "seo-service", name: "", baseUrl: "${SEO_BASE_URL}" },
      place("inject", "inject", 150, { props: [{ p: "payload" }], payloadType: "date", wires: [["list"]] }),
      place("list", "seo-report-list", 400, {
        service: "service",
        result: "x".repeat(50),
        resultType: "str",
        wires: [[]],
      }),
    ];
    const bench = await startWorkbench(chromium, { flows, credentials: { service: { apiKey: "${SEO_API_KEY}" } } });
    try {
      const { page } = bench.editor;
      await page.evaluate(() => RED.sidebar.show("debug"));
      await page.locator('[id="inject"] .red-ui-flow-node-button-button').click();
      const shown = page.locator(".red-ui-debug-msg-payload").first();
      await shown.waitFor();
      const sentence = `result must be one of good, decent, bad; the node's result is "${"x".repeat(50)}".`;
      assert.ok(sentence.length > 80);
      assert.equal((await shown.textContent())?.trim(), sentence);
      const kind = await page.locator(".red-ui-debug-msg-topic").first().textContent();
      assert.equal(kind?.trim(), "msg : Object");
    } finally {
      await bench.stop();
    }
  });
});
