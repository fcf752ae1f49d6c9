import { join } from "node:path";
import { needChromium } from "../test/support/chromium.js";
import type { Editor } from "../test/support/driver.js";
import { readExamples } from "../test/support/examples.js";
import { startWorkbench } from "../test/support/workbench.js";
import { bounds } from "./bounds.js";
import { root } from "./nodered.js";

/** `node dist/dev/pictures.js [name...]`: takes a picture of the flow of every example for examples/README.md. */
declare const RED: Editor & { workspaces: { show(id: string): void } };

const wanted = process.argv.slice(2);
const examples = readExamples("examples");
/** Examples share config nodes. */
const flows = [...new Map(examples.flatMap(([, nodes]) => nodes.map((node) => [node.id, node]))).values()];

const chromium = needChromium();
if (!chromium) process.exit(1);
const bench = await startWorkbench(chromium, { all: true, flows, scale: 1.25 });
try {
  const { page } = bench.editor;
  await page.setViewportSize({ width: 2200, height: 1200 });
  for (const action of ["core:toggle-sidebar", "core:toggle-palette", "core:toggle-status", "core:toggle-show-grid"])
    await page.evaluate((name) => RED.actions.invoke(name, false), action);
  for (const [title, nodes] of examples) {
    if (wanted.length > 0 && !wanted.some((part) => title.startsWith(part))) continue;
    const tab = nodes.find(({ type }) => type === "tab")?.id ?? "";
    await page.evaluate((id) => RED.workspaces.show(id), tab);
    await page.screenshot({ path: join(root, `docs/pictures/${title.split(" ")[0]}.png`), clip: await bounds(page) });
    console.log(title);
  }
} finally {
  await bench.stop();
}
