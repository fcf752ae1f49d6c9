import assert from "node:assert/strict";
import type { Node, NodeAPI, NodeStatus } from "node-red";
import { reasonKey } from "../../nodes/figures.js";
import { AuditStatus } from "../../nodes/progress.js";
import type { Progress } from "../../src/audit/progress.js";
import { Trouble } from "../../src/audit/trouble.js";
import { type Code, SeoError } from "../../src/errors.js";

describe("The status of an audit", () => {
  const texts: Record<string, string> = {
    auditing: "__done__ of __total__",
    left: "__left__ left",
    wait: "waiting __seconds__ s",
    plan: "reading",
    message: "paused",
    pagesReset: "__count__ dropped",
    reconciling: "__count__ reconciling",
    failed: "__count__ failed",
    status: "not allowed",
    standsBy: "stands by",
  };
  const translate = (key: string, values: Record<string, string>) =>
    String(texts[key.split(".").at(-1) ?? ""]).replace(/__(\w+)__/g, (_, name) => String(values[name]));
  function open() {
    const shown: NodeStatus[] = [];
    const node = { status: (one: NodeStatus) => shown.push(one) } as unknown as Node;
    return { shown, status: new AuditStatus({ _: translate } as unknown as NodeAPI, node, []) };
  }
  const idle: Progress = {
    ...{ batch: "a", total: 50_000, done: 0, created: 0, regenerated: 0, fresh: 0, failed: 0, uncertain: 0 },
    ...{ invalid: 0, waiting: 50_000, reconciling: 0, dropped: 0, perMinute: 0, paused: false, finished: false },
  };
  const counts = { done: 12_043, created: 12_043, waiting: 37_957 };
  const half: Progress = { ...idle, ...counts, perMinute: 45.2, secondsLeft: 50_386 };
  const blue = (text: string): NodeStatus => ({ fill: "blue", shape: "dot", text });
  const yellow = (text: string): NodeStatus => ({ fill: "yellow", shape: "ring", text });
  const red = (text: string): NodeStatus => ({ fill: "red", shape: "ring", text });
  const grey = (text: string): NodeStatus => ({ fill: "grey", shape: "ring", text });
  const green = (text: string): NodeStatus => ({ fill: "green", shape: "dot", text });
  const error = (code: string) => red(`seo-reports.error.${code}.status`);

  const b = { batch: "b" };
  const byMessage = { paused: "Paused." };
  const byFailures = { paused: "5 requests in a row failed." };
  const almost = { done: 49_990, waiting: 10, perMinute: 60 };
  const end = { done: 50_000, created: 50_000, waiting: 0, finished: true };
  /** Only lost responses are left, so that the time is not known. */
  const rest = { done: 49_997, waiting: 3, reconciling: 2, secondsLeft: undefined };
  const failures = { created: 48_990, failed: 1000, uncertain: 10 };

  /** A call, and what is shown after it; undefined where only a later call matters. */
  type Step = [call: (status: AuditStatus) => void, shown: NodeStatus | undefined];
  const update =
    (progress: Progress, ...more: Partial<Progress>[]) =>
    (status: AuditStatus) => {
      const one: Progress = Object.assign({}, progress, ...more);
      status.update([...status.batches.filter(({ batch }) => batch !== one.batch), one], false);
    };
  const standBy =
    (...all: Progress[]) =>
    (status: AuditStatus) =>
      status.update(all, true);
  const fail =
    (code: Code | Trouble, batch?: string, details = {}) =>
    (status: AuditStatus) =>
      status.failed(typeof code === "string" ? new SeoError(code, "No.", details) : code, batch);
  const succeed =
    (...what: Parameters<AuditStatus["succeeded"]>) =>
    (status: AuditStatus) =>
      status.succeeded(...what);
  const close = (status: AuditStatus) => status.close();
  const connect = (status: AuditStatus) => status.connecting();
  const connecting = yellow("node-red:common.status.connecting");

  const stories: Record<string, Step[]> = {
    "says how far all batches are, and how long they take": [
      [update(idle), blue("0 of 50,000")],
      [update(idle, { reason: "plan" }), blue("reading · 0 of 50,000")],
      [update(half), blue("12,043 of 50,000 · 14 h left")],
      [update(idle, b, { total: 10_000, waiting: 10_000 }), blue("12,043 of 60,000 · 18 h left")],
      [update(half, byMessage), blue("12,043 of 60,000")],
      [update(idle, b, { total: 10_000 }, byMessage), yellow("paused · 12,043 of 60,000")],
      [update(half, almost), blue("49,990 of 60,000 · 10 s left")],
      [update(half, almost, { failed: 6, uncertain: 1 }), blue("49,990 of 60,000 · 10 s left · 7 failed")],
    ],
    "says that it connects until it is known who leads, or an error": [
      [connect, connecting],
      [(status) => status.update([half]), connecting],
      [fail("SEO_NETWORK"), error("SEO_NETWORK")],
      [succeed({ opened: false }), connecting],
      [succeed({ opened: true }), blue("12,043 of 50,000 · 14 h left")],
      [connect, connecting],
      [standBy(half), blue("stands by · 12,043 of 50,000 · 14 h left")],
    ],
    "estimates no time if that depends on lost responses only": [
      [update(half, rest, { secondsLeft: 4 }), blue("49,997 of 50,000 · 4 s left")],
      [update(half, rest), blue("2 reconciling · 49,997 of 50,000")],
      [update(half, b), blue("62,040 of 100,000 · 7 h 0 min left")],
    ],
    "says how long no request can start": [
      [update(half, { secondsToWait: 42 }), yellow("waiting 42 s · 12,043 of 50,000")],
      [
        update(half, b, { reconciling: 957, secondsToWait: 41, secondsLeft: undefined }),
        yellow("waiting 42 s · 24,086 of 100,000"),
      ],
      [update(half), undefined],
      [update(half, b), blue("24,086 of 100,000 · 14 h left")],
    ],
    "shows how a batch ended until another one continues": [
      [update(half, end), green("50,000 of 50,000")],
      [update(half, end, failures), red("50,000 of 50,000 · 1,010 failed")],
      [update(half, b), blue("12,043 of 50,000 · 14 h left")],
    ],
    "says that it stands by, and how far the batches of the instance that leads are": [
      [standBy(), grey("stands by")],
      [standBy(half), blue("stands by · 12,043 of 50,000 · 14 h left")],
      [standBy(half, { ...half, ...b }), blue("stands by · 24,086 of 100,000 · 14 h left")],
      // It is all that is left.
      [standBy({ ...half, ...byMessage }), yellow("stands by · paused · 12,043 of 50,000")],
      [standBy({ ...half, ...end }), green("stands by · 50,000 of 50,000")],
      [standBy({ ...half, ...end, ...failures }), red("stands by · 50,000 of 50,000 · 1,010 failed")],
      [standBy(), grey("stands by")],
      // Now it leads.
      [update(half), blue("12,043 of 50,000 · 14 h left")],
      [standBy(half), undefined],
      [close, {}],
    ],
    "shows errors as before while it stands by": [
      [standBy(half), undefined],
      [fail("SEO_INPUT"), error("SEO_INPUT")],
      [succeed(), blue("stands by · 12,043 of 50,000 · 14 h left")],
      [fail("SEO_FORBIDDEN", "a"), undefined],
      [standBy({ ...half, ...byFailures }), red("not allowed · 12,043 of 50,000")],
      [standBy(half), blue("stands by · 12,043 of 50,000 · 14 h left")],
      [fail("SEO_NETWORK"), undefined],
      [standBy(), error("SEO_NETWORK")],
      [succeed(), grey("stands by")],
      [succeed({ opened: true }), {}],
    ],
    "is blank before the first batch and once the node is closed": [
      [succeed({ reset: false, batch: undefined }), {}],
      [update(half), undefined],
      [close, {}],
    ],
    "continues while one of several batches is not finished": [
      [update(half, byMessage), undefined],
      [update(half, b, { done: 50_000, waiting: 0, finished: true }), yellow("paused · 12,043 of 50,000")],
      [update(half, { batch: "c" }), blue("24,086 of 100,000 · 14 h left")],
    ],
    "keeps an error until its own cause is gone": [
      [fail("SEO_INPUT"), error("SEO_INPUT")],
      [succeed(), {}],
      [fail("SEO_INPUT", undefined, { params: ["pages", "batch"] }), red("not allowed · pages, batch")],
      [succeed(), undefined],
      [fail("SEO_FORBIDDEN", "a"), undefined],
      [fail("SEO_SERVER", "b"), undefined],
      [succeed({ reset: false, batch: undefined }), undefined],
      [succeed({ reset: false, batch: "a" }), error("SEO_FORBIDDEN")],
      [succeed({ reset: true, batch: "a" }), error("SEO_SERVER")],
      [succeed({ reset: true, batch: undefined }), {}],
    ],
    "shows what to do until the batch continues": [
      [update(half), undefined],
      [fail("SEO_FORBIDDEN", "a"), error("SEO_FORBIDDEN")],
      [update(half, byFailures), red("not allowed · 12,043 of 50,000")],
      [update(half), blue("12,043 of 50,000 · 14 h left")],
      [fail(new Trouble("disk", "Full.")), red("seo-reports.status.disk")],
      [update(half), blue("12,043 of 50,000 · 14 h left")],
      [fail(new Trouble("damaged", "Line 7."), "b"), undefined],
      [update(half), red("seo-reports.status.damaged")],
      [succeed({ reset: true, batch: undefined }), blue("12,043 of 50,000 · 14 h left")],
    ],
  };
  for (const [title, steps] of Object.entries(stories))
    it(title, () => {
      const { shown, status } = open();
      for (const [call, expected] of steps) {
        call(status);
        if (expected) assert.deepEqual(shown.at(-1), expected);
      }
    });

  it("names the config node that is invalid, also in the tab", () => {
    const { shown, status } = open();
    status.failed(new SeoError("SEO_CONFIG", "No key.", { place: "seo-service" }));
    const [error] = status.errors();
    assert.equal(shown.at(-1)?.text, "seo-reports.status.seo-service");
    assert.equal(reasonKey(String(error?.reason)), "status.seo-service");
  });
});
