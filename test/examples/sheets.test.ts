import assert from "node:assert/strict";
import vm from "node:vm";
import { batchEnded, describeExample, json, only } from "../support/examples.js";
import type { FlowNode } from "../support/red.js";

const TODAY = new Date().toISOString().slice(0, 10);
const PROJECT = "example.com";
const BUTTON = "Mondays";
const HEADER = ["batch", "url", "report", "score", "outcome", "error"];

type Cell = string | number | null;

/** A spreadsheet's reading of an entered value: an apostrophe marks text; formulas run, and dates are shown as the country does. */
function entered(value: Cell): string {
  if (typeof value !== "string") return String(value ?? "");
  if (value.startsWith("'")) return value.slice(1);
  if (/^[=+\-@]/.test(value)) return "#FORMULA";
  return value.replace(/^(\d{4})-(\d\d)-(\d\d)$/, "$2/$3/$1");
}

/** The script of the comment, and the sheet that it writes. */
function runScript(comment: FlowNode | undefined) {
  const rows: string[][] = [];
  let locked = false;
  const sheet = {
    getLastRow: () => rows.length,
    appendRow: (row: Cell[]) => rows.push(Array.from(row, entered)),
    getRange: (row: number, column: number, height: number, width: number) => ({
      getDisplayValues: () =>
        rows.slice(row - 1, row - 1 + height).map((cells) => cells.slice(column - 1, column - 1 + width)),
      setValues(values: Cell[][]) {
        assert.deepEqual([values.length, values[0]?.length, column], [height, width, 1]);
        assert.ok(locked && row <= rows.length + 1);
        rows[row - 1] = Array.from(values[0] ?? [], entered);
      },
    }),
  };
  const globals = {
    LockService: {
      getScriptLock: () => ({
        waitLock: () => {
          locked = true;
        },
        releaseLock: () => {
          locked = false;
        },
      }),
    },
    SpreadsheetApp: { getActiveSpreadsheet: () => ({ getSheets: () => [sheet] }), flush: () => {} },
    ContentService: {
      MimeType: { JSON: "application/json" },
      createTextOutput: (text: string) => ({ setMimeType: (type: string) => ({ text, type }) }),
    },
  };
  const [, script = ""] = /```js\n(.*)\n```/s.exec(String(comment?.info)) ?? [];
  const { doPost } = vm.runInNewContext(`${script}\n({ doPost })`, globals) as {
    doPost(event: object): { text: string; type: string };
  };
  return { rows, post: (contents: string) => doPost({ postData: { contents } }) };
}

describeExample("20 - Google Sheets", ({ example, up, standIn, deploy, press, unavailable }) => {
  /**
   * A web app that runs the script and redirects to its output, as Apps Script does: /exec takes effect, and /echo accepts
   * only a GET. `fault` replaces a response after the request took effect.
   */
  async function startWebApp() {
    const { rows, post } = runScript(example[1]);
    const outputs: string[] = [];
    const app = { rows, fault: undefined as ReturnType<typeof json> | undefined };
    const { url, asked } = await standIn(({ method, path, body }) => {
      if (path === "/exec" && method === "POST") {
        outputs.push(post(body).text);
        return app.fault ?? { status: 302, headers: { location: `${url}/echo?${outputs.length - 1}` } };
      }
      if (method !== "GET") return { status: 405, body: "Method Not Allowed" };
      return { headers: { "content-type": "application/json" }, body: outputs[Number(path.split("?")[1])] ?? "" };
    });
    return Object.assign(app, { url: `${url}/exec`, asked });
  }

  /** A service whose project has these pages. Those without an ID cannot be regenerated. */
  const service = (pages: { id?: number; url: string }[]) =>
    standIn(({ method, path }) => {
      if (method === "GET") return json(200, { data: pages.map((page, i) => ({ id: 900 + i, ...page })) });
      const page = pages.find(({ id }) => String(id) === path.split("/").at(-1));
      return page ? json(200, { data: { ...page, score: 70 } }) : json(422, { message: "=1+1 is no page." });
    });

  const start = (url: string, app: string) => deploy(url, { tab: { PROJECT }, env: { SHEETS_URL: app } });
  /** Starts a web app, and deploys the flow for it. */
  async function startWithApp(url: string) {
    const app = await startWebApp();
    await start(url, app.url);
    return app;
  }

  it("writes a row for each page, with text as text", async () => {
    const { url } = await service([
      { id: 1, url: "example.com/a" },
      { id: 2, url: '=HYPERLINK("http://evil.example")' },
      { url: "example.com/c" },
      // Two reports of a page.
      { id: 4, url: "example.com/a" },
    ]);
    const app = await startWithApp(url);
    const { row = [], ...others } = await press(BUTTON, batchEnded);
    assert.deepEqual([row.length, Object.keys(others)], [4, ["progress"]]);
    assert.deepEqual(await press("send"), { written: [3] });
    const [header, ...rows] = app.rows;
    assert.deepEqual(header, HEADER);
    const [link, a, c] = rows.sort((one, other) => String(one[1]).localeCompare(String(other[1])));
    assert.deepEqual([rows.length, link?.[1]], [3, '=HYPERLINK("http://evil.example")']);
    assert.deepEqual(a, [TODAY, "example.com/a", "4", "70", "regenerated", ""]);
    assert.deepEqual(c?.slice(0, 5), [TODAY, "example.com/c", "", "", "failed"]);
    assert.match(c?.[5] ?? "", /\(422\): =1\+1 is no page/);
    assert.deepEqual(await press("send"), {});
  });

  it("replaces the rows of a second click on the same day, and adds those of new pages", async () => {
    const { url, reports } = await up({ now: Date.now });
    const app = await startWithApp(url);
    for (let click = 0; click < 2; click++) {
      const before = app.asked.length;
      await press(BUTTON, batchEnded);
      const { written = [] } = await press("send");
      assert.deepEqual([written, app.asked.length - before], [[reports.list({ project: PROJECT }).length], 2]);
      if (click === 0) reports.store({ url: "https://example.com/a-new-page" });
    }
    const [, ...rows] = app.rows;
    const written = rows.map(([batch, url, , , outcome]) => [batch, url, outcome]);
    const listed = reports.list({ project: PROJECT }).map(({ url }) => [TODAY, url, "fresh"]);
    assert.deepEqual(written.sort(), listed.sort());
  });

  it("sends at most 100 rows at once", async () => {
    const { url } = await service(Array.from({ length: 250 }, (_, i) => ({ id: i + 1, url: `example.com/${i}` })));
    const app = await startWithApp(url);
    await press(BUTTON, batchEnded);
    for (const count of [100, 100, 50]) assert.deepEqual(await press("send"), { written: [count] });
    assert.deepEqual(await press("send"), {});
    assert.equal(new Set(app.rows.map(String)).size, 251);
  });

  it("keeps the rows until the web app confirms them", async () => {
    const { url } = await service([{ id: 1, url: "example.com/a" }]);
    const app = await startWithApp(url);
    await press(BUTTON, batchEnded);
    const page = { status: 200, headers: { "content-type": "text/html" }, body: "<h1>Sign in</h1>" };
    const signIn = await standIn(() => page);
    for (const [fault, text] of [
      [json(500, { message: "Oops" }), '500: {"message":"Oops"}'],
      [page, "200: <h1>Sign in</h1>"],
      [{ ...json(302, {}), headers: { location: signIn.url } as never }, "200: <h1>Sign in</h1>"],
    ] as const) {
      app.fault = fault;
      assert.deepEqual(await press("send"), { waits: [text] });
    }
    app.fault = undefined;
    assert.deepEqual(await press("send"), { written: [1] });
    assert.equal(app.rows.length, 2);
  });

  it("keeps the rows if the web app is down, and while there is none", async () => {
    const app = await startWebApp();
    const { url } = await service([{ id: 1, url: "example.com/a" }]);
    await start(url, "http://127.0.0.1:1");
    await press(BUTTON, batchEnded);
    only(await press("send"), "error", /^post: .*ECONNREFUSED/);
    for (const [hook, output] of [
      ["", {}],
      [app.url, { written: [1] }],
    ] as const) {
      await start(url, hook);
      assert.deepEqual(await press("send"), output);
    }
  });

  it("keeps a row that changed while it was in flight", async () => {
    const { url } = await service([{ id: 1, url: "example.com/a" }]);
    const app = await startWithApp(url);
    await press(BUTTON, batchEnded);
    // The rows that were sent differ from those that wait.
    await deploy(url, {
      tab: { PROJECT },
      env: { SHEETS_URL: app.url },
      change: (node) => {
        if (node.name === "next rows")
          node.func = String(node.func).replace("sent, follow", "sent: [[sent[0][0], []]], follow");
      },
    });
    assert.deepEqual(await press("send"), { written: [1] });
    await start(url, app.url);
    assert.deepEqual(await press("send"), { written: [1] });
  });

  unavailable(async (url, { says }) => {
    await start(url, "http://127.0.0.1:1");
    only(await press(BUTTON), "error", new RegExp(`^list reports: .*${says.source}`));
  });
});
