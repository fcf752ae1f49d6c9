import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../dev/nodered.js";
import { readExamples, setScene } from "../support/examples.js";

/** The sentences that name a setting which has no default. */
const GUARDS =
  /^Set the environment variable REPORT_PASSWORD\b|^The environment variable SEO_QUEUE_URL \(URL\) is not set\./;
/** Buttons that only prepare something. */
const SILENT = ["at the start", "every minute"];

describe("the first click in the sandbox, without any setting", function () {
  this.timeout(180_000);
  const { up, deploy, file, red, quiet } = setScene();

  for (const [title, nodes] of readExamples("examples")) {
    it(`shows a result or what is missing: ${title}`, async () => {
      copyFileSync(join(root, "examples/urls.csv"), file("urls.csv"));
      await deploy(nodes, (await up({ now: Date.now })).url, {
        env: { SLACK_WEBHOOK_URL: "", REPORT_PASSWORD: "" },
      });
      const buttons = nodes.filter(({ type }) => type === "inject");
      // What Node-RED triggers at the start comes first.
      for (const { name = "" } of buttons.sort((a, b) => Number(b.once) - Number(a.once))) {
        await red().inject(name);
        const { error = [], ...outputs } = await red().outputs(
          ({ received, shown }) => received > 0 && (shown.length > 0 || SILENT.includes(name)),
        );
        for (const text of error) assert.match(String(text), GUARDS);
        assert.deepEqual(
          Object.keys(outputs).filter((output) => /^not (sent|written)|^no sitemap/.test(output)),
          [],
        );
        const shown = error.length + Object.keys(outputs).length;
        assert.ok(shown > 0 || SILENT.includes(name), `${name} shows nothing`);
      }
      quiet();
    });
  }
});
