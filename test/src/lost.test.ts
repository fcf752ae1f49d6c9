import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import fc from "fast-check";
import type { Durable, RequestOptions } from "../../src/call.js";
import { type Client, createClient } from "../../src/client.js";
import type { SeoError } from "../../src/errors.js";
import { createLane, createTask } from "../../src/scheduler.js";
import { submit } from "../../src/submit.js";
import { type Account, type AccountOptions, type Asked, type Fate, startAccount } from "../support/account.js";
import { shapes } from "../support/lists.js";
import { stopBackOff } from "../support/time.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const PAGE = "https://www.example.com/page";
/** What an earlier process kept of its request: there was no report yet. */
const EARLIER: RequestOptions = { durable: { intent: { watermark: { rank: 0, ids: [] } } } };

/** How a call ended: the report's ID, or the error. */
interface End {
  id?: unknown;
  attempts: number;
  reconciled?: { looks: number; after: number } | undefined;
  code?: string;
  message?: string;
  uncertain?: boolean;
  candidates?: unknown[] | undefined;
}

describe("A lost response", () => {
  const opened: { account: Account; client: Client }[] = [];
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  let goOn = () => {};

  /** Most of a test is waiting, so all of them run at the same time, during the first one. */
  const started = new Map<string, Promise<void>>();
  const tests = new Map<string, () => Promise<void>>();
  const startAll = () => {
    for (const [name, run] of tests) if (!started.has(name)) started.set(name, run());
    return started;
  };
  const test = (name: string, run: () => Promise<void>) => {
    tests.set(name, run);
    it(name, () => startAll().get(name));
  };

  before(() => {
    started.clear();
    unhandled.length = 0;
    goOn = stopBackOff();
    process.on("unhandledRejection", note);
  });

  after(async () => {
    for (const { account, client } of opened.splice(0)) {
      await client.close();
      await account.close();
    }
    goOn();
    process.off("unhandledRejection", note);
  });

  it("leaves no rejection unhandled in any of these tests", async () => {
    const ends = await Promise.allSettled(startAll().values());
    assert.deepEqual(unhandled, []);
    const reasons = ends.flatMap((end) => (end.status === "rejected" ? [String(end.reason)] : []));
    assert.deepEqual(reasons, []);
  });

  async function open(options: AccountOptions = {}, settings: object = {}) {
    const account = await startAccount(options);
    const usual = { baseUrl: account.url, apiKey: "key-of-tests", retries: "2", reconcile: "1" };
    const client = createClient({ ...usual, ...settings });
    opened.push({ account, client });
    const call = (type: string, input: object, more?: RequestOptions): Promise<End> =>
      client.call(type, { ...input }, more).then(
        ({ body, attempts, reconciled }) => ({ id: (body as { data: { id: unknown } }).data.id, attempts, reconciled }),
        (error: SeoError) => error.toJSON(),
      );
    return {
      account,
      client,
      call,
      store: (url = PAGE, more?: RequestOptions) => call("seo-report-store", { url }, more),
      update: (more?: RequestOptions) => call("seo-report-update", { reportId: "1", update: "1" }, more),
      show: () => call("seo-report-show", { reportId: "1" }),
    };
  }

  /** The fate of the first request for a page. */
  const first = (fate: Fate) => (one: Asked) => (one.nth === 1 ? fate : "answered");
  /** The fate of the first request for `PAGE`. */
  const ofPage = (fate: Fate) => (one: Asked) => (one.form.get("url") === PAGE ? first(fate)(one) : "answered");
  const isError = (code: string, uncertain: boolean, attempts: number) => (end: End) =>
    assert.deepEqual([end.code, end.uncertain, end.attempts], [code, uncertain, attempts]);
  /** The report 1 after one attempt, by one look. */
  const isFound = ({ id, attempts, reconciled }: End) => {
    assert.deepEqual([id, attempts, reconciled?.looks], [1, 1, 1]);
    assert.ok(Number(reconciled?.after) >= 1000);
  };
  const isRetried = ({ id, attempts, reconciled }: End) =>
    assert.deepEqual([id, attempts, reconciled], [1, 2, undefined]);

  const fates: Record<string, [fate: Fate, check: (end: End) => void, created: number]> = {
    "a report that is created before": ["carried out, then cut", isFound, 1],
    "a report that is created afterwards": ["cut, then carried out", isFound, 1],
    "a report whose response is reset": ["reset", isFound, 1],
    "a report that is not created": ["cut, not carried out", isRetried, 1],
    "a report on which a gateway gives up": ["carried out, then given up", isFound, 1],
    "a page that the service rejects": ["rejected", isError("SEO_SERVER", false, 1), 0],
    "a report that is created, then rejected": [
      "carried out, then rejected",
      ({ id, reconciled }) => assert.deepEqual([id, reconciled?.looks], [1, 1]),
      1,
    ],
  };
  for (const [name, [fate, check, created]] of Object.entries(fates))
    test(`ends with a certain outcome: ${name}`, async () => {
      const { account, store } = await open({ late: 100, fate: first(fate) });
      check(await store());
      assert.equal(account.reports.length, created);
    });

  for (const page of [null, 5, [], { data: null }, { error: "The quota is used up." }])
    test(`can be one that contains no report: ${JSON.stringify(page)}`, async () => {
      for (const [fate, check] of [
        ["carried out, then hidden", isFound],
        ["hidden, not carried out", isRetried],
      ] as const) {
        const { account, store } = await open({ page, fate: first(fate) });
        check(await store());
        assert.equal(account.reports.length, 1);
      }
    });

  test("is an error with what the service says instead of a report", async () => {
    const page = { message: "Your quota is used up." };
    const { store } = await open({ page, fate: () => "hidden, not carried out" }, { retries: "0" });
    const said = "The service returned 200, but the response contains no report with an id: Your quota is used up.";
    assert.equal((await store()).message, said);
  });

  test("is found after a failure of the service, which the list of reports had, too", async () => {
    const { account, store } = await open({ get: () => 503, fate: () => "too many requests" }, { retries: "0" });
    isError("SEO_RATE_LIMITED", false, 1)(await store("example.com/other"));
    account.options = { fate: () => "carried out, then cut" };
    isFound(await store());
  });

  test("can be one that lists reports", async () => {
    const { account, store } = await open({ fate: first("hidden, not carried out") });
    account.options.page = { data: [account.create("example.com/other")] };
    assert.deepEqual([(await store()).id, account.reports.length], [2, 2]);
  });

  test("stays uncertain if a cache responds", async () => {
    const { account, store } = await open({ age: 1, fate: () => "cut, then carried out" });
    isError("SEO_SERVER", true, 1)(await store());
    assert.equal(account.count("POST"), 1);
  });

  test("stays uncertain if reports have no ID", async () => {
    const { account, store } = await open({ id: () => null as never });
    account.create("example.com/other");
    for (const page of ["example.com/1", "example.com/2"]) isError("SEO_RESPONSE", true, 1)(await store(page));
    assert.equal(account.reports.length, 3);
  });

  test("is an uncertain error at once, without a look, if reconcile is blank", async () => {
    const { account, store } = await open({ fate: () => "carried out, then cut" }, { reconcile: "" });
    isError("SEO_SERVER", true, 1)(await store());
    assert.equal(account.asked.length, 1);
  });

  test("is a certain error if nothing is created and no retry is left", async () => {
    const { account, store } = await open({ fate: () => "cut, not carried out" });
    isError("SEO_SERVER", false, 3)(await store());
    assert.equal(account.reports.length, 0);
  });

  test("of an earlier process is an uncertain error if others have created reports since", async () => {
    const { account, store } = await open();
    account.create("other.example/1");
    const end = await store(PAGE, EARLIER);
    isError("SEO_NETWORK", true, 0)(end);
    assert.equal(end.message, "The response to an earlier request was not received.");
    assert.equal(end.candidates?.length, 1);
  });

  for (const [how, other, ...expected] of [
    ["is found if the response had arrived in this process", {}, 2, 1],
    ["is not the report that another request got meanwhile", { id: "another" }, 3, 2],
  ] as const)
    test(`of a restored request ${how}`, async () => {
      const { account, store } = await open();
      account.create("other.example/before");
      let intent: Durable["intent"];
      const beforeAttempt = async (sent: Durable["intent"]) => {
        intent = { ...sent, ...other };
      };
      await store(PAGE, { durable: { beforeAttempt } });
      const { id } = await store(PAGE, { durable: { intent } });
      assert.deepEqual([id, account.count("POST")], expected);
    });

  for (const fate of ["answered", "carried out, then cut"] as const)
    for (const wasBefore of [false, true])
      test(`of a restored update, if another was ${fate}, ${wasBefore ? "before" : "meanwhile"}`, async () => {
        const { account, update, show } = await open({ fate: () => fate });
        const report = account.create(PAGE);
        const intent = { id: "earlier", generatedAt: new Date(Date.parse(report.generated_at) - HOUR).toISOString() };
        await show();
        // A date can be that of the same second.
        await late(1100);
        await update();
        if (wasBefore) report.generated_at = new Date(Date.now() + 2000).toISOString();
        const end = await update({ durable: { intent } });
        if (wasBefore) assert.deepEqual([end.id, end.attempts], [1, 0]);
        else isError("SEO_NETWORK", true, 0)(end);
      });

  test("of an update is an error if its report was deleted meanwhile", async () => {
    const { account, update } = await open({ fate: () => "cut, not carried out" });
    account.create(PAGE);
    const end = update();
    while (account.count("PUT") === 0) await late(5);
    account.reports.pop();
    isError("SEO_NOT_FOUND", false, 2)(await end);
  });

  test("of an update stays uncertain if the report that was regenerated has another privacy", async () => {
    const { account, call, show } = await open({ fate: () => "cut, not carried out" });
    const report = account.create(PAGE);
    await show();
    const end = call("seo-report-update", { reportId: "1", update: "1", privacy: "1" });
    while (account.count("PUT") === 0) await late(5);
    report.generated_at = new Date(Date.now() + 2000).toISOString();
    isError("SEO_SERVER", true, 1)(await end);
  });

  test("is not somebody else's report, which has more privacy", async () => {
    const { account, call } = await open({ fate: () => "cut, not carried out" });
    const end = call("seo-report-store", { url: PAGE, privacy: "0" });
    while (account.count("POST") === 0) await late(5);
    const { privacy } = account.create(PAGE, 2);
    isError("SEO_SERVER", true, 1)(await end);
    assert.equal(account.reports[0]?.privacy, privacy);
  });

  test("has the messages of its page wait, also those without Reconcile", async () => {
    const { account, client, store } = await open({ fate: first("cut, not carried out") }, { reconcile: "" });
    client.announceClaims()();
    const ends = [store(PAGE, { durable: {} }), store()];
    // The second list is the first look, five seconds after the response was lost.
    while (account.count("GET", true) < 2) await late(20);
    assert.equal(account.count("POST"), 1);
    await client.close();
    await Promise.all(ends);
  });

  test("is looked for if a message creates the page's first report, whose turn it has already", async () => {
    const { account, client } = await open({ fate: first("carried out, then cut") });
    const { outcome, reconciled } = await submit(client, "seo-report-store", { url: PAGE, existing: "return" });
    assert.deepEqual([outcome, reconciled?.looks, account.count("POST")], ["created", 1, 1]);
  });

  test("has no message of its page wait if no lost response is looked for, as in version 1", async () => {
    const { account, client, store } = await open({ latency: () => 10_000 }, { reconcile: "" });
    const ends = [store(), store()];
    while (account.count("POST") < 2) await late(5);
    await client.close();
    for (const end of await Promise.all(ends)) isError("SEO_CANCELLED", true, 1)(end);
  });

  for (const reconcile of ["", "1"])
    test(`or arrived, is the report of a message that returns an existing one: Reconcile is ${reconcile}`, async () => {
      // Longer than a search.
      const { account, client, store } = await open({ latency: () => 1000 }, { reconcile });
      const created = store();
      while (account.count("POST") === 0) await late(5);
      const { outcome } = await submit(client, "seo-report-store", { url: PAGE, existing: "return" });
      assert.deepEqual([outcome, account.count("POST"), (await created).id], ["fresh", 1, 1]);
    });

  test("is looked for until the horizon after it was sent, not after it was to be saved", async () => {
    const { account, store } = await open({ fate: () => "cut, then carried out", late: 500 }, { reconcile: "4" });
    const beforeAttempt = () => late(5000);
    const { id } = await store(PAGE, { durable: { beforeAttempt } });
    assert.deepEqual([id, account.count("POST")], [account.reports[0]?.id, 1]);
  });

  test("of an earlier process does not wait for a request that was sent when its report was there", async () => {
    const { account, store, update } = await open({ latency: () => 10_000 }, { reconcile: "300" });
    account.create(PAGE);
    const ends: string[] = [];
    const note = (name: string, end: Promise<End>) => end.then(() => ends.push(name));
    const later = [note("create", store("https://example.com/other")), note("update", update())];
    while (account.count("POST") + account.count("PUT") < 2) await late(5);
    await Promise.all([...later, note("earlier", store(PAGE, EARLIER))]);
    assert.equal(ends[0], "earlier");
  });

  test("of an earlier process is found before the horizon if its report is listed after one with a higher ID", async () => {
    const { account, store } = await open({ id: (nth) => 3 - nth }, { reconcile: "300" });
    account.create("https://example.com/other");
    const end = store(PAGE, EARLIER);
    await late(1000);
    account.create(PAGE);
    account.reports.reverse();
    assert.equal((await end).id, 1);
  });

  test("is proven to have had no effect after the horizon of another process that got the report of its page", async () => {
    const { account, client, store } = await open();
    account.options.latency = () => (account.count("POST") > 1 ? 0 : 1700);
    account.options.fate = first("cut, not carried out");
    const began = performance.now();
    const end = store();
    await late(1500);
    client.claim([String(account.create(PAGE).id)], 0);
    const { id, attempts } = await end;
    assert.deepEqual([id, attempts], [2, 2]);
    assert.ok(performance.now() - began >= 2500);
  });

  test("costs one short list if none is lost", async () => {
    const { account, store } = await open();
    await Promise.all(Array.from({ length: 20 }, (_, i) => store(`${PAGE}/${i}`)));
    assert.deepEqual([account.count("POST"), account.count("GET", true), account.count("GET", false)], [20, 1, 0]);
    assert.equal(account.asked[0]?.query.get("per_page"), "10");
  });

  test("decides two seconds after an error of the service itself, whatever the horizon", async () => {
    const { store } = await open({ fate: () => "rejected" }, { reconcile: "300" });
    const began = performance.now();
    isError("SEO_SERVER", false, 1)(await store());
    const took = performance.now() - began;
    assert.ok(took >= 2000 && took < 60_000, `${took} ms`);
  });

  test("is found in an account that was empty, if IDs are no numbers", async () => {
    const { store } = await open({ id: (n) => `report-${n}`, fate: ofPage("carried out, then cut") });
    await store("other.example/first");
    const { id, reconciled } = await store();
    assert.deepEqual([id, reconciled?.looks], ["report-2", 1]);
  });

  test("is found although projects have higher IDs", async () => {
    const get = ({ path }: Asked) =>
      path.endsWith("/projects") ? { data: [{ id: 9, project: "a.example" }] } : undefined;
    const { client, store } = await open({ fate: ofPage("carried out, then cut"), get });
    await store("first.example/first");
    await client.call("seo-project-list", {});
    assert.equal((await store()).id, 2);
  });

  for (const [what, type, input] of [
    ["a newer report", "seo-report-delete", { reportId: "3" }],
    ["the project of a newer report", "seo-project-delete", { project: "other.example" }],
  ] as const)
    test(`is found although this client deletes ${what} meanwhile`, async () => {
      const { client, store } = await open({ fate: ofPage("carried out, then cut") });
      await store("first.example/first");
      const lost = store();
      await store("other.example/second");
      await client.call(type, input);
      const { id: found, reconciled } = await lost;
      assert.deepEqual([found, reconciled?.looks], [2, 1]);
    });

  test("is not taken for the newest report of before, although this client has deleted a project", async () => {
    const { account, client, store } = await open({ fate: ofPage("cut, not carried out") });
    await store("other.example/first");
    account.create(PAGE);
    await client.call("seo-report-list", {});
    await client.call("seo-project-delete", { project: "other.example" });
    assert.equal((await store()).id, 3);
  });

  test("is proven to have had no effect although the response to a delete was lost meanwhile", async () => {
    let lost = true;
    const { account, client, store } = await open({
      fate: ofPage("cut, not carried out"),
      deleted: () => {
        const cut = lost;
        lost = false;
        return cut;
      },
    });
    await store("other.example/first");
    const created = store();
    const { id } = await store("other.example/second");
    const { alreadyDeleted } = await client.call("seo-report-delete", { reportId: String(id) });
    assert.equal(alreadyDeleted, true);
    assert.equal((await created).attempts, 2);
    assert.equal(account.reports.length, 2);
  });

  test("is found, or proven to have had no effect, in the list of every paginator, beyond its first page", async () => {
    const ends = Object.entries(shapes).map(async ([name, shape]) => {
      const { account, store } = await open({ shape });
      account.create("other.example/before");
      account.options.fate = () => {
        for (let i = 0; i < 30; i++) setImmediate(account.create, `other.example/${i}`);
        return "carried out, then cut";
      };
      const found = await store();
      assert.deepEqual([found.id, found.reconciled?.looks], [2, 1], name);
      account.options.fate = first("cut, not carried out");
      const retried = await store(`${PAGE}/2`);
      assert.deepEqual([retried.id, retried.attempts], [33, 2], name);
    });
    await Promise.all(ends);
  });

  for (const [name, id] of Object.entries({
    text: (n: number) => `r${(n * 7919) % 1009}`,
    "text, some of digits only": (n: number) => (n % 2 ? `r${n}` : String(900 + n)),
  }))
    test(`is found, or proven to have had no effect, if IDs are ${name}`, async () => {
      const { account, store } = await open({ id, fate: () => "carried out, then cut" });
      for (let i = 0; i < 3; i++) account.create(`other.example/${i}`);
      assert.deepEqual((await store()).id, id(4));
      account.options.fate = ({ nth }) => (nth === 2 ? "cut, not carried out" : "answered");
      const { id: next, attempts } = await store();
      assert.deepEqual([next, attempts], [id(5), 2]);
    });

  for (const fate of ["carried out, then cut", "cut, not carried out"] as const)
    test(`is found among the reports that others create, or stays uncertain with these as candidates: ${fate}`, async () => {
      const { account, store } = await open();
      account.options.fate = () => {
        account.create("other.example/theirs");
        return fate;
      };
      const end = await store();
      const [{ id, url, created_at } = {} as never] = account.reports;
      if (fate === "carried out, then cut") assert.deepEqual([end.id, end.reconciled?.looks], [2, 1]);
      else assert.deepEqual([end.code, end.uncertain, end.candidates], ["SEO_SERVER", true, [{ id, url, created_at }]]);
    });

  test("never ends with a report from before, even if only an older one was shown", async () => {
    const { account, store, show } = await open({ fate: first("cut, not carried out") });
    for (const page of ["other.example", "other.example/2", PAGE]) account.create(page);
    await show();
    const { id, attempts } = await store();
    assert.deepEqual([id, attempts], [4, 2]);
  });

  test("is not waited for by a request that is retried", async () => {
    const { store } = await open({
      fate: ({ form, nth }) => {
        if (form.get("url") === PAGE) return "carried out, then cut";
        return nth === 1 ? "too many requests" : "answered";
      },
    });
    const [{ reconciled }, { attempts }] = await Promise.all([store(), late(900).then(() => store(`${PAGE}/2`))]);
    assert.deepEqual([reconciled?.looks, attempts], [1, 2]);
  });

  test("of two pages that redirect to each other does not stop either", async () => {
    const pages = [`${PAGE}/a`, `${PAGE}/b`] as const;
    const { store } = await open({ redirect: (url, nth) => (nth > 1 ? url : url === pages[0] ? pages[1] : pages[0]) });
    const twice = [...pages, ...pages];
    const ends = await Promise.all(twice.map((page) => store(page)));
    assert.deepEqual(ends.map(({ id }) => id).sort(), [1, 2, 3, 4]);
  });

  test("is known by the address to which the page redirected before", async () => {
    const { account, store } = await open({ redirect: () => "https://elsewhere.example/" });
    await store();
    account.options.fate = () => "carried out, then cut";
    const { id, reconciled } = await store();
    assert.deepEqual([id, reconciled?.looks], [2, 1]);
  });

  test("lets a second message for its page wait, and those for other pages pass", async () => {
    const { account, store } = await open({ fate: ofPage("carried out, then cut") });
    const ends: string[] = [];
    const end = (name: string) => () => ends.push(name);
    await Promise.all([
      store().then(end("first")),
      store(PAGE.replace("https://www.", "http://")).then(end("second")),
      store(`${PAGE}/other`).then(end("other")),
    ]);
    assert.deepEqual(ends, ["other", "first", "second"]);
    assert.equal(new Set(account.reports.map(({ id }) => id)).size, 3);
  });

  test("holds no slot while it is looked for", async () => {
    const settings = { concurrency: "1", reconcile: "30" };
    const { account, store, show } = await open({ fate: () => "carried out, then cut" }, settings);
    const lost = store();
    while (account.count("POST") === 0) await late(5);
    let isOver = false;
    void lost.then(() => {
      isOver = true;
    });
    await show();
    assert.equal(isOver, false);
    isFound(await lost);
  });

  test("counts towards the queue's size, so that memory is bounded", async () => {
    const settings = { concurrency: "2", queue: "2", reconcile: "3" };
    const { client, store } = await open({ fate: () => "carried out, then cut" }, settings);
    const lane = createLane();
    const ends: string[] = [];
    const admit = () =>
      client.admit({
        task: createTask(createLane()),
        start: () => ends.push("started"),
        refuse: ({ code, message }) => ends.push(code, message),
      });
    admit();
    const lost = [1, 2].map((page) => store(`${PAGE}/${page}`, { task: createTask(lane) }));
    while (lane.reconciling < 2) await late(5);
    admit();
    const sentence = "The queue is full: 2 messages are waiting (limit 2).";
    assert.deepEqual(ends, ["started", "SEO_QUEUE_FULL", sentence]);
    await Promise.all(lost);
  });

  test("shares its looks: a hundred at once need few lists", async () => {
    const { account, store } = await open({ fate: () => "carried out, then cut" }, { concurrency: "16" });
    const ends = await Promise.all(Array.from({ length: 100 }, (_, i) => store(`${PAGE}/${i}`)));
    assert.equal(new Set(ends.map(({ id }) => id)).size, 100);
    assert.deepEqual([account.count("POST"), account.count("GET", false)], [100, 100]);
    // The first short list, and at most three looks of four pages.
    assert.ok(account.count("GET", true) <= 13, `${account.count("GET", true)} lists`);
  });

  const PUT = { privacy: "2", password: "open sesame" };
  for (const [how, listed, access, put] of [
    ["changed if the report is found without it", 0, PUT, [PUT]],
    ["left alone if the report has it", 2, PUT, []],
    ["left alone if the service shows none and none was requested", null, { privacy: "0" }, []],
  ] as const)
    test(`has its privacy ${how}`, async () => {
      const { account, call } = await open({ fate: () => "carried out, then cut" });
      account.options.get = () => {
        for (const report of account.reports) Object.assign(report, { privacy: listed });
        return undefined;
      };
      const { id, reconciled } = await call("seo-report-store", { url: PAGE, ...access });
      assert.deepEqual([id, reconciled?.looks], [1, 1]);
      const puts = account.asked.filter(({ method }) => method === "PUT").map(({ form }) => Object.fromEntries(form));
      assert.deepEqual(puts, put);
    });

  for (const other of [[], { message: "maintenance" }, { data: { id: 8 } }, 500])
    test(`returns the listed record if the report cannot be shown: ${JSON.stringify(other)}`, async () => {
      const { account, store } = await open({ fate: () => "carried out, then cut" });
      account.options.get = ({ path }) => (path.endsWith("/reports") ? undefined : other);
      isFound(await store());
    });

  test("stays uncertain if the report that is found has been deleted, and so cannot get its privacy", async () => {
    const { account, call } = await open({ fate: () => "carried out, then cut" });
    account.options.get = () => {
      for (const report of account.reports) report.privacy = 0;
      setImmediate(() => account.reports.splice(0));
      return undefined;
    };
    const end = await call("seo-report-store", { url: PAGE, privacy: "1" });
    isError("SEO_SERVER", true, 1)(end);
    assert.equal(end.candidates?.length, 1);
  });

  test("stays uncertain if the list cannot be read, which is not tried again for each store", async () => {
    const { account, store, show } = await open({ fate: () => "carried out, then cut" });
    account.options.get = ({ path }) => (path.endsWith("/reports") ? 403 : undefined);
    account.create("other.example");
    await show();
    const end = await store();
    isError("SEO_SERVER", true, 1)(end);
    assert.deepEqual(end.candidates, []);
    isError("SEO_SERVER", true, 1)(await store(`${PAGE}/2`));
    assert.equal(account.count("GET", true), 1);
  });

  for (const [name, stop] of Object.entries({
    "a cancelled lane": (client: Client, lane: ReturnType<typeof createLane>) => client.cancel(lane),
    "a closed client": (client: Client) => client.close(),
  }))
    test(`is uncertain, and not looked for any more, after ${name}`, async () => {
      const { account, client, store } = await open({ fate: () => "carried out, then cut" }, { reconcile: "6" });
      const lane = createLane();
      const lost = store(PAGE, { task: createTask(lane) });
      const second = store(PAGE, { task: createTask(lane) });
      while (lane.reconciling === 0) await late(5);
      await stop(client, lane);
      isError("SEO_CANCELLED", true, 1)(await lost);
      isError("SEO_CANCELLED", false, 0)(await second);
      assert.deepEqual([lane.reconciling, lane.waiting, lane.running], [0, 0, 0]);
      const before = account.asked.length;
      await late(7000);
      assert.equal(account.asked.length, before);
    });

  for (const [name, earlier] of Object.entries({ "is still": {}, "of an earlier process is still": EARLIER }))
    test(`${name} looked for after another request gets a limit that is too long to wait for`, async () => {
      const { account, store, show } = await open({ fate: () => "carried out, then cut" });
      if (earlier === EARLIER) account.create(PAGE);
      const [lost, second] = [store(PAGE, earlier), store()];
      while (earlier !== EARLIER && account.count("POST") === 0) await late(5);
      account.options.limited = true;
      isError("SEO_RATE_LIMITED", false, 1)(await show());
      account.options.limited = false;
      isError("SEO_RATE_LIMITED", false, 0)(await second);
      assert.deepEqual([(await lost).id, account.reports.length], [1, 1]);
    });

  test("of an earlier process stays uncertain if it is cancelled before it was looked for", async () => {
    const { account, client, store } = await open({ get: () => late(300).then(() => undefined) });
    const lane = createLane();
    const [first, second] = [1, 2].map(() => store(PAGE, { ...EARLIER, task: createTask(lane) }));
    while (account.asked.length === 0) await late(5);
    client.cancel(lane);
    for (const end of [first, second, store(PAGE, { ...EARLIER, task: createTask(lane) })])
      isError("SEO_CANCELLED", true, 0)((await end) as End);
  });

  /** What happens to one create request; times are in milliseconds. */
  const story = fc.record({
    /** An earlier process sent it, and it is carried out after so long or never. */
    earlier: fc.option(fc.record({ carriedOut: fc.option(fc.nat(500)) })),
    fates: fc.array(
      fc.constantFrom<Fate>(
        "cut, then carried out",
        "carried out, then cut",
        "cut, not carried out",
        "rejected",
        "reset",
        "too many requests",
        "never",
      ),
      { maxLength: 2 },
    ),
    /** For how long all requests are rejected; `another` is rejected first. */
    limit: fc.option(fc.record({ after: fc.nat(2000), length: fc.nat(3000), another: fc.boolean() })),
    stop: fc.record({ after: fc.integer({ min: 50, max: 5000 }), what: fc.constantFrom("lane", "task", "client") }),
  });

  type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

  async function live({ earlier, fates, limit, stop }: Story): Promise<[End, created: number]> {
    const get = () => late(50).then(() => undefined);
    const fate = ({ nth }: Asked) => fates[nth - 1] ?? "answered";
    const { account, client, store, show } = await open({ late: 300, fate, get });
    const task = createTask(createLane());
    const events: Record<string, () => unknown> = {
      lane: () => client.cancel(task.lane),
      task: () => client.cancel(task),
      client: () => client.close(),
    };
    const happening = [late(stop.after).then(events[stop.what])];
    if (typeof earlier?.carriedOut === "number")
      happening.push(late(earlier.carriedOut).then(() => account.create(PAGE)));
    if (limit)
      happening.push(
        late(limit.after).then(() => {
          account.options.limited = true;
          if (limit.another) void show();
          return late(limit.length).then(() => {
            account.options.limited = false;
          });
        }),
      );
    const end = await store(PAGE, { ...(earlier && EARLIER), task });
    await Promise.all([...happening, late(400)]);
    return [end, account.reports.length];
  }

  test("takes effect once, and not after a certain error, whatever happens to it", async () => {
    const check = async (one: Story) => {
      const [end, created] = await live(one);
      const expected = end.code === undefined ? [1] : end.uncertain ? [0, 1] : [0];
      assert.ok(expected.includes(created), JSON.stringify({ one, end, created }));
    };
    await Promise.all(fc.sample(story, 60).map(check));
  });

  test("is uncertain if it is cancelled in flight, and is not sent if it is cancelled before", async () => {
    const { account, client, store } = await open({ fate: () => "never" });
    account.options.get = () => late(300).then(() => undefined);
    const early = createLane();
    const notSent = store(PAGE, { task: createTask(early) });
    while (account.asked.length === 0) await late(5);
    client.cancel(early);
    isError("SEO_CANCELLED", false, 0)(await notSent);
    assert.equal(account.count("POST"), 0);
    const lane = createLane();
    const sent = store(PAGE, { task: createTask(lane) });
    while (account.count("POST") === 0) await late(5);
    client.cancel(lane);
    isError("SEO_CANCELLED", true, 1)(await sent);
  });

  /** How the date of the report is known: by a response, or by the caller. */
  type Before = "shown" | "given" | "shown, then given" | "given, then shown" | "given, then moved" | "unknown";
  const [carriedOut, notCarriedOut] = ["carried out, then cut", "cut, not carried out"] as const;
  const isUncertain = isError("SEO_SERVER", true, 1);
  type Options = AccountOptions & { age?: number };
  const updates: [how: string, fate: Fate, before: Before, check: (end: End) => void, options?: Options][] = [
    ["is found by the date that was known", carriedOut, "shown", isFound, { age: HOUR }],
    ["is found by that date without a Date header", carriedOut, "shown", isFound, { age: HOUR, withoutDate: true }],
    ["is retried if the date that was known has not moved", notCarriedOut, "shown", isRetried],
    ["is retried if the date known last has not moved", notCarriedOut, "shown, then given", isRetried],
    ["is retried if a later date than its caller's was known", notCarriedOut, "given, then shown", isRetried],
    ["is found by a date that its caller did not know", carriedOut, "given, then moved", isFound, { age: HOUR }],
    ["stays uncertain if that date is earlier", notCarriedOut, "given, then moved", isUncertain, { age: HOUR }],
    ["is found by the service's clock if no date was known", carriedOut, "unknown", isFound, { age: HOUR }],
    ["stays uncertain if that clock is slow", carriedOut, "unknown", isUncertain, { age: 2 * HOUR, dateAhead: -HOUR }],
    ["stays uncertain without a Date header", carriedOut, "unknown", isUncertain, { age: 2 * DAY, withoutDate: true }],
    ["is certain if the service rejects the page", "rejected", "shown", isError("SEO_SERVER", false, 1)],
  ];
  for (const [how, fate, known, check, { age = 0, ...options } = {}] of updates)
    test(`of an update ${how}`, async () => {
      const { account, update, show } = await open({ ...options, fate: first(fate) });
      const report = account.create(PAGE);
      report.generated_at = new Date(Date.parse(report.generated_at) - age).toISOString();
      const durable: Durable = {};
      for (const [index, by] of known.split(", then ").entries()) {
        if (index > 0) report.generated_at = new Date(Date.parse(report.generated_at) + 5000).toISOString();
        if (by === "shown") await show();
        if (by === "given") durable.generatedAt = report.generated_at;
      }
      await late(5);
      const end = await update({ durable });
      check(end);
      if (end.uncertain) assert.equal((end.candidates as { id: unknown }[])[0]?.id, 1);
    });

  test("of an update is retried by the date of the update before, also if that was earlier than a known one", async () => {
    const { account, update, show } = await open({ fate: ({ nth }) => (nth === 2 ? notCarriedOut : "answered") });
    account.create(PAGE).generated_at = new Date(Date.now() + HOUR).toISOString();
    await show();
    await update();
    isRetried(await update());
  });
});
