import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { type Client, createClient, SeoError } from "../../src/public.js";
import { startAccount } from "../support/account.js";
import { listen } from "../support/faulty.js";
import { firstPage, shapes } from "../support/lists.js";
import { closeAfterEach } from "../support/opened.js";

const PAGE = "https://example.com/library";
const apiKey = "sandbox-key";

describe("The library", () => {
  const open = closeAfterEach();
  let sandbox: Sandbox;
  let client: Client;
  beforeEach(async () => {
    sandbox = await open(startSandbox({ apiKey, reports: 230 }));
    client = await open(createClient({ baseUrl: sandbox.url, apiKey }));
  });
  const sent = () => sandbox.requests.map(({ method, path, query }) => `${method} ${path}${query && `?${query}`}`);

  it("creates a report, then returns the existing one", async () => {
    const input = { url: PAGE, existing: "return", maxAge: 7 } as const;
    const first = await client.call("seo-report-store", input);
    const second = await client.call("seo-report-store", input);
    assert.deepEqual([first.outcome, second.outcome], ["created", "fresh"]);
    assert.deepEqual(second.body, first.body);
  });

  it("runs an operation without an input", async () => {
    const { statusCode, attempts, body } = await client.call("seo-project-list");
    assert.deepEqual([statusCode, attempts], [200, 1]);
    assert.ok(Array.isArray((body as { data: unknown }).data));
  });

  it("reads a list to its end, 100 records a page, and a page only when it is needed", async () => {
    const ids = new Set<unknown>();
    for await (const { records, page, pages, response } of client.pages("seo-report-list", { result: "" })) {
      assert.deepEqual([pages, response.statusCode, sent().length], [3, 200, page]);
      for (const record of records) ids.add((record as { id: number }).id);
    }
    assert.equal(ids.size, 230);
    assert.ok(sent().every((one) => one.includes("per_page=100")));
  });

  for (const [name, shape] of Object.entries({ ...shapes, "the page is ignored": firstPage }))
    it(`reads a list to its end, or says that it did not: ${name}`, async () => {
      const account = await open(startAccount({ shape }));
      for (let nth = 0; nth < 200; nth++) account.create(`a.example/${nth}`);
      const other = await open(createClient({ baseUrl: account.url, apiKey }));
      let count = 0;
      let isCut = false;
      for await (const { records, truncated } of other.pages("seo-report-list")) {
        count += records.length;
        isCut = truncated;
      }
      assert.deepEqual([count, isCut], shape === firstPage ? [100, true] : [200, false]);
    });

  it("uses the defaults without an input, and for what is undefined", async () => {
    const missing = { timeout: undefined, concurrency: undefined, rate: undefined, retries: undefined };
    const unset = { ...missing, reconcile: undefined, tls: undefined, proxy: undefined };
    const other = await open(createClient({ baseUrl: sandbox.url, apiKey, ...unset }));
    await other.call("seo-report-store", { url: PAGE });
    for (const input of [undefined, null as never, { per_page: undefined }])
      for await (const _ of other.pages("seo-report-list", input)) break;
    // Reconcile needs the short list.
    const [short, created, ...lists] = sent();
    assert.match(String(short), /^GET .*per_page=10$/);
    assert.match(String(created), /^POST /);
    assert.equal(lists.length, 3);
    for (const list of lists) assert.match(String(list), /per_page=100$/);
  });

  it("rejects invalid input and unknown operations before it sends anything", async () => {
    const code = (expected: string) => (error: unknown) => error instanceof SeoError && error.code === expected;
    // @ts-expect-error The URL is required.
    await assert.rejects(client.call("seo-report-store"), code("SEO_INPUT"));
    // @ts-expect-error The URL is required.
    await assert.rejects(client.call("seo-report-store", { privacy: 1 }), code("SEO_INPUT"));
    // @ts-expect-error A misspelled parameter.
    await assert.rejects(client.call("seo-report-store", { url: PAGE, privcy: 2 }), {
      code: "SEO_INPUT",
      message: /^seo-report-store has no parameter "privcy", only: url, /,
    });
    // @ts-expect-error A parameter of another operation.
    await assert.rejects(client.pages("seo-report-list", { limit: 3 }).next(), code("SEO_INPUT"));
    await assert.rejects(client.call("seo-report-drop" as "seo-report-list"), code("SEO_INPUT"));
    const drop = client.pages("seo-report-delete" as "seo-report-list", { reportId: 1 } as object);
    await assert.rejects(async () => {
      for await (const _ of drop);
    }, code("SEO_INPUT"));
    assert.throws(() => createClient({ baseUrl: "example.com", apiKey }), code("SEO_CONFIG"));
    for (const nothing of [null, undefined]) assert.throws(() => createClient(nothing as never), code("SEO_CONFIG"));
    assert.deepEqual(sent(), []);
  });

  it("names an invalid option without a node", () => {
    assert.throws(() => createClient({ baseUrl: sandbox.url, apiKey, rate: -1 }), {
      message: "rate must be a whole number, 1 or greater; rate is -1.",
    });
  });

  it("cancels what is in flight when it is closed", async () => {
    const server = await open(listen(() => {}));
    const silent = createClient({ baseUrl: server.url, apiKey });
    const call = silent.call("seo-report-list");
    const canceled = { code: "SEO_CANCELLED", message: "The request was canceled: its node or client was closed." };
    while (server.requests.length === 0) await new Promise(setImmediate);
    await Promise.all([assert.rejects(call, canceled), silent.close()]);
  });

  it("keeps a script alive until a lost response is looked up, and no longer", async () => {
    const account = await open(startAccount({ fate: () => "carried out, then cut" }));
    const script = `
      import { createClient } from ${JSON.stringify(new URL("../../src/public.js", import.meta.url).href)};
      const client = createClient({ baseUrl: "${account.url}", apiKey: "${apiKey}", reconcile: 1 });
      const { body, reconciled } = await client.call("seo-report-store", { url: "${PAGE}" });
      console.log(body.data.id, reconciled.looks);`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
    assert.match(stdout, /^1 \d\n$/);
    assert.equal(account.reports.length, 1);
  });
});
