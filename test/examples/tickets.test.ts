import assert from "node:assert/strict";
import { type Asked, describeExample, json, only } from "../support/examples.js";
import type { FlowNode } from "../support/red.js";

const TITLE = "SEO: test failed on example.com";
const JQL = /^project = "SEO" AND labels = "(seo-test-[\da-f]{12})" AND statusCategory != Done$/;
const AUTHORIZATION = "Bearer of-tests";

const tabOf = (url: string, tracker = "github") => ({
  TRACKER: tracker,
  TICKETS_URL: url,
  TICKETS_PROJECT: tracker === "github" ? "owner/repository" : "SEO",
  RETRY: 0,
});

describeExample("18 - Tickets", ({ standIn, deploy, press, red, unavailable }) => {
  /** A tracker like GitHub. `fault` replaces the response to a request, before or after it took effect. */
  async function openTracker() {
    const tickets: { title: string; body: string; labels: string[]; open: boolean }[] = [];
    const tracker = { tickets, fault: undefined as ((one: Asked) => ReturnType<typeof json> | undefined) | undefined };
    const { url, asked } = await standIn((one) => {
      const { pathname, searchParams: query } = new URL(one.path, "http://localhost");
      assert.equal(pathname, "/repos/owner/repository/issues");
      if (one.method === "GET") {
        const found = tickets.filter(({ labels, open }) => open && labels.includes(query.get("labels") ?? ""));
        return tracker.fault?.(one) ?? json(200, query.get("state") === "open" ? found : []);
      }
      const fault = tracker.fault?.(one);
      if (fault?.status === 503) return fault;
      tickets.push({ ...JSON.parse(one.body), open: true });
      return fault ?? json(201, { number: tickets.length });
    });
    return Object.assign(tracker, { url, asked });
  }

  const start = (service: string, tab: Record<string, string | number>) =>
    deploy(service, { tab, env: { TICKETS_AUTHORIZATION: AUTHORIZATION } });

  /** Starts a tracker, and deploys the flow for it. */
  async function startTracker(tab: Record<string, number> = {}) {
    const tracker = await openTracker();
    await start("http://127.0.0.1:1", { ...tabOf(tracker.url), ...tab });
    return tracker;
  }

  /** Creates a ticket as the button does, up to the attempt to send it. */
  async function testTicket() {
    assert.deepEqual(await press("test ticket"), { ticket: [TITLE] });
    return press("send");
  }

  it("creates a ticket for each check that newly fails, and for no other", async () => {
    const results: Record<string, object> = {
      title: { passed: true, importance: "high", value: "A title" },
      favicon: { passed: false, importance: "low", value: null, errors: { missing: null } },
      speed: { passed: false, importance: "high", value: 9, errors: { too_slow: { max: 1 } } },
      links: { passed: true, importance: "high", value: 3 },
    };
    const record = { id: 7, url: "example.com/a", project: "example.com", results };
    // A page with two reports gets one ticket.
    const records = [record, { ...record, id: 8 }];
    const { url } = await standIn(({ method }) => json(200, { data: method === "GET" ? records : record }));
    const tracker = await openTracker();
    await start(url, tabOf(tracker.url));
    assert.deepEqual(await press("every day"), {});
    Object.assign(results.title ?? {}, { passed: false, errors: { too_short: { min: 10 } } });
    Object.assign(results.links ?? {}, { passed: false, errors: ["/team returned 404"] });
    Object.assign(results.speed ?? {}, { passed: true, errors: undefined });
    const titles = ["title", "links"].map((check) => `SEO: ${check} failed on example.com/a`);
    assert.deepEqual(await press("every day"), { ticket: [...titles, ...titles] });
    for (let i = 0; i < 3; i++) await press("send");
    assert.deepEqual(tracker.tickets.map(({ title }) => title).sort(), [...titles].sort());
    const ticket = tracker.tickets.find(({ title }) => title === titles[0]);
    assert.match(String(ticket?.labels), /^seo-title-[\da-f]{12}$/);
    assert.deepEqual(JSON.parse(ticket?.body ?? ""), {
      report: 7,
      url: "example.com/a",
      project: "example.com",
      check: "title",
      importance: "high",
      value: "A title",
      errors: [{ too_short: { min: 10 } }],
    });
    assert.deepEqual(await press("every day"), {});
  });

  it("creates no second ticket for the same check, even if its state is lost", async () => {
    const tracker = await openTracker();
    for (let restart = 0; restart < 2; restart++) {
      await start("http://127.0.0.1:1", tabOf(tracker.url));
      assert.deepEqual(await testTicket(), restart === 0 ? { created: [TITLE] } : {});
      assert.deepEqual(await testTicket(), {});
      // Nothing waits any more.
      const before = tracker.asked.length;
      await press("send");
      assert.equal(tracker.asked.length, before);
      await red().deploy([], { env: {} });
    }
    assert.equal(tracker.tickets.length, 1);
  });

  it("creates a new ticket if the earlier one is closed", async () => {
    const tracker = await startTracker();
    await testTicket();
    for (const ticket of tracker.tickets) ticket.open = false;
    assert.deepEqual(await testTicket(), { created: [TITLE] });
    assert.equal(tracker.tickets.length, 2);
  });

  it("keeps a ticket until the tracker has it", async () => {
    const tracker = await startTracker();
    const login = { status: 200, headers: { "content-type": "text/html" }, body: "<h1>Sign in</h1>" };
    await press("test ticket");
    for (const [fault, text] of [
      [json(500, { message: "Oops" }), `500 {"message":"Oops"}`],
      [json(500, []), "500 []"],
      [json(401, { message: "Bad credentials" }), `401 {"message":"Bad credentials"}`],
      [json(200, { message: "No list" }), `200 {"message":"No list"}`],
      [login, "200 <h1>Sign in</h1>"],
    ] as const) {
      tracker.fault = () => fault;
      assert.deepEqual(await press("send"), { waits: [`${TITLE}: ${text}`] });
    }
    tracker.fault = ({ method }) => (method === "POST" ? json(503, { message: "Busy" }) : undefined);
    assert.deepEqual(await press("send"), { waits: [`${TITLE}: 503 {"message":"Busy"}`] });
    tracker.fault = undefined;
    assert.deepEqual(await press("send"), { created: [TITLE] });
    assert.equal(tracker.tickets.length, 1);
  });

  it("creates no second ticket if the response was lost", async () => {
    const tracker = await startTracker();
    tracker.fault = ({ method }) => (method === "POST" ? json(500, { message: "Oops" }) : undefined);
    assert.deepEqual(await testTicket(), { waits: [`${TITLE}: 500 {"message":"Oops"}`] });
    tracker.fault = undefined;
    assert.deepEqual(await press("send"), {});
    assert.equal(tracker.tickets.length, 1);
    const before = tracker.asked.length;
    await press("send");
    assert.equal(tracker.asked.length, before);
  });

  it("keeps a ticket if the tracker is down, and while there is none", async () => {
    await start("http://127.0.0.1:1", tabOf("http://127.0.0.1:1"));
    only(await testTicket(), "error", /^find: .*ECONNREFUSED/);
    const tracker = await openTracker();
    for (const [url, output] of [
      ["", {}],
      [`${tracker.url}/`, { created: [TITLE] }],
    ] as const) {
      await start("http://127.0.0.1:1", tabOf(url));
      assert.deepEqual(await press("send"), output);
    }
  });

  it("waits between two attempts", async () => {
    const tracker = await startTracker({ RETRY: 3600 });
    tracker.fault = () => json(500, {});
    await testTicket();
    assert.deepEqual([await press("send"), tracker.asked.length], [{}, 1]);
  });

  it("sends other tickets while a rejected one waits", async () => {
    const tracker = await startTracker();
    const other = (node: FlowNode) => {
      if (node.name === "test ticket") node.payload = String(node.payload).replace("example.com", "example.com/other");
    };
    const tab = { ...tabOf(tracker.url), RETRY: 3600 };
    await start("http://127.0.0.1:1", tab);
    await press("test ticket");
    await deploy("http://127.0.0.1:1", { tab, change: other });
    await press("test ticket");
    tracker.fault = ({ method, body }) => (method === "POST" && /other/.test(body) ? json(503, {}) : undefined);
    assert.deepEqual(await press("send"), { waits: [`${TITLE}/other: 503 {}`] });
    assert.deepEqual(await press("send"), { created: [TITLE] });
    assert.deepEqual(await press("send"), {});
  });

  it("looks for and creates tickets of Jira", async () => {
    const tickets: { fields: { summary: string; labels: string[]; description: string } }[] = [];
    const { url, asked } = await standIn(({ method, path, body }) => {
      const { pathname, searchParams: query } = new URL(path, "http://localhost");
      if (method === "POST") {
        assert.equal(pathname, "/jira/rest/api/2/issue");
        tickets.push(JSON.parse(body));
        return json(201, { key: "SEO-1" });
      }
      assert.equal(pathname, "/jira/rest/api/2/search");
      assert.match(String(query.get("jql")), JQL);
      return json(200, { total: tickets.length, issues: tickets });
    });
    await start("http://127.0.0.1:1", tabOf(`${url}/jira`, "jira"));
    assert.deepEqual([await testTicket(), await testTicket()], [{ created: [TITLE] }, {}]);
    const [{ fields } = { fields: undefined }] = tickets;
    const { description = "", labels, ...others } = { ...fields };
    assert.deepEqual(others, { project: { key: "SEO" }, issuetype: { name: "Task" }, summary: TITLE });
    assert.equal(JQL.exec(new URL(asked[0]?.path ?? "", url).searchParams.get("jql") ?? "")?.[1], labels?.join());
    assert.match(description, /^\{noformat}\n.*"check": "test".*\n\{noformat}$/s);
    assert.equal(asked.length, 3);
  });

  it("contains no markup and no mention, whatever a report contains", async () => {
    const hostile = "<b>@everyone\n{noformat}[x](javascript:1) #1 ```";
    const payload = { report: 7, url: hostile, check: hostile, importance: hostile, value: hostile, errors: [hostile] };
    const button = (node: FlowNode) => {
      if (node.name === "test ticket") node.payload = JSON.stringify(payload);
    };
    const bodies: string[] = [];
    const { url } = await standIn(({ method, body }) => {
      if (method === "POST") bodies.push(body);
      return method === "POST" ? json(201, {}) : json(200, []);
    });
    for (const tracker of ["github", "jira"]) {
      await deploy("http://127.0.0.1:1", { tab: tabOf(url, tracker), change: button });
      await press("test ticket");
      await press("send");
      await red().deploy([], { env: {} });
    }
    const [github, jira] = bodies.map((body) => JSON.parse(body));
    assert.equal(github.title, jira.fields.summary);
    assert.match(github.title, /^SEO: %3Cb%3E%40everyone %7Bnoformat%7D%5Bx%5D[^<>@#[\]{}`|\n]*$/);
    assert.match(github.labels[0], /^[\w-]{1,50}$/);
    assert.deepEqual(JSON.parse(github.body), payload);
    assert.ok(github.body.split("\n").every((line: string) => line.startsWith("    ")));
    assert.equal(jira.fields.description.split("{noformat}").length, 3);
  });

  it("reports an unknown tracker, and keeps the ticket", async () => {
    await start("http://127.0.0.1:1", tabOf("http://127.0.0.1:1", "other"));
    const { error: [error] = [] } = await testTicket();
    assert.match(String(error), /^GitHub or Jira: .*Set TRACKER/);
  });

  unavailable(async (url, { says }) => {
    await start(url, tabOf(url));
    only(await press("every day"), "error", new RegExp(`^list reports: .*${says.source}`));
  });
});
