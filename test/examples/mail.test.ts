import assert from "node:assert/strict";
import { describeExample, json, only } from "../support/examples.js";
import { LOGIN, type MailServer, startMailServer } from "../support/mail.js";
import type { FlowNode } from "../support/red.js";
import type { Seen } from "../support/standins.js";
import { until } from "../support/time.js";

const TEAM = "team@example.com";
const HOSTILE = '<script>alert("1")</script>';

describeExample("13 - E-mail report", ({ up, standIn, deploy, press, page, red, unavailable }) => {
  let server: MailServer;
  before(async () => {
    server = await startMailServer();
  });
  beforeEach(() => {
    server.mails.length = 0;
    Object.assign(server.state, { refuse: false, refused: 0 });
  });
  after(() => server?.close());

  /** Sends through the mail server, whose certificate is a test's. `delay`: the milliseconds before a retry. */
  const settings = (port = server.port, delay?: number) => ({
    env: { SMTP_USER: LOGIN.user, SMTP_PASSWORD: LOGIN.password },
    tab: { SMTP_HOST: "127.0.0.1", SMTP_PORT: port, MAIL_TO: TEAM, MAIL_FROM: "seo@example.com" },
    change(node: FlowNode) {
      if (node.type === "e-mail") node.tls = false;
      if (node.type === "delay" && delay) Object.assign(node, { timeout: delay, timeoutUnits: "milliseconds" });
    },
  });

  async function mail() {
    await red().inject("Mondays");
    await until(() => server.mails.length > 0);
    return server.mails[0] ?? assert.fail("no mail");
  }

  const records = [
    { id: 3, url: "b.example", score: 90, generated_at: "2026-11-20T01:02:03Z", results: { title: { passed: true } } },
    {
      id: 2,
      url: `a.example/?q=${HOSTILE}`,
      score: 40,
      results: {
        note: "text",
        title: { passed: false, importance: HOSTILE, value: HOSTILE },
        page_size: { passed: false },
      },
    },
    { id: 1, url: "b.example", score: 10, results: { title: { passed: false } } },
    { id: 4, url: "odd.example", score: null, results: [HOSTILE] },
    { id: 5, url: "none.example" },
  ];

  it("mails the newest report of each page, lowest scores first, with its failed checks", async () => {
    const service = await standIn(() => json(200, { data: records }));
    await deploy(service.url, settings());
    const { subject, from, to, text, html } = await mail();
    assert.equal(subject, "SEO report of all projects: 1 of 4 pages have failed checks");
    assert.deepEqual([from.text, to.text], ["seo@example.com", TEAM]);
    assert.deepEqual(text.trim().split("\n"), [
      `a.example/?q=${HOSTILE}: 40, title (${HOSTILE}), page size`,
      "b.example: 90",
      "odd.example: no score",
      "none.example: no score",
    ]);
    const rows = [
      ...html.matchAll(
        /<td[^>]*>(.*?)<br><small>(.*?)<\/small><\/td><td>(.*?)<\/td><td[^>]*>(.*?)<\/td><td>(.*?)<\/td>/g,
      ),
    ];
    assert.deepEqual(rows[1]?.slice(1), ["b.example", "", "90", "2026-11-20", ""]);
    assert.equal(rows.length, 4);
    assert.match(html, /white-space: nowrap">2026-11-20</);
    assert.match(html, /4 of 4 pages, lowest scores first\./);
    assert.doesNotMatch(html, /<script/i);
    assert.ok(html.split("&lt;script&gt;alert(&quot;1&quot;)").length >= 4, html);
  });

  it("lists the newest reports of the project", async () => {
    const { url, requests } = await up({ reports: 120 });
    await deploy(url, { ...settings(), tab: { ...settings().tab, PROJECT: "example.com" } });
    const { subject, html } = await mail();
    assert.match(subject, /^SEO report of example\.com: \d+ of \d+ pages have failed checks$/);
    assert.match(requests[0]?.query ?? "", /project=example\.com&sort_by=generated_at&sort=desc/);
    assert.ok(html.split("<tr").length > 5);
  });

  it("shows the mail in a browser, and sends nothing", async () => {
    await deploy((await standIn(() => json(200, { data: records }))).url, settings());
    assert.match((await page("seo-mail")).text, /<h1[^>]*>SEO report of all projects/);
    assert.deepEqual(server.mails, []);
  });

  it("mails that there are no reports", async () => {
    await deploy((await up({ reports: 0 })).url, settings());
    const { subject, html } = await mail();
    assert.equal(subject, "SEO report of all projects: 0 of 0 pages have failed checks");
    assert.match(html, /<p>0 of 0 pages/);
  });

  it("shows the mail if no mail server is set", async () => {
    await deploy((await up()).url, { env: { SMTP_USER: "", SMTP_PASSWORD: "" } });
    only(
      await press("Mondays"),
      "no mail server set",
      /^SEO report of all projects: \d+ of 36 pages have failed checks\n\S+: \d+/,
    );
  });

  /** The flow's text about a mail that is not sent, while it waits for the retry. */
  async function failure(): Promise<string> {
    await red().inject("Mondays");
    const ready = ({ shown }: Seen) => shown.length > 0;
    const { error = [], ...rest } = await red().outputs(ready, { except: [TEAM, "15 minutes"] });
    assert.deepEqual([error.length, rest], [1, {}]);
    return String(error[0]);
  }

  it("shows that the mail server is down, or rejects the login or the mail", async () => {
    server.state.refuse = true;
    const { url } = await up();
    for (const [port, password, cause] of [
      [1, LOGIN.password, /ECONNREFUSED/],
      [server.port, "wrong", /Invalid login/],
      [server.port, LOGIN.password, /The mailbox is full/],
    ] as const) {
      await deploy(url, { ...settings(port), env: { SMTP_USER: LOGIN.user, SMTP_PASSWORD: password } });
      assert.match(await failure(), cause);
      assert.equal((await red().probe()).open["15 minutes"], 1);
    }
  });

  it("sends the same mail when the mail server works again", async () => {
    server.state.refuse = true;
    await deploy((await up()).url, settings(server.port, 50));
    await red().inject("Mondays");
    await until(() => server.state.refused > 2);
    assert.equal(server.mails.length, 0);
    server.state.refuse = false;
    await until(() => server.mails.length > 0);
    await red().outputs(() => true, { except: [TEAM] });
    const subjects = server.mails.map(({ subject }) => subject.replace(/:.*/, ""));
    assert.deepEqual(subjects, ["SEO report of all projects"]);
  });

  it("gives up after a day", async () => {
    server.state.refuse = true;
    const { change, ...rest } = settings(server.port, 50);
    await deploy((await up()).url, {
      ...rest,
      change(node) {
        change(node);
        for (const rule of (node.rules ?? []) as Record<string, string>[])
          if (rule.p === "sent") Object.assign(rule, { to: String(Date.now() - 86_400_001), tot: "num" });
      },
    });
    assert.match(await failure(), /The mailbox is full/);
    assert.equal((await red().probe()).open["15 minutes"], undefined);
    assert.equal(server.state.refused, 1);
  });

  unavailable(async (url, { says }) => {
    await deploy(url, settings());
    const { subject, html, text } = await mail();
    assert.equal(subject, "The SEO report failed");
    assert.match(text, says);
    assert.match(html.replace(/&#x2F;/g, "/"), says);
    const shown = await page("seo-mail");
    assert.equal(shown.status, 502);
    assert.match(shown.text.replace(/&#x2F;/g, "/"), says);
  });
});
