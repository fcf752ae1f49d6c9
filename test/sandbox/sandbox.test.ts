import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import fc from "fast-check";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.js";

type Row = Record<string, unknown> & { id: number; url: string; project: string; score: number; result: string };
type Body = {
  data: Row & Row[];
  meta: Record<string, unknown>;
  links: Record<string, string | null>;
  message: unknown;
};
type Received = { status: number; headers: Headers; body: Body };
type Texts = Record<string, string>;

const NOW = Date.UTC(2026, 10, 12, 9, 30);
const REPORTS = "/api/v1/reports";
const PROJECTS = "/api/v1/projects";
const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const HEADERS = { accept: "application/json", authorization: "Bearer sandbox-key" };
const PIECES = ["&", "=", "%", "+", "ü", "%C3", "%BC", "__proto__", "url", "page", "sort", "asc", "privacy", "2", "[]"];
const FORM = "application/x-www-form-urlencoded";

describe("the sandbox", () => {
  let sandbox: Sandbox;

  async function start(options: SandboxOptions = {}): Promise<void> {
    await sandbox?.close();
    sandbox = await startSandbox({ now: () => NOW, ...options });
  }

  async function send(method: string, path: string, form?: Texts, headers: Texts = HEADERS): Promise<Received> {
    const body = form ? new URLSearchParams(form) : null;
    const response = await fetch(sandbox.url + path, { method, headers, body, redirect: "manual" });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
  }

  /** Sends exactly these headers and bytes; fetch would add its own or reject them. */
  async function sendRaw(method: string, path: string, headers: Texts, body = ""): Promise<[number, Body]> {
    const sent = request({ host: "127.0.0.1", port: sandbox.port, method, path, headers }).end(body);
    const [response] = await once(sent, "response");
    return [response.statusCode, (await json(response)) as Body];
  }

  async function allPages(query: Texts): Promise<Row[]> {
    const rows: Row[] = [];
    for (let page = 1; ; page++) {
      const { status, body } = await send("GET", `${REPORTS}?${new URLSearchParams({ ...query, page: String(page) })}`);
      assert.equal(status, 200);
      rows.push(...body.data);
      if (body.links.next === null) return rows;
    }
  }

  beforeEach(() => start());
  afterEach(() => sandbox.close());

  it("starts with the same plausible reports of the last 90 days in every run", async () => {
    const rows = await allPages({ per_page: "100" });
    assert.equal(rows.length, 36);
    for (const row of rows) {
      assert.equal(row.project, row.url.split("/")[0]);
      assert.equal(row.result, row.score >= 80 ? "good" : row.score >= 50 ? "decent" : "bad");
      const { note, ...checks } = row.results as Record<string, unknown>;
      assert.equal(note, "made up by the sandbox");
      for (const check of Object.values(checks as Record<string, Record<string, unknown>>)) {
        assert.ok(["high", "medium", "low"].includes(String(check.importance)));
        assert.ok("value" in check && "errors" in check !== check.passed);
      }
      assert.equal(row.password, row.privacy === 2);
      for (const name of ["created_at", "generated_at", "updated_at"]) assert.match(String(row[name]), DATE);
      const age = NOW - Date.parse(String(row.created_at));
      assert.ok(age >= 0 && age <= 90 * 24 * 3600 * 1000, `${age} ms`);
      assert.ok(String(row.generated_at) >= String(row.created_at));
    }
    const values = (name: string) => new Set(rows.map((row) => row[name]));
    assert.deepEqual([...values("result")].sort(), ["bad", "decent", "good"]);
    assert.deepEqual([...values("privacy")].sort(), [0, 1, 2]);
    assert.equal(values("project").size, 6);
    assert.equal(values("url").size, 36);
    await start();
    assert.deepEqual(await allPages({ per_page: "100" }), rows);
    await start({ reports: 2, lastId: 5 });
    const ids = (await allPages({})).map(({ id }) => id);
    assert.deepEqual(ids, [7, 6]);
  });

  it("returns a list in the envelope of the service", async () => {
    const list = sandbox.url + REPORTS;
    const { body, headers } = await send("GET", `${REPORTS}?sort=asc&page=2`);
    const { data, links, meta } = body;
    const ids = data.map(({ id }) => id);
    assert.deepEqual(ids, [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
    assert.deepEqual(links, {
      first: `${list}?sort=asc&page=1`,
      last: `${list}?sort=asc&page=4`,
      prev: `${list}?sort=asc&page=1`,
      next: `${list}?sort=asc&page=3`,
    });
    const { links: pageLinks, ...counts } = meta;
    assert.deepEqual(counts, { current_page: 2, from: 11, last_page: 4, path: list, per_page: 10, to: 20, total: 36 });
    assert.equal((pageLinks as unknown[]).length, 3);
    assert.equal(headers.get("content-type"), "application/json");
    assert.ok(Number(headers.get("x-ratelimit-remaining")) < Number(headers.get("x-ratelimit-limit")));
  });

  it("returns the last page, a page beyond the end, and an empty list", async () => {
    const last = await send("GET", `${REPORTS}?page=4`);
    assert.deepEqual([last.body.data.length, last.body.meta.to, last.body.links.next], [6, 36, null]);
    const beyond = await send("GET", `${REPORTS}?page=99`);
    assert.deepEqual([beyond.status, beyond.body.data, beyond.body.meta.total], [200, [], 36]);
    const empty = await send("GET", `${REPORTS}?search=nowhere`);
    const { from, to, total, last_page } = empty.body.meta;
    assert.deepEqual([empty.body.data, from, to, total, last_page], [[], null, null, 0, 1]);
  });

  it("returns each matching record once, in order, for any filter, sort order and page size", async () => {
    await start({ reports: 130 });
    const all = await allPages({ per_page: "100" });
    const query = fc.record(
      {
        search: fc.constantFrom("shop", "EXAMPLE.ORG/", "e/1", "nowhere"),
        search_by: fc.constant("url"),
        project: fc.constantFrom("shop.example.com", "example.com", "none.example"),
        result: fc.constantFrom("good", "decent", "bad"),
        sort_by: fc.constantFrom("id", "generated_at", "url", "score"),
        sort: fc.constantFrom("asc", "desc"),
        per_page: fc.constantFrom("10", "25", "50", "100"),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(query, async ({ ...query }) => {
        const rows = await allPages(query as Texts);
        const { search = "", project, result, sort_by = "id", sort = "desc" } = query;
        const expected = all.filter(
          (row) =>
            row.url.toLowerCase().includes(search.toLowerCase()) &&
            (project ?? row.project) === row.project &&
            (result ?? row.result) === row.result,
        );
        const ids = (list: Row[]) => list.map(({ id }) => id).sort((a, b) => a - b);
        assert.deepEqual(ids(rows), ids(expected));
        for (const [i, row] of rows.slice(1).entries()) {
          const [before, after] = [rows[i]?.[sort_by] as string, row[sort_by] as string];
          assert.ok(sort === "asc" ? before <= after : before >= after, `${before} comes before ${after}`);
        }
      }),
      { numRuns: 60 },
    );
  });

  const searches: [search: string, urls: string[]][] = [
    ["a_c", ["example.com/abc", "example.com/a_c"]],
    ["example.com/%C", ["example.com/abc", "example.com/a_c"]],
    ["com/(", ["example.com/("]],
    ["c%b%m", []],
  ];
  for (const [search, urls] of searches) {
    it(`searches for ${search} as SQL's LIKE does`, async () => {
      await start({ reports: 0 });
      for (const url of ["example.com/abc", "example.com/a_c", "example.com/a%b1", "example.com/("])
        sandbox.reports.store({ url });
      const { body } = await send("GET", `${REPORTS}?${new URLSearchParams({ search, sort: "asc" })}`);
      const found = body.data.map(({ url }) => url);
      assert.deepEqual(found, urls);
    });
  }

  it("stores, shows and deletes a report", async () => {
    const stored = await send("POST", REPORTS, { url: "https://www.example.com/" });
    assert.equal(stored.status, 201);
    const { data, ...rest } = stored.body;
    assert.deepEqual(rest, { status: 200 });
    assert.deepEqual([data.id, data.url, data.project], [37, "example.com", "example.com"]);
    assert.deepEqual([data.privacy, data.password], [0, false]);
    assert.equal(data.created_at, "2026-11-12T09:30:00.000000Z");
    const again = await send("POST", REPORTS, { url: "https://www.example.com/" });
    assert.deepEqual([again.body.data.id, again.body.data.score], [38, data.score]);
    assert.deepEqual((await send("GET", `${REPORTS}/37`)).body, stored.body);
    const gone = await send("DELETE", `${REPORTS}/37`);
    assert.deepEqual([gone.status, gone.body], [200, { id: 37, object: "report", deleted: true, status: 200 }]);
    assert.equal((await send("GET", `${REPORTS}/37`)).status, 404);
    assert.equal((await send("GET", REPORTS)).body.meta.total, 37);
  });

  const addresses: [sent: string, url: string, project: string][] = [
    ["https://www.Example.com", "example.com", "example.com"],
    ["http://shop.example.com:8080/a?b=ü&c=%26#d", "shop.example.com:8080/a?b=%C3%BC&c=%26", "shop.example.com"],
    ["example.com/?via=https://example.org", "example.com/?via=https://example.org", "example.com"],
    ["https://müller.example", "xn--mller-kva.example", "xn--mller-kva.example"],
  ];
  for (const [sent, url, project] of addresses) {
    it(`stores ${sent} as ${url}`, async () => {
      const { body } = await send("POST", REPORTS, { url: sent });
      assert.deepEqual([body.data.url, body.data.project], [url, project]);
    });
  }

  /** Without `after`, the request has no body. */
  type Change = [what: string, before: Texts, after: Texts | undefined, privacy: number, password: string | null];
  const privacyChanges: Change[] = [
    ["sets a password", {}, { privacy: "2", password: "s" }, 2, "s"],
    ["ignores a password without privacy 2", {}, { privacy: "1", password: "s" }, 1, null],
    ["ignores a password while the report is public", {}, { password: "s" }, 0, null],
    ["keeps fields that are not sent", { privacy: "2", password: "s" }, { update: "0" }, 2, "s"],
    ["changes only the password", { privacy: "2", password: "s" }, { password: "t" }, 2, "t"],
    ["changes only updated_at if it has no fields", { privacy: "1" }, undefined, 1, null],
    ["removes the password with privacy 0", { privacy: "2", password: "s" }, { privacy: "0" }, 0, null],
  ];
  for (const method of ["PUT", "PATCH"]) {
    for (const [what, before, after, privacy, password] of privacyChanges) {
      it(`${method} ${what}`, async () => {
        const stored = await send("POST", REPORTS, { url: "https://example.com", ...before });
        const { status, body } = await send(method, `${REPORTS}/37`, after);
        assert.equal(status, 200);
        const { updated_at } = body.data;
        assert.deepEqual(body.data, { ...stored.body.data, privacy, password: password !== null, updated_at });
        assert.equal(sandbox.reports.get(37)?.password, password);
        assert.ok(String(updated_at) > String(stored.body.data.updated_at));
      });
    }

    it(`${method} regenerates with update=1`, async () => {
      const { data: before } = (await send("POST", REPORTS, { url: "https://example.com" })).body;
      const { data: after } = (await send(method, `${REPORTS}/37`, { update: "1" })).body;
      assert.ok(String(after.generated_at) > String(before.generated_at));
      assert.equal(after.created_at, before.created_at);
      assert.notEqual(after.score, before.score);
    });
  }

  it("lowers the scores of some pages of example.com and raises others when it regenerates their reports", async () => {
    const before = (await send("GET", `${REPORTS}?project=example.com`)).body.data;
    for (const { id } of before) await send("PUT", `${REPORTS}/${id}`, { update: "1" });
    const after = (await send("GET", `${REPORTS}?project=example.com`)).body.data;
    const changes = after.map(({ score }: Row, index: number) => score - (before[index]?.score ?? 0));
    assert.ok(Math.min(...changes) <= -20 && Math.max(...changes) > 0, `${changes}`);
  });

  it("lists projects, and deletes a project with its reports", async () => {
    const query = "search=EXAMPLE.com&search_by=project&sort_by=project&sort=asc&per_page=10";
    const { body } = await send("GET", `${PROJECTS}?${query}`);
    const projects = body.data.map(({ project }) => project);
    assert.deepEqual(projects, ["example.com", "shop.example.com"]);
    for (const { project, reports, score, created_at, ...rest } of body.data) {
      const members = await allPages({ project, per_page: "100", sort: "asc" });
      const mean = members.reduce((sum, member) => sum + member.score, 0) / members.length;
      assert.deepEqual([reports, score, created_at], [members.length, Math.round(mean), members[0]?.created_at]);
      assert.deepEqual(rest, {});
    }
    const newest = (await send("GET", PROJECTS)).body.data.map((project) => String(project.created_at));
    assert.equal(newest.length, 6);
    assert.deepEqual(newest, newest.toSorted().reverse());

    const others = (await send("GET", `${REPORTS}?project=shop.example.com`)).body.meta.total;
    const gone = await send("DELETE", `${PROJECTS}/example.com`);
    const expected = { project: "example.com", object: "project", deleted: true, status: 200 };
    assert.deepEqual([gone.status, gone.body], [200, expected]);
    assert.equal((await send("GET", `${REPORTS}?project=example.com`)).body.meta.total, 0);
    assert.equal((await send("GET", `${REPORTS}?project=shop.example.com`)).body.meta.total, others);
    assert.equal((await send("GET", PROJECTS)).body.meta.total, 5);
    assert.equal((await send("DELETE", `${PROJECTS}/example.com`)).status, 404);
  });

  const unauthorized: Texts[] = [{}, { authorization: "Bearer wrong" }, { authorization: "sandbox-key" }];
  for (const headers of unauthorized) {
    it(`rejects the headers ${JSON.stringify(headers)}`, async () => {
      const all = { accept: "application/json", ...headers };
      const { status, body } = await send("DELETE", `${REPORTS}/1`, undefined, all);
      assert.deepEqual([status, body], [401, { message: "Unauthenticated." }]);
      assert.ok(sandbox.reports.get(1));
    });
  }

  const missing = {
    GET: "/ /api/v1/nothing /api/v2/reports /api/v1/reports/999 /api/v1/reports/0 /api/v1/reports/1e0",
    PATCH: "/api/v1/reports/999",
    DELETE:
      "/api/v1/reports/999 /api/v1/projects/none.example /api/v1/projects/example.com%2Fa /api/v1/projects/example.com/a",
  };
  for (const [method, paths] of Object.entries(missing)) {
    for (const path of paths.split(" "))
      it(`returns 404 for ${method} ${path}`, async () => {
        const { status, body } = await send(method, path);
        assert.deepEqual([status, body], [404, { message: "Resource not found.", status: 404 }]);
      });
  }

  const notAllowed: [method: string, path: string, allowed: string][] = [
    ["DELETE", REPORTS, "GET, POST"],
    ["POST", `${REPORTS}/1`, "GET, PUT, PATCH, DELETE"],
    ["POST", PROJECTS, "GET"],
    ["GET", `${PROJECTS}/example.com`, "DELETE"],
  ];
  for (const [method, path, allowed] of notAllowed) {
    it(`returns 405 for ${method} ${path}`, async () => {
      const { status, headers } = await send(method, path);
      assert.deepEqual([status, headers.get("allow")], [405, allowed]);
    });
  }

  it("redirects a path with a trailing slash", async () => {
    const { status, headers } = await send("POST", `${REPORTS}/?a=b`, { url: "https://example.com" });
    assert.deepEqual([status, headers.get("location")], [301, `${sandbox.url}${REPORTS}?a=b`]);
    assert.equal(sandbox.reports.list({}).length, 36);
  });

  const { authorization } = HEADERS;
  const form = { ...HEADERS, "content-type": FORM };
  const long = { ...form, "content-length": "6" };
  const asJson = { ...HEADERS, "content-type": "application/json" };
  /** A request with a body is a form unless `headers` say otherwise. */
  const strictness: [why: string, request: string, message: RegExp, body?: string, headers?: Texts][] = [
    ["no Accept", "GET reports", /Accept must be application\/json; it is missing/, "", { authorization }],
    ["an unknown query parameter", "GET reports?limit=5", /Unknown query parameter "limit"; allowed here: search, /],
    ["a query on a store", "POST reports?url=example.com", /Unknown query parameter "url"/, "url=example.com"],
    ["a repeated query parameter", "GET reports?page=1&page=2", /query parameter "page" was sent twice/],
    [
      "an unknown field",
      "POST reports",
      /form field "update"; allowed here: url, privacy, /,
      "url=example.com&update=1",
    ],
    ["an empty field", "PUT reports/1", /form field "password" is empty/, "privacy=2&password="],
    ["a field without a value", "PUT reports/1", /Malformed form field "privacy"/, "privacy"],
    ["an unencoded =", "PUT reports/1", /Malformed form field/, "password=a=b"],
    ["an invalid percent code", "PUT reports/1", /not percent-encoded UTF-8/, "password=%E0%A4"],
    ["raw non-ASCII text", "PUT reports/1", /not percent-encoded UTF-8/, "password=ü"],
    ["JSON", "POST reports", /Content-Type must be .* it is application\/json/, '{"url":"example.com"}', asJson],
    ["no content type", "POST reports", /Content-Type must be .* it is missing/, "url=example.com", HEADERS],
    ["a body on a list", "GET reports", /A GET request must not have a body here/, "page=1", long],
    ["an invalid percent code in the path", "DELETE projects/%E0%A4", /Malformed path/],
  ];
  for (const [why, request, message, sent = "", headers = sent ? form : HEADERS] of strictness) {
    it(`rejects ${why}`, async () => {
      const before = JSON.stringify(sandbox.reports.list({}));
      const [method = "", path] = request.split(" ");
      const [status, body] = await sendRaw(method, `/api/v1/${path}`, headers, sent);
      assert.equal(status, 400);
      assert.match(String(body.message), message);
      assert.equal(JSON.stringify(sandbox.reports.list({})), before);
    });
  }

  const others = ["https://u:p@example.com", "mailto:a@b.example", `https://example.com/${"a".repeat(2048)}`];
  const rejected: [method: string, path: string, form: Texts | undefined, fields: string[]][] = [
    ["GET", `${REPORTS}?per_page=20`, undefined, ["per_page"]],
    ["GET", `${REPORTS}?page=0`, undefined, ["page"]],
    ["GET", `${REPORTS}?search_by=project&sort_by=project`, undefined, ["search_by", "sort_by"]],
    ["GET", `${PROJECTS}?search_by=url&sort_by=id`, undefined, ["search_by", "sort_by"]],
    ["POST", REPORTS, { privacy: "3" }, ["url", "privacy"]],
    ...["example", "ftp://example.com", "https://", "https://example.com/a b", "https://exa\tmple.com", ...others].map(
      (url): [string, string, Texts, string[]] => ["POST", REPORTS, { url }, ["url"]],
    ),
    ["PUT", `${REPORTS}/1`, { update: "true", privacy: "private" }, ["privacy", "update"]],
    ["PATCH", `${REPORTS}/1`, { password: "a".repeat(2049) }, ["password"]],
  ];
  for (const [method, path, form, fields] of rejected) {
    it(`rejects ${method} ${path} ${form ? new URLSearchParams(form).toString().slice(0, 60) : ""}`, async () => {
      const { status, body } = await send(method, path, form);
      assert.equal(status, 422);
      assert.deepEqual(Object.keys(body.message as object).sort(), fields.toSorted());
      for (const [name, [message]] of Object.entries(body.message as Record<string, string[]>))
        assert.ok(message?.startsWith(`The ${name} `), message);
      assert.deepEqual({ ...body, message: "" }, { message: "", status: 422 });
    });
  }

  it("responds to any body and any query", async () => {
    const anything = fc.string({ unit: fc.constantFrom(...PIECES) });
    await fc.assert(
      fc.asyncProperty(anything, anything, async (body, query) => {
        const store = sendRaw("POST", REPORTS, form, body);
        const [listed] = await sendRaw("GET", `${REPORTS}?${query.replaceAll("ü", "~")}`, HEADERS);
        const [stored] = await store;
        assert.ok([400, 422].includes(stored), `${stored}`);
        assert.ok([200, 400, 422].includes(listed), `${listed}`);
      }),
    );
  });

  it("closes immediately with idle and waiting connections, and can be closed twice", async () => {
    await start({ latency: 60_000 });
    const idle = connect(sandbox.port, "127.0.0.1");
    await once(idle, "connect");
    const waiting = assert.rejects(send("GET", REPORTS));
    while (sandbox.requests.length === 0) await sleep(5);
    const before = performance.now();
    await sandbox.close();
    await sandbox.close();
    assert.ok(performance.now() - before < 30_000);
    await waiting;
    if (!idle.closed) await once(idle, "close");
  });

  it("keeps no process alive once it is closed", async () => {
    const script = `
      import { startSandbox } from ${JSON.stringify(new URL("../../sandbox/server.js", import.meta.url).href)};
      const sandbox = await startSandbox({ live: true, liveInterval: 60_000, latency: 60_000 });
      fetch(sandbox.url).catch(() => {});
      while (sandbox.requests.length === 0) await new Promise(setImmediate);
      await sandbox.close();`;
    await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { timeout: 30_000 });
  });

  it("changes its reports when live, until it is closed", async () => {
    await start({ live: true, liveInterval: 5 });
    const score = new Map(sandbox.reports.list({}).map((report) => [report.id, report.score]));
    const seen = { created: false, changed: false, deleted: false };
    while (!(seen.created && seen.changed && seen.deleted)) {
      await sleep(5);
      const now = new Map(sandbox.reports.list({}).map((report) => [report.id, report.score]));
      seen.created ||= [...now.keys()].some((id) => !score.has(id));
      seen.changed ||= [...now].some(([id, value]) => score.has(id) && score.get(id) !== value);
      seen.deleted ||= [...score.keys()].some((id) => !now.has(id));
    }
    await sandbox.close();
    const rest = sandbox.reports.list({});
    await sleep(50);
    assert.equal(sandbox.reports.list({}), rest);
  });
});
