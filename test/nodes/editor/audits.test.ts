import assert from "node:assert/strict";
import type { AxeResults } from "axe-core";
import { nodeRed } from "../../../dev/nodered.js";
import { needChromium } from "../../support/chromium.js";
import { textOf } from "../../support/editor-page.js";
import { startWorkbench, type Workbench } from "../../support/workbench.js";

/** The part of Node-RED's editor that the test uses. */
declare const RED: {
  sidebar: { show(id: string): void };
  user: { hasPermission(right: string): boolean };
  nodes: {
    node(id: string): { highlighted?: boolean } | null;
    removeNodeSet(id: string): object;
    addNodeSet(set: object): void;
  };
};
declare const $: { (body: HTMLElement): { append(html: string): void }; get(url: string): Promise<string> };
declare const axe: { run(context: unknown): Promise<AxeResults> };

const place = (id: string, type: string, more: object) => ({ id, type, z: "tab", x: 300, y: 100, wires: [], ...more });
const list = [...Array.from({ length: 60 }, (_, i) => `https://example.com/${i}`), "no url", "=1"];

describe("The tab of audits", () => {
  let bench: Workbench;

  before(async function () {
    const chromium = needChromium() ?? this.skip();
    const flows = [
      { id: "tab", type: "tab", label: "" },
      { id: "service", type: "seo-service", name: "", baseUrl: "${SEO_BASE_URL}", concurrency: "4" },
      { id: "sub", type: "subflow", name: "Weekly", in: [{ x: 50, y: 50, wires: [{ id: "own" }] }], out: [] },
      place("own", "seo-report-audit", { z: "sub", service: "service", name: "pages", existing: "create" }),
      place("inst", "subflow:sub", {}),
      place("start", "inject", {
        y: 200,
        props: [{ p: "payload" }, { p: "topic", vt: "str" }],
        payload: JSON.stringify(list),
        payloadType: "json",
        topic: "<b>spring</b>",
        wires: [["inst"]],
      }),
    ];
    const credentials = { service: { apiKey: "${SEO_API_KEY}" } };
    bench = await startWorkbench(chromium, { flows, credentials, service: { latency: 250 } });
  });
  after(async () => {
    await bench?.stop();
  });

  const find = (selector: string) => bench.editor.page.locator(`.seo-audits ${selector}`);
  const press = (name: string) =>
    bench.editor.page.locator(".seo-audits button:visible", { hasText: name }).last().click();
  const shows = (text: string | RegExp) => find("section").filter({ hasText: text }).waitFor();
  const violations = () =>
    bench.editor.page.evaluate(async () => {
      const { violations } = await axe.run(document.querySelector(".seo-audits"));
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => [id, html, failureSummary]));
    });
  let polls = 0;

  it("says how to start an audit, and requests nothing while it is hidden", async () => {
    const { page } = bench.editor;
    page.on("request", (request) => {
      if (request.url().includes("/seo-report-audit/batches")) polls++;
    });
    await page.waitForTimeout(1200);
    assert.equal(polls, 0);
    await page.evaluate(() => RED.sidebar.show("seo-audits"));
    await find("p:visible").filter({ hasText: "No audits yet." }).waitFor();
    assert.deepEqual(await violations(), []);
  });

  it("pauses and resumes an audit in a subflow, and shows its rows that have failed", async () => {
    const { page } = bench.editor;
    await page.locator('[id="start"] .red-ui-flow-node-button-button').click();
    await shows(/\d+ of 62 · [\d.]+ a minute/);
    await press("Pause");
    await shows("paused");
    const spoken = await textOf(find(".seo-spoken"));
    assert.match(spoken, /^Weekly: pages · <b>spring<\/b> · paused · continues with “Resume” · \d+ of/);
    assert.match(String(await find("[role=progressbar]").getAttribute("aria-valuetext")), /^\d+ of 62$/);
    // Only the card above its rows has room.
    await find("section").evaluate((card) => {
      const tab = card.closest<HTMLElement>(".seo-audits");
      if (tab) tab.style.height = `${card.getBoundingClientRect().height}px`;
    });
    await find("summary").press("Enter");
    await find("li").nth(1).waitFor();
    await page.waitForFunction(() => Number(document.querySelector(".seo-audits")?.scrollTop) > 0);
    assert.match(await textOf(find("li").first()), /^no urlThe URL must be the address of a web page/);
    await bench.editor.page.evaluate(() => {
      document.addEventListener("copy", () => {
        document.title = (document.activeElement as HTMLTextAreaElement).value;
      });
    });
    await press("Copy as CSV");
    await shows("Copied rows: 2");
    assert.match(await page.title(), /"61","'=1","failed"/);
    for (const dark of nodeRed().name === "node-red" ? [false, true] : [false]) {
      await page.evaluate((on) => document.documentElement.classList.toggle("nr-theme-dark", on), dark);
      assert.deepEqual(await violations(), []);
    }
    await page.evaluate(() => document.documentElement.classList.remove("nr-theme-dark"));
    await press("Weekly: pages");
    // It blinks.
    await page.waitForFunction(() => RED.nodes.node("inst")?.highlighted);
    await press("Resume");
    await shows(/a minute/);
    assert.equal(await find("li").count(), 2);
    assert.equal(await find("button:visible").filter({ hasText: "Retry" }).count(), 0);
  });

  it("fits into the narrowest sidebar, and is used by keyboard", async () => {
    const { page } = bench.editor;
    const wide = await page.evaluate(() => {
      const content = document.querySelector<HTMLElement>(".seo-audits");
      if (!content) return [];
      content.style.width = "150px";
      const { scrollWidth, clientWidth } = content;
      content.style.width = "";
      return [scrollWidth, clientWidth];
    });
    assert.equal(wide[0], wide[1]);
    const around = await page.evaluate(() => {
      const scrolling: string[] = [];
      let one = document.querySelector(".seo-audits")?.parentElement;
      for (; one && one !== document.body; one = one.parentElement)
        if (one.scrollHeight > one.clientHeight) scrolling.push(one.className);
      return scrolling;
    });
    assert.deepEqual(around, [], "only the tab scrolls");
    await find("button:visible").filter({ hasText: "Pause" }).press("Enter");
    await shows("paused");
    assert.equal(await textOf(find("button:focus")), "Resume");
    const questions: string[] = [];
    const reset = async (accepts: boolean) => {
      const asked = page.waitForEvent("dialog");
      const pressed = find("button:visible").filter({ hasText: "Reset" }).press("Enter");
      const dialog = await asked;
      questions.push(dialog.message());
      await (accepts ? dialog.accept() : dialog.dismiss());
      await pressed;
    };
    // The pages in flight at the pause end.
    await page.waitForTimeout(2000);
    await reset(false);
    await shows("paused");
    await reset(true);
    await shows(/ · \d+ dropped/);
    assert.match(String(questions[0]), /^<b>spring<\/b>\n\nWaiting pages that will be dropped: up to \d+\./);
    assert.equal(questions[1], questions[0]);
  });

  it("shows each figure, and only what can be done with the batch", async () => {
    const { page } = bench.editor;
    const outcomes = { created: 0, regenerated: 0, fresh: 0, failed: 0, uncertain: 0 };
    const none = { ...outcomes, invalid: 0, reconciling: 0, dropped: 0 };
    const given = { node: "inst-own", batch: "given", total: 3000, perMinute: 265, paused: false, finished: false };
    const respond = (progress: object) =>
      page.route("**/seo-report-audit/batches", (route) =>
        route.fulfill({ json: [{ ...given, ...none, ...progress }] }),
      );
    const buttons = () => find("button:visible").allTextContents();
    const open = { done: 2277, created: 2275, failed: 2, waiting: 723 };
    await respond({ ...open, secondsLeft: 19, secondsToWait: 4, reconciling: 23 });
    await shows("2,277 of 3,000 · 265 a minute · 19 s left · waiting 4 s · 23 reconciling");
    assert.deepEqual(await buttons(), ["Weekly: pages", "Pause", "Retry failed", "Reset"]);
    const asked = page.waitForEvent("dialog");
    const pressed = press("Reset");
    const dialog = await asked;
    const dropped = "Waiting pages that will be dropped: up to 723.";
    assert.equal(dialog.message(), `given\n\n${dropped} Failed pages can then no longer be retried.`);
    await dialog.dismiss();
    await pressed;
    await respond({ ...open, paused: "Within 15 minutes, or at msg.resume.", reason: "disk" });
    await shows("not saved, check disk and folder · Within 15 minutes, or at “Resume”.");
    await respond({ ...open, reason: "plan" });
    await shows("reading the account's reports");
    const reset = { waiting: 3, reconciling: 3, dropped: 720, reset: true };
    await respond({ ...open, ...reset });
    await shows("2,277 of 3,000 · 3 reconciling · 720 dropped");
    assert.match(await textOf(find(".seo-spoken")), / 720 dropped$/);
    assert.deepEqual(await buttons(), ["Weekly: pages"]);
    await shows("Failed rows (2)");
    await respond({ ...open, ...reset, done: 2280, waiting: 0, reconciling: 0, finished: true });
    await shows("finished");
    assert.equal(await find("summary:visible").count(), 0);
    await respond({ done: 3000, created: 2998, failed: 2, waiting: 0, perMinute: 0, finished: true });
    await shows("3,000 of 3,000 · finished");
    assert.deepEqual(await buttons(), ["Weekly: pages", "Retry failed", "Reset"]);
    await page.route("**/seo-report-audit/*", (route) => route.abort());
    await press("Retry");
    await shows("No response from Node-RED.");
    await page.unrouteAll();
    await find("section").filter({ hasText: "No response" }).waitFor({ state: "detached" });
    assert.equal(await textOf(find(".seo-spoken")), "given · removed");
    assert.ok(bench.editor.complaints.splice(0).every((text) => text.includes("net::ERR_FAILED")));
  });

  it("shows only figures to a user without the right to write, and nothing without the right to read", async () => {
    const { page } = bench.editor;
    const allow = (right: string) =>
      page.evaluate((only) => {
        RED.user.hasPermission = (one) => one === only;
      }, right);
    await allow("seo-report-audit.read");
    await find("button:visible").filter({ hasText: "Reset" }).waitFor({ state: "detached" });
    await allow("");
    await find("p:visible").filter({ hasText: "permission" }).waitFor();
    const before = polls;
    await page.waitForTimeout(1500);
    assert.equal(polls, before);
    await page.evaluate(() => {
      RED.user.hasPermission = () => true;
    });
    const status = async (path: string, user?: string, body?: object) => (await bench.ask(path, user, body)).status;
    assert.equal(await status("seo-report-audit/batches"), 401);
    assert.equal(await status("seo-report-audit/rows?node=inst-own&batch=a"), 401);
    assert.equal(await status("seo-report-audit/batches", "reader"), 200);
    assert.equal(await status("seo-report-audit/control", "reader", {}), 401);
  });

  it("is opened by the edit dialog, removed with the package, and shown again when that is installed again", async () => {
    const { editor } = bench;
    const { page } = editor;
    await page.evaluate(() => RED.sidebar.show("info"));
    await find("section").waitFor({ state: "hidden" });
    const dialog = await editor.edit(await editor.drag("seo-report-audit", 300, 300));
    await dialog.tray.getByRole("button", { name: "Show in sidebar" }).click();
    await find("section").waitFor();
    await dialog.cancel();
    const set = await page.evaluate(() => RED.nodes.removeNodeSet("@seo-reports/node-red/seo-reports"));
    await find("section").waitFor({ state: "detached" });
    const before = polls;
    await page.waitForTimeout(1500);
    assert.equal(polls, before);
    await page.evaluate(async (one) => {
      RED.nodes.addNodeSet(one);
      $(document.body).append(await $.get("nodes/@seo-reports/node-red/seo-reports"));
      RED.sidebar.show("seo-audits");
    }, set);
    await find("section").waitFor();
    assert.equal(await page.locator(".seo-audits").count(), 1);
    assert.deepEqual(editor.complaints, []);
  });
});
