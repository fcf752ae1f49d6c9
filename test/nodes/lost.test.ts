import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as late } from "node:timers/promises";
import { startSandbox } from "../../sandbox/server.js";
import { failure, node, service, startFlow } from "../support/flow.js";
import { openLocally } from "../support/local.js";
import { startNginx } from "../support/nginx.js";
import { closeAfterEach } from "../support/opened.js";
import { stopBackOff } from "../support/time.js";

describe("Two hundred create requests through nginx, which gives up after 1 s", () => {
  const open = closeAfterEach();
  const STORES = 200;
  /** Messages with the same rest have the same page. */
  const PAGES = 190;

  /** What happens to the first request for a page: milliseconds until it reaches the service, if it does, and then until it responds. */
  function fateOf(page: number): { reaches: number; responds: number } {
    if (page % 20 === 7) return { reaches: Number.POSITIVE_INFINITY, responds: 0 };
    if (page % 10 === 3) return { reaches: 900 + page * 5, responds: 0 };
    if (page % 25 === 11) return { reaches: 0, responds: 1500 };
    return { reaches: page % 50, responds: 0 };
  }

  /** Passes requests on to the service as `fateOf` says. A request that reaches it takes effect, whoever waits for the response. */
  async function startDelays(upstream: string) {
    const seen = new Set<string>();
    const server = createServer(async (incoming, response) => {
      const { method, url, headers } = incoming;
      const body = await text(incoming);
      const page = Number(/page%2F(\d+)/.exec(body)?.[1]);
      const { reaches, responds } = method !== "POST" || seen.has(body) ? { reaches: 0, responds: 0 } : fateOf(page);
      seen.add(body);
      if (reaches === Number.POSITIVE_INFINITY) return;
      await late(reaches);
      request(`${upstream}${url}`, { method, headers }, async (answer) => {
        const content = await text(answer);
        await late(responds);
        response.writeHead(Number(answer.statusCode), answer.headers).end(content);
      }).end(body);
    });
    return openLocally(server);
  }

  it("creates no report twice, loses none, and gives each message its own", async function () {
    const sandbox = await open(startSandbox({ reports: 5 }));
    const delays = await open(startDelays(sandbox.url));
    const place = `location / { proxy_pass ${delays.url}; proxy_read_timeout 1s; proxy_next_upstream off; }`;
    const nginx = await open((await startNginx(place)) ?? this.skip());
    await open({ close: stopBackOff() });
    const settings = { concurrency: "16", retries: "3", reconcile: "5" };
    const nodes = [service("service", nginx.url, settings), node("store", "seo-report-store")];
    const flow = await open(startFlow(nodes, { service: { apiKey: sandbox.apiKey } }));
    const urls = Array.from({ length: STORES }, (_, i) => `example.com/page/${i % PAGES}`);
    const ends = await Promise.all(urls.map((url) => flow.send("store", { payload: `https://${url}` })));
    const got = ends.map(({ outputs, caught }) => {
      if (caught) assert.fail(JSON.stringify(failure({ caught }).seo.error));
      const [{ payload, seo }] = outputs as [
        { payload: { data: { id: number; url: string } }; seo: { reconciled?: object } },
      ];
      return { ...payload.data, reconciled: seo.reconciled !== undefined };
    });
    const returned = got.map(({ url }) => url);
    assert.deepEqual(returned, urls);
    assert.equal(new Set(got.map(({ id }) => id)).size, STORES);
    const { length } = sandbox.reports.list({ search: "example.com/page/" });
    assert.equal(length, STORES);
    assert.ok(ends.every((end) => end.ends === 1));
    const found = got.filter(({ reconciled }) => reconciled).length;
    console.log(`      ${found} found by looking, ${sandbox.requests.length - STORES} requests for it`);
    assert.ok(found >= 20);
  });
});
