import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as late } from "node:timers/promises";
import { root } from "../../dev/nodered.js";
import { readExamples, setScene } from "../support/examples.js";

/** The sentences that name a setting which has no default. */
const GUARDS =
  /^Set the environment variable REPORT_PASSWORD\b|^The environment variable SEO_QUEUE_URL \(URL\) is not set\./;
/** Buttons that only prepare what another one shows: the number of the example, and the button. */
const SILENT = ["18 every day", "18 send", "20 send"];

describe("the first click in the sandbox, without any setting", () => {
  const { up, deploy, file, red, quiet } = setScene();

  for (const [title, nodes] of readExamples("examples")) {
    it(`shows a result or what is missing: ${title}`, async () => {
      copyFileSync(join(root, "examples/urls.csv"), file("urls.csv"));
      const sandbox = await up({ now: Date.now });
      await deploy(nodes, sandbox.url, {
        intervals: true,
        env: { SLACK_WEBHOOK_URL: "", REPORT_PASSWORD: "", AI_API_KEY: "", SHEETS_URL: "" },
      });
      while (nodes.some(({ interval }) => interval) && sandbox.requests.length === 0) await late(20);
      const buttons = nodes.filter(({ type }) => /^(inject|ui-button)$/.test(type));
      // Nodes that Node-RED triggers at the start come first.
      for (const { name = "" } of buttons.sort((a, b) => Number(b.once) - Number(a.once))) {
        const silent = SILENT.includes(`${title.slice(0, 2)} ${name}`);
        await red().inject(name);
        const { error = [], ...outputs } = await red().outputs(
          ({ received, shown }) => received > 0 && (shown.length > 0 || silent),
        );
        for (const text of error) assert.match(String(text), GUARDS);
        assert.deepEqual(
          Object.keys(outputs).filter((output) => /^not (sent|written)|^no sitemap/.test(output)),
          [],
        );
        for (const [output, values] of Object.entries(outputs))
          for (const value of values)
            assert.ok(!Array.isArray(value) || value.length > 0, `${name}: ${output} shows an empty array`);
        const shown = error.length + Object.keys(outputs).length;
        assert.ok(shown > 0 || silent, `${name} shows nothing`);
      }
      quiet();
    });
  }
});
