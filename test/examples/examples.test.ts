import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { linkPackage, type Running, startNodeRed } from "../../dev/nodered.js";
import type { Report } from "../../sandbox/reports.js";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.js";
import { type Broker, startBroker, startRelay } from "../support/broker.js";
import { type Deployment, drive, type Instance, type Outputs, startStandIn } from "../support/examples.js";
import { type Machine, startMachine } from "../support/machines.js";
import type { FlowNode } from "../support/red.js";
import { installStandIns, type Seen } from "../support/standins.js";

type StandIn = Awaited<ReturnType<typeof startStandIn>>;
type Answer = Parameters<typeof startStandIn>[0];

const NOW = Date.UTC(2026, 10, 12, 9, 30);
const DAY = 24 * 3600 * 1000;
const DOWN = {
  code: "SEO_NETWORK",
  message: "The service at http://127.0.0.1:1 could not be asked: nothing listens there (ECONNREFUSED).",
};
const THROTTLED = {
  code: "SEO_RATE_LIMITED",
  message: "The service answered 429: Too Many Attempts. It asks to wait 3600 s; at most 300 s are waited here.",
};

const json = (status: number, body: unknown, headers = {}) => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});
const day = (time: number) => new Date(time).toISOString().slice(0, 10);
const word = (score: number) => (score >= 80 ? "good" : score >= 50 ? "decent" : "bad");
const mean = (scores: number[]) => Math.round(scores.reduce((sum, score) => sum + score, 0) / scores.length);

/** The mean score of each day, oldest first. */
function means(reports: readonly Report[]): { day: string; score: number }[] {
  const dates = [...new Set(reports.map(({ generated_at }) => day(generated_at)))].sort();
  const of = (date: string) => reports.filter(({ generated_at }) => day(generated_at) === date);
  return dates.map((date) => ({ day: date, score: mean(of(date).map(({ score }) => score)) }));
}

const tooMany = () => json(429, { message: "Too Many Attempts." }, { "retry-after": "3600" });

describe("the examples in a real Node-RED", function () {
  this.timeout(180_000);
  const folder = mkdtempSync(join(tmpdir(), "seo-examples-"));
  const file = (name: string) => join(folder, name);
  const standIns: StandIn[] = [];
  let nodeRed: Running;
  let red: Instance;
  let sandbox: Sandbox | undefined;

  before(async () => {
    linkPackage(folder);
    installStandIns(folder);
    nodeRed = await startNodeRed(folder);
    red = drive(nodeRed);
  });

  afterEach(async () => {
    await Promise.all([sandbox?.close(), ...standIns.splice(0).map((standIn) => standIn.close())]);
    sandbox = undefined;
  });

  after(async () => {
    await nodeRed?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function up(options: SandboxOptions = {}): Promise<Sandbox> {
    await sandbox?.close();
    sandbox = await startSandbox({ now: () => NOW, ...options });
    return sandbox;
  }

  async function standIn(answer: Answer): Promise<StandIn> {
    const one = await startStandIn(answer);
    standIns.push(one);
    return one;
  }

  /** Deploys an example for a service; the tests of the package itself wait for further attempts, these do not. */
  const deploy = (number: number, url: string, { env = {}, service = {}, ...more }: Partial<Deployment> = {}) =>
    red.deploy(number, {
      ...more,
      env: { SEO_BASE_URL: url, SEO_API_KEY: "sandbox-key", ...env },
      service: { retries: "0", ...service },
    });

  async function press(button: string): Promise<Outputs> {
    await red.inject(button);
    return red.outputs();
  }

  /** A record as the service gives it. */
  async function record(id: number): Promise<object> {
    const headers = { accept: "application/json", authorization: "Bearer sandbox-key" };
    return (await (await fetch(`${sandbox?.url}/api/v1/reports/${id}`, { headers })).json()).data;
  }

  const listed = (query: Record<string, string> = {}) => (sandbox as Sandbox).reports.list(query);
  const quiet = () => assert.deepEqual(red.complaints(), []);
  const codes = (errors: unknown) => (errors as { code: string }[]).map(({ code }) => code);

  /** Runs a test with a service that is down, and with one that has had enough. */
  function refused(run: (url: string, refusal: typeof DOWN) => Promise<void>): void {
    it("loses nothing when the service is down", async () => {
      await run("http://127.0.0.1:1", DOWN);
      quiet();
    });
    it("loses nothing when the service answers 429", async () => {
      await run((await standIn(tooMany)).url, THROTTLED);
      quiet();
    });
  }

  describe("01 - First report", () => {
    it("stores, lists, shows, updates and deletes", async () => {
      await up({ reports: 12 });
      await deploy(1, (sandbox as Sandbox).url);
      assert.deepEqual(await press("store a page"), { answer: [await record(13)] });
      assert.deepEqual(await press("show it"), { answer: [await record(13)] });
      const all = await Promise.all(listed().map(({ id }) => record(id)));
      assert.deepEqual(await press("list all"), { answer: [all] });
      assert.deepEqual(await press("make it private"), { answer: [{ ...(await record(13)), privacy: 1 }] });
      const deleted = { id: 13, object: "report", deleted: true, status: 200 };
      assert.deepEqual(await press("delete it"), { answer: [deleted] });
      const { "what went wrong": errors, ...rest } = await press("delete it");
      assert.deepEqual([codes(errors), rest], [["SEO_NOT_FOUND"], {}]);
      quiet();
    });

    it("shows an empty list", async () => {
      await deploy(1, (await up({ reports: 0 })).url);
      assert.deepEqual(await press("list all"), { answer: [[]] });
      quiet();
    });

    refused(async (url, { code }) => {
      await deploy(1, url);
      for (const button of ["store a page", "list all"]) {
        const { "what went wrong": errors, ...rest } = await press(button);
        assert.deepEqual([codes(errors), rest], [[code], {}]);
      }
    });
  });

  describe("02 - Weekly audit to Slack", () => {
    const audit = async (url: string, answer: Answer = () => ({})) => {
      const chat = await standIn(answer);
      await deploy(2, url, { env: { SLACK_WEBHOOK_URL: `${chat.url}/hook` } });
      return { outputs: await press("Mondays at 7:00"), asked: chat.asked };
    };

    it("posts the bad reports, worst first", async () => {
      const { outputs, asked } = await audit((await up({ reports: 100 })).url);
      const bad = listed({ result: "bad", sort_by: "score", sort: "asc" });
      const lines = bad.slice(0, 20).map(({ url, score }) => `• ${url}: ${score}`);
      const text = [`${bad.length} reports are bad:`, ...lines, `… and ${bad.length - 20} more`].join("\n");
      assert.deepEqual(
        [outputs, asked.map((one) => ({ ...one, body: JSON.parse(one.body) }))],
        [{ sent: [200] }, [{ method: "POST", path: "/hook", body: { text } }]],
      );
      quiet();
    });

    it("lets no report mention or mark up", async () => {
      const service = await standIn(() =>
        json(200, [{ id: 1, url: '<!channel> @here "x\\', score: 1, result: "bad" }]),
      );
      const { asked } = await audit(service.url);
      assert.deepEqual(JSON.parse(asked[0]?.body ?? ""), { text: '1 report is bad:\n• ‹!channel› (at)here "x\\: 1' });
    });

    it("says that there is none", async () => {
      const { outputs, asked } = await audit((await up({ reports: 0 })).url);
      assert.deepEqual(outputs, { sent: [200] });
      assert.deepEqual(
        asked.map(({ body }) => JSON.parse(body)),
        [{ text: "No report is bad." }],
      );
      quiet();
    });

    it("shows what the chat did not take", async () => {
      const { outputs } = await audit((await up({ reports: 0 })).url, () => ({ status: 404, body: "no_service" }));
      const [{ statusCode, payload }] = outputs.refused as [{ statusCode: number; payload: string }];
      assert.deepEqual([Object.keys(outputs), statusCode, payload], [["refused"], 404, "no_service"]);
      quiet();
    });

    refused(async (url, { message }) => {
      const { outputs, asked } = await audit(url);
      assert.deepEqual(outputs, { sent: [200] });
      assert.deepEqual(
        asked.map(({ body }) => JSON.parse(body).text),
        [`The weekly audit could not be made: ${message}`],
      );
    });
  });

  describe("03 - Reports to a spreadsheet", () => {
    const HEADER = "id,url,project,score,result,privacy,password,generated_at,created_at,updated_at\r\n";
    const download = () => fetch(`${red.url}/seo-reports.csv`);
    const start = (url: string) => deploy(3, url, { tab: { REPORTS_CSV: file("reports.csv") } });

    it("writes the file, and gives the same as a download", async () => {
      await start((await up({ reports: 120 })).url);
      assert.deepEqual(await press("every day at 6:00"), { written: [file("reports.csv")] });
      const iso = (time: number) => new Date(time).toISOString();
      const line = ({ id, url, project, score, privacy, password, ...dates }: Report) =>
        [id, url, project, score, word(score), privacy, password !== null]
          .concat(iso(dates.generated_at), iso(dates.created_at), iso(dates.updated_at))
          .join(",");
      const expected = `${HEADER}${listed({ sort: "asc" }).map(line).join("\r\n")}\r\n`;
      assert.equal(readFileSync(file("reports.csv"), "utf8"), expected);
      const answer = await download();
      assert.equal(answer.headers.get("content-type"), "text/csv; charset=utf-8");
      assert.equal(answer.headers.get("content-disposition"), 'attachment; filename="seo-reports.csv"');
      assert.equal(await answer.text(), expected);
      quiet();
    });

    it("keeps formulas, nested values and odd dates out of the cells", async () => {
      const odd = { id: 1, url: '=HYPERLINK("x")', project: "@a, b", score: null, results: { a: 1 }, privacy: "2" };
      await start((await standIn(() => json(200, [{ ...odd, generated_at: "soon", created_at: null }]))).url);
      await press("every day at 6:00");
      assert.equal(readFileSync(file("reports.csv"), "utf8"), `${HEADER}1,"'=HYPERLINK(""x"")","'@a, b",,,2,,,,\r\n`);
    });

    it("writes the header of an empty list", async () => {
      await start((await up({ reports: 0 })).url);
      assert.deepEqual(await press("every day at 6:00"), { written: [file("reports.csv")] });
      assert.equal(readFileSync(file("reports.csv"), "utf8"), HEADER);
      assert.equal(await (await download()).text(), HEADER);
      quiet();
    });

    refused(async (url, { code, message }) => {
      writeFileSync(file("reports.csv"), "as it was");
      await start(url);
      const text = `The reports cannot be had: ${message}`;
      assert.deepEqual(await press("every day at 6:00"), { "not written": [text] });
      assert.equal(readFileSync(file("reports.csv"), "utf8"), "as it was");
      const answer = await download();
      assert.deepEqual([answer.status, await answer.text()], [code === THROTTLED.code ? 503 : 502, text]);
    });
  });

  describe("04 - URLs from a spreadsheet", () => {
    const HEADER = "url,id,score,error\r\n";
    async function start(url: string, csv: string): Promise<Outputs> {
      writeFileSync(file("urls.csv"), csv);
      rmSync(file("results.csv"), { force: true });
      await deploy(4, url, { tab: { URLS_CSV: file("urls.csv"), RESULTS_CSV: file("results.csv") } });
      return press("start");
    }

    it("stores each row, goes on after failures, and keeps the order", async () => {
      const rows = ["https://example.com/a,,", "=1+1,,", ",private,", "https://example.com/b,password,s"];
      const outputs = await start((await up({ reports: 0 })).url, `url,privacy,password\n${rows.join("\n")}\n`);
      assert.deepEqual(outputs, { written: [file("results.csv")] });
      const [a, b] = listed({ sort: "asc" });
      const [header, first, second, third, fourth, end] = readFileSync(file("results.csv"), "utf8").split("\r\n");
      assert.deepEqual(
        [header, first, fourth, end],
        [
          HEADER.trim(),
          `https://example.com/a,${a?.id},${a?.score},`,
          `https://example.com/b,${b?.id},${b?.score},`,
          "",
        ],
      );
      assert.match(second ?? "", /^'=1\+1,,,"?The service answered 422: .*url/);
      assert.match(third ?? "", /^,,,"?url .*msg\.payload\.url/);
      assert.deepEqual([a?.privacy, b?.privacy, b?.password], [0, 2, "s"]);
      quiet();
    });

    it("says that there is nothing to do", async () => {
      const outputs = await start((await up()).url, "url,privacy\n");
      assert.deepEqual(outputs, { "nothing to do": ["url,privacy"] });
      assert.equal(existsSync(file("results.csv")), false);
      quiet();
    });

    it("says that there is no such file", async () => {
      await deploy(4, (await up()).url, { tab: { URLS_CSV: file("none.csv") } });
      const { "what went wrong": errors } = await press("start");
      assert.deepEqual(codes(errors), ["ENOENT"]);
      quiet();
    });

    refused(async (url, { message }) => {
      await start(url, "url\nhttps://example.com/a\nhttps://example.com/b\n");
      const line = (page: string) => `https://example.com/${page},,,${message}\r\n`;
      assert.equal(readFileSync(file("results.csv"), "utf8"), HEADER + line("a") + line("b"));
    });
  });

  describe("05 - Sitemap", () => {
    const urls = (...pages: string[]) =>
      `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${pages.map((page) => `<url><loc> ${page} </loc></url>`).join("")}</urlset>`;
    const site = (pages: Record<string, string>) =>
      standIn(({ path }) => (pages[path] === undefined ? { status: 404 } : { body: pages[path] }));
    const start = (url: string, sitemap: string, tab = {}) =>
      deploy(5, url, { tab: { SITEMAP: sitemap, ...tab } }).then(() => press("store the site"));

    it("stores the chosen pages and sums up", async () => {
      const map = urls(
        ...["a", "b/x", "a", "c?d=1&amp;e=2", "private/f", "z"].map((page) => `https://example.com/${page}`),
      );
      const { url } = await site({ "/sitemap.xml": map });
      const tab = { INCLUDE: "/[a-z]", EXCLUDE: "private", MOST: 3 };
      const outputs = await start((await up({ reports: 0 })).url, `${url}/sitemap.xml`, tab);
      const summary = { sitemap: `${url}/sitemap.xml`, listed: 5, wanted: 4, stored: 3, failures: [] };
      assert.deepEqual(outputs, { summary: [summary] });
      assert.deepEqual(
        listed()
          .map((report) => report.url)
          .sort(),
        ["example.com/a", "example.com/b/x", "example.com/c?d=1&e=2"],
      );
      quiet();
    });

    it("follows an index to the sitemaps of its own site", async () => {
      const pages: Record<string, string> = { "/1.xml": urls("https://example.com/a"), "/2.xml": urls() };
      const { url } = await site(pages);
      const places = [`${url}/1.xml`, `${url}/2.xml`, "http://127.0.0.1:1/3.xml"];
      pages["/index.xml"] =
        `<sitemapindex>${places.map((loc) => `<sitemap><loc>${loc}</loc></sitemap>`).join("")}</sitemapindex>`;
      const { summary = [], ...rest } = await start((await up({ reports: 0 })).url, `${url}/index.xml`);
      const of = (name: string, count: number) => ({
        sitemap: url + name,
        listed: count,
        wanted: count,
        stored: count,
        failures: [],
      });
      assert.deepEqual(new Set(summary), new Set([of("/1.xml", 1), of("/2.xml", 0)]));
      assert.deepEqual(rest, {});
      quiet();
    });

    it("says that a sitemap lists nothing, is missing, or is none", async () => {
      const { url } = await site({ "/empty.xml": urls(), "/page": "<html></html>" });
      const service = (await up()).url;
      const empty = { sitemap: `${url}/empty.xml`, listed: 0, wanted: 0, stored: 0, failures: [] };
      assert.deepEqual(await start(service, `${url}/empty.xml`), { summary: [empty] });
      assert.deepEqual(await start(service, `${url}/none.xml`), { "no sitemap": [404] });
      const { "what went wrong": [error] = [] } = await start(service, `${url}/page`);
      assert.equal((error as Error).message, `Error: ${url}/page is no sitemap.`);
      quiet();
    });

    refused(async (service, { message }) => {
      const { url } = await site({ "/sitemap.xml": urls("https://example.com/a", "https://example.com/b") });
      const failures = ["a", "b"].map((page) => ({
        url: `https://example.com/${page}`,
        error: message,
        uncertain: false,
      }));
      const summary = { sitemap: `${url}/sitemap.xml`, listed: 2, wanted: 2, stored: 0, failures };
      assert.deepEqual(await start(service, `${url}/sitemap.xml`), { summary: [summary] });
    });
  });

  describe("06 - Deploy gate", () => {
    async function post(body: object): Promise<[status: number, answer: unknown, retry: string | null]> {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${red.url}/seo-gate`, { method: "POST", headers, body: JSON.stringify(body) });
      return [answer.status, await answer.json(), answer.headers.get("retry-after")];
    }
    const page = { url: "https://example.com/" };
    const tab = { TIME_LIMIT: 30 };
    /** The clock of a request runs on when it is answered, and nobody hears of it. */
    const outputs = () => red.outputs(undefined, { except: ["time limit"] });

    it("answers 200 or 422, with the score", async () => {
      const { url } = await up({ reports: 0 });
      await deploy(6, url, { tab: { ...tab, MINIMUM: 78 } });
      const verdict = { passed: true, score: 78, minimum: 78, report: 1, url: "example.com" };
      assert.deepEqual(await post(page), [200, verdict, null]);
      assert.deepEqual(await outputs(), {});
      await deploy(6, url, { tab: { ...tab, MINIMUM: 79 } });
      assert.deepEqual(await post(page), [422, { ...verdict, passed: false, minimum: 79, report: 2 }, null]);
      assert.deepEqual(await outputs(), {});
      quiet();
    });

    it("waits for a score", async () => {
      let shown = 0;
      const answer = () => json(200, { data: { id: 5, url: "example.com", score: shown++ < 2 ? null : 90 } });
      const change = (node: { name?: string; timeout?: unknown }) => {
        if (node.name === "look again in 5 s") node.timeout = "0.05";
      };
      await deploy(6, (await standIn(answer)).url, { tab, change });
      const verdict = { passed: true, score: 90, minimum: 70, report: 5, url: "example.com" };
      assert.deepEqual(await post(page), [200, verdict, null]);
    });

    it("answers 400 to a request without a URL, and to a URL that is none", async () => {
      await deploy(6, (await up()).url, { tab });
      const [status, answer] = await post({});
      assert.deepEqual([status, (answer as { code: string }).code], [400, "SEO_INPUT"]);
      const [none, refusal] = await post({ url: "no url at all" });
      assert.deepEqual([none, (refusal as { code: string }).code], [400, "SEO_REJECTED"]);
      await outputs();
      quiet();
    });

    it("answers 504 at the time limit, and shows the verdict that came too late", async () => {
      await deploy(6, (await up({ reports: 0, latency: 800 })).url, { tab: { TIME_LIMIT: 1 } });
      const late = { passed: false, error: "The report was not ready within the time limit." };
      assert.deepEqual(await post(page), [504, late, null]);
      const verdict = { passed: true, score: 78, minimum: 70, report: 1, url: "example.com" };
      assert.deepEqual(await red.outputs(), { "came too late": [verdict] });
      quiet();
    });

    refused(async (url, { code, message }) => {
      await deploy(6, url, { tab });
      const [status, retry] = code === THROTTLED.code ? [503, "3600"] : [502, null];
      assert.deepEqual(await post(page), [status, { passed: false, error: message, code }, retry]);
      await outputs();
    });
  });

  describe("07 - Watch", () => {
    const watch = async (url: string) => {
      const chat = await standIn(() => ({}));
      await deploy(7, url, { env: { SLACK_WEBHOOK_URL: chat.url } });
      return () => chat.asked.splice(0).map(({ body }) => JSON.parse(body).text as string);
    };
    const set = (id: number, score: number) => Object.assign(sandbox?.reports.get(id) as Report, { score });

    it("tells only of what got worse", async () => {
      await up({ reports: 3 });
      for (const id of [1, 2, 3]) set(id, 85);
      const texts = await watch((sandbox as Sandbox).url);
      await press("every 15 minutes");
      assert.deepEqual(texts(), []);
      set(1, 60);
      set(2, 99);
      assert.deepEqual((await press("every 15 minutes")).sent, [200]);
      assert.deepEqual(texts(), [`${sandbox?.reports.get(1)?.url} got worse: it was good 85, it is decent 60.`]);
      set(1, 81);
      set(2, 82);
      await press("every 15 minutes");
      assert.deepEqual(texts(), []);
      quiet();
    });

    it("tells of a score that is the result, as older services give it", async () => {
      let result: unknown = 90;
      const service = await standIn(() => ({
        body: JSON.stringify({ data: [{ id: 1, url: "example.com", result }] }),
      }));
      const texts = await watch(service.url);
      await press("every 15 minutes");
      for (result of [95, "70"]) await press("every 15 minutes");
      assert.deepEqual(texts(), ["example.com got worse: it was 95, it is 70."]);
      quiet();
    });

    it("says once that it fails, and once that it works again", async () => {
      const { port } = await up({ reports: 0 });
      const texts = await watch((sandbox as Sandbox).url);
      await press("every 15 minutes");
      assert.deepEqual(texts(), []);
      await sandbox?.close();
      for (const _ of [1, 2]) await press("every 15 minutes");
      const [text = "", ...more] = texts();
      assert.match(text, /^The reports cannot be watched: The service at .* could not be asked/);
      assert.deepEqual(more, []);
      await up({ reports: 0, port });
      for (const _ of [1, 2]) await press("every 15 minutes");
      assert.deepEqual(texts(), ["The reports are watched again."]);
      quiet();
    });

    refused(async (url, { message }) => {
      // What a node remembers outlives a deploy; the flow is told apart by what it says, not by how often.
      const texts = await watch(url);
      await press("every 15 minutes");
      assert.deepEqual(texts(), [`The reports cannot be watched: ${message}`]);
      await red.deploy(1, { env: {} });
    });
  });

  describe("08 - Score board", () => {
    const board = async () => {
      const answer = await fetch(`${red.url}/seo-board`);
      return {
        status: answer.status,
        policy: answer.headers.get("content-security-policy"),
        page: await answer.text(),
      };
    };
    const cells = (page: string) => [...page.matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell]) => cell);

    it("shows results, history and the newest reports", async () => {
      await deploy(8, (await up({ reports: 130 })).url);
      const { status, policy, page } = await board();
      assert.deepEqual([status, policy], [200, "default-src 'none'; style-src 'unsafe-inline'"]);
      assert.doesNotMatch(page, /<script|src=|href=|https?:/);
      const newest = listed({ sort_by: "generated_at" });
      assert.deepEqual(
        cells(page),
        newest
          .slice(0, 100)
          .flatMap(({ url, project, score, generated_at }) => [
            url,
            project,
            String(score),
            word(score),
            day(generated_at),
          ])
          .map((text) =>
            text.replace(/[&/=]/g, (sign) => ({ "&": "&amp;", "/": "&#x2F;", "=": "&#x3D;" })[sign] ?? ""),
          ),
      );
      const counts = ["good", "decent", "bad"].map((name) => newest.filter(({ score }) => word(score) === name).length);
      const bars = [...page.matchAll(/<rect class="\w+" x="80" y="\d+" width="(\d+)"/g)].map(([, width]) =>
        Number(width),
      );
      assert.deepEqual(
        bars,
        counts.map((count) => Math.round((count / Math.max(...counts)) * 440)),
      );
      assert.deepEqual(
        [...page.matchAll(/<text x="\d+" y="\d+">(\d+)<\/text>/g)].map(([, n]) => Number(n)).slice(0, 3),
        counts,
      );
      assert.deepEqual(
        [...page.matchAll(/<title>(\d.*?)<\/title>/g)].map(([, title]) => title),
        means(newest).map(({ day: date, score }) => `${date}: ${score}`),
      );
      assert.match(page, /<p>100 of 130 reports\.<\/p>/);
      quiet();
    });

    it("shows what a report says as text only", async () => {
      const odd = { id: 1, url: "<script>alert(1)</script>", score: null };
      await deploy(8, (await standIn(() => json(200, [odd]))).url);
      const { page } = await board();
      assert.deepEqual(cells(page), ["&lt;script&gt;alert(1)&lt;&#x2F;script&gt;", "", "", "", ""]);
    });

    it("says that there are none", async () => {
      await deploy(8, (await up({ reports: 0 })).url);
      const { status, page } = await board();
      assert.deepEqual([status, /There are no reports yet/.test(page), /<svg/.test(page)], [200, true, false]);
      quiet();
    });

    refused(async (url, { message }) => {
      await deploy(8, url);
      const { status, page } = await board();
      const text = message.replace(/\//g, "&#x2F;");
      assert.deepEqual([status, page.includes(text)], [502, true]);
    });
  });

  describe("09 - Dashboard (with stand-ins of its widgets)", () => {
    it("gives each widget its rows", async () => {
      await up({ reports: 12 });
      const scores = [90, 90, 60, 40];
      for (const { id } of listed()) Object.assign(sandbox?.reports.get(id) as Report, { score: scores[id % 4] });
      await deploy(9, (sandbox as Sandbox).url);
      const newest = listed({ sort_by: "generated_at" });
      assert.deepEqual(await press("every 5 minutes"), {
        results: [
          [
            { result: "good", reports: 6 },
            { result: "decent", reports: 3 },
            { result: "bad", reports: 3 },
          ],
        ],
        "score of each day": [means(newest)],
        "newest reports": [
          newest.map(({ url, project, score, generated_at }) => ({
            Page: url,
            Project: project,
            Score: score,
            Result: word(score),
            Generated: day(generated_at),
          })),
        ],
      });
      quiet();
    });

    it("empties the widgets for an empty list", async () => {
      await deploy(9, (await up({ reports: 0 })).url);
      const results = ["good", "decent", "bad"].map((result) => ({ result, reports: 0 }));
      const outputs = await press("every 5 minutes");
      assert.deepEqual(outputs, { results: [results], "score of each day": [[]], "newest reports": [[]] });
      quiet();
    });

    refused(async (url, { message }) => {
      await deploy(9, url);
      assert.deepEqual(await press("every 5 minutes"), { "on the page": [`The reports cannot be had: ${message}`] });
    });
  });

  describe("10 - Catch and route", () => {
    const start = async (url: string, tab = {}) => {
      await deploy(10, url, { tab: { WAIT: 0, TRIES: 2, ...tab } });
      return press("store a page");
    };

    it("lets a success pass", async () => {
      const { stored } = await start((await up({ reports: 0 })).url);
      assert.deepEqual(
        (stored as { data: object }[]).map(({ data }) => data),
        [await record(1)],
      );
      quiet();
    });

    const kinds: [status: number, headers: Record<string, string>, body: string, code: string, output: string][] = [
      [401, {}, '{"message":"Unauthenticated."}', "SEO_UNAUTHORIZED", "key: call the owner"],
      [403, {}, '{"message":"No."}', "SEO_FORBIDDEN", "key: call the owner"],
      [422, {}, '{"message":{"url":["It is none."]}}', "SEO_REJECTED", "refused: see its fields"],
      [503, { "retry-after": "0" }, "{}", "SEO_SERVER", "gave up"],
      [429, { "retry-after": "0" }, "{}", "SEO_RATE_LIMITED", "gave up"],
      [504, {}, "", "SEO_SERVER", "look before sending it again"],
      [200, { "content-type": "text/html" }, "<html></html>", "SEO_RESPONSE", "anything else"],
    ];
    for (const [status, headers, body, code, output] of kinds) {
      it(`sends a ${status} to "${output}"`, async () => {
        const service = await standIn(() => ({
          status,
          headers: { "content-type": "application/json", ...headers },
          body,
        }));
        const outputs = await start(service.url);
        assert.deepEqual([Object.keys(outputs), codes(outputs[output])], [[output], [code]]);
        assert.equal(service.asked.length, output === "gave up" ? 3 : 1);
        quiet();
      });
    }

    it("sends again what failed for a while, as long as nothing can have been made", async () => {
      let asked = 0;
      const service = await standIn(() =>
        asked++ === 0 ? { ...tooMany(), headers: { "retry-after": "0" } } : json(201, { data: { id: 1 } }),
      );
      assert.deepEqual(await start(service.url), { stored: [{ data: { id: 1 } }] });
      quiet();
    });

    it("sends what finds the service down again, and gives up in the end", async () => {
      const outputs = await start("http://127.0.0.1:1");
      assert.deepEqual([Object.keys(outputs), codes(outputs["gave up"])], [["gave up"], [DOWN.code]]);
      quiet();
    });

    it("waits as long as the service asked", async () => {
      await deploy(10, (await standIn(tooMany)).url);
      await red.inject("store a page");
      await red.outputs(({ open }) => open.wait === 1, { except: ["wait"] });
      quiet();
    });
  });

  describe("11 - House-keeping", () => {
    const start = (url: string, tab = {}) =>
      deploy(11, url, { tab: { PROJECT: "example.com", DAYS: 30, ...tab }, env: { REPORT_PASSWORD: "s3cret" } });
    const stamp = (time: number) => `${new Date(time).toISOString().slice(0, -1)}000Z`;

    it("deletes exactly the old reports that were shown, once", async () => {
      // The flow compares with the real clock.
      const { url } = await up({ reports: 60, now: Date.now });
      await start(url);
      const old = listed({ project: "example.com", sort_by: "generated_at", sort: "asc" }).filter(
        ({ generated_at }) => generated_at < Date.now() - 30 * DAY,
      );
      assert.ok(old.length > 1);
      const rest = listed().length - old.length;
      assert.deepEqual(await press("1. show what is old"), {
        "for approval": [old.map(({ id, url, generated_at }) => ({ id, url, date: stamp(generated_at) }))],
      });
      sandbox?.reports.remove(old[0]?.id ?? 0);
      const { deleted } = await press("2. delete these");
      const [[first, ...others]] = deleted as [{ report: number; error: string }[]];
      assert.deepEqual(first, { report: old[0]?.id, error: "The service answered 404: Resource not found." });
      assert.deepEqual(
        others,
        old.slice(1).map(({ id }) => ({ report: id, error: "" })),
      );
      assert.equal(listed().length, rest);
      const nothing = { "nothing approved": ["Nothing is approved: show what is old first."] };
      assert.deepEqual(await press("2. delete these"), nothing);
      await press("1. show what is old");
      assert.deepEqual(await press("2. delete these"), nothing);
      quiet();
    });

    it("does nothing without a project, and nothing without approval", async () => {
      await start((await up()).url, { PROJECT: "" });
      for (const button of ["1. show what is old", "1. show the project"]) {
        assert.deepEqual(await press(button), { "set PROJECT first": [""] });
      }
      assert.deepEqual(await press("2. delete it"), {
        "nothing approved": ["Nothing is approved: show the project first."],
      });
      await start((await up()).url, { PROJECT: "none", APPROVAL_MINUTES: 0 });
      assert.deepEqual(await press("1. show the project"), { "for approval": ["There is no project none."] });
      assert.equal(
        sandbox?.requests.every(({ method }) => method === "GET"),
        true,
      );
      quiet();
    });

    it("deletes a project of exactly that name", async () => {
      await start((await up({ reports: 40 })).url, { PROJECT: "example.com" });
      const kept = listed().filter(({ project }) => project !== "example.com");
      const { "for approval": [project] = [] } = await press("1. show the project");
      assert.deepEqual((project as { project: string }).project, "example.com");
      const gone = { project: "example.com", object: "project", deleted: true, status: 200 };
      assert.deepEqual(await press("2. delete it"), { deleted: [gone] });
      assert.deepEqual(listed(), kept);
      quiet();
    });

    it("makes reports private, or protects them", async () => {
      await start((await up({ reports: 4 })).url);
      const ok = (report: number) => ({ report, error: "" });
      assert.deepEqual(await press("make private"), { updated: [[1, 2, 3].map(ok)] });
      const missing = { report: 5, error: "The service answered 404: Resource not found." };
      assert.deepEqual(await press("with a password"), { updated: [[ok(4), missing]] });
      const access = listed({ sort: "asc" }).map(({ privacy, password }) => [privacy, password]);
      assert.deepEqual(access, [
        [1, null],
        [1, null],
        [1, null],
        [2, "s3cret"],
      ]);
      quiet();
    });

    it("shows an empty list", async () => {
      await start((await up({ reports: 0 })).url);
      assert.deepEqual(await press("1. show what is old"), { "for approval": [[]] });
      assert.deepEqual(await press("1. show the project"), { "for approval": ["There is no project example.com."] });
      quiet();
    });

    refused(async (url, { code, message }) => {
      await start(url);
      for (const button of ["1. show what is old", "1. show the project"]) {
        const { "what went wrong": errors } = await press(button);
        assert.deepEqual(codes(errors), [code]);
      }
      const failed = (report: number) => ({ report, error: message });
      assert.deepEqual(await press("make private"), { updated: [[1, 2, 3].map(failed)] });
    });
  });

  describe("12 - More than one machine", () => {
    const pages = Array.from({ length: 12 }, (_, index) => `https://example.com/${index}`);
    let broker: Broker | undefined;
    let second: Machine;

    before(async function () {
      broker = await startBroker();
      if (!broker) {
        console.log("      No mosquitto is installed, so this example is not run.");
        this.skip();
      }
      second = await startMachine(folder, "second");
    });

    after(async () => {
      await second?.nodeRed.stop();
      await broker?.stop();
    });

    /** Deploys on both; the second may find the broker elsewhere. */
    async function deployBoth(url: string, urls: string[], tab = {}, elsewhere = broker?.url ?? ""): Promise<void> {
      const change = (node: FlowNode) => {
        const [payload] = (node.props ?? []) as { p: string; v: string }[];
        if (node.name === "put in URLs" && payload) payload.v = JSON.stringify(urls);
      };
      const more = { change, tab, service: { retries: "0" } };
      const env = { MQTT_URL: broker?.url ?? "", SEO_BASE_URL: url, SEO_API_KEY: "sandbox-key" };
      await red.deploy(12, { ...more, env });
      await second.deploy(12, { ...more, env: { ...env, MQTT_URL: elsewhere } });
      for (const machine of [red, second]) await machine.logged("Connected to broker");
      await sleep(200);
    }

    /** Deploys on both, and puts the pages in on the first. */
    async function start(url: string, urls: string[], tab = {}): Promise<void> {
      await deployBoth(url, urls, tab);
      await red.inject("put in URLs");
    }

    const came = (count: number) => (seen: Seen) => seen.shown.filter(({ name }) => name === "result").length >= count;
    const byUrl = (results: unknown[] = []) =>
      (results as { id: string; url: string }[])
        .map(({ id: _, ...result }) => result)
        .sort((a, b) => pages.indexOf(a.url) - pages.indexOf(b.url));
    const stored = () =>
      pages.map((url, index) => {
        const { id, score } = listed().find((report) => report.url === `example.com/${index}`) as Report;
        return { url, report: id, score };
      });

    it("shares the jobs out, and brings every result back", async () => {
      await start((await up({ reports: 0, latency: 100 })).url, pages, { IN_FLIGHT: 8 });
      const { result, ...rest } = await red.outputs(came(pages.length));
      assert.deepEqual([byUrl(result), rest], [stored(), {}]);
      assert.equal(listed().length, pages.length);
      const { received } = await second.probe();
      assert.ok(received > 0, "The second machine had nothing to do.");
      quiet();
      assert.deepEqual(second.complaints(), []);
    });

    it("hands out nothing of an empty list", async () => {
      await start((await up({ reports: 0 })).url, []);
      assert.deepEqual(await red.outputs(), {});
      assert.deepEqual(sandbox?.requests, []);
      quiet();
    });

    refused(async (url, { code, message }) => {
      await start(url, pages);
      const { result } = await red.outputs(came(pages.length));
      assert.deepEqual(
        byUrl(result),
        pages.map((page) => ({ url: page, error: message, code })),
      );
    });

    it("loses nothing, and makes nothing twice, when a connection breaks before the broker is heard", async () => {
      const relay = await startRelay(broker?.url ?? "");
      try {
        const { url, requests } = await up({ reports: 0, latency: 100, now: Date.now });
        await deployBoth(url, pages, { OVERDUE_MINUTES: 0.05 }, relay.url);
        relay.deafen();
        await second.inject("put in URLs");
        while (requests.length < 2) await sleep(20);
        relay.cut();
        await sleep(3500);
        await second.inject("every minute");
        const { result } = await second.outputs(came(pages.length));
        assert.deepEqual(byUrl(result), stored());
        assert.equal(listed().length, pages.length);
      } finally {
        relay.stop();
      }
    });

    it("loses nothing, and makes nothing twice, when a machine dies", async () => {
      await start((await up({ reports: 0, latency: 600, now: Date.now })).url, pages, { OVERDUE_MINUTES: 0.05 });
      while ((sandbox?.requests.length ?? 0) < 2) await sleep(20);
      second.nodeRed.process.kill("SIGKILL");
      await sleep(3500);
      await red.inject("every minute");
      const { result } = await red.outputs(came(pages.length));
      assert.deepEqual(byUrl(result), stored());
      assert.equal(listed().length, pages.length);
      quiet();
    });
  });
});
