import assert from "node:assert/strict";
import type { Node, NodeAPI, NodeStatus } from "node-red";
import { AuditStatus } from "../../nodes/progress.js";
import type { Progress } from "../../src/audit/progress.js";
import { Trouble } from "../../src/audit/trouble.js";
import { SeoError } from "../../src/errors.js";

describe("The status of an audit", () => {
  const shown: NodeStatus[] = [];
  const texts: Record<string, string> = {
    auditing: "__done__ of __total__",
    left: "__left__ left",
    wait: "waiting __seconds__ s",
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
    const status = new AuditStatus(
      { _: translate } as unknown as NodeAPI,
      { status: (one: NodeStatus) => shown.push(one) } as unknown as Node,
    );
    return {
      connecting: () => status.connecting(),
      update: (progress: Progress) => status.update(progress),
      standBy: (all: Progress[]) => status.standBy(all),
      failed: (error: SeoError, batch?: string) => status.failed(error, batch),
      succeeded: (what?: Parameters<AuditStatus["succeeded"]>[0]) => status.succeeded(what),
      close: () => status.close(),
    };
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
  const is = (expected: NodeStatus) => assert.deepEqual(shown.at(-1), expected);

  it("says how far all batches are, and how long they take", () => {
    const { update } = open();
    update(idle);
    is(blue("0 of 50,000"));
    update(half);
    is(blue("12,043 of 50,000 · 14 h left"));
    update({ ...idle, batch: "b", total: 10_000, waiting: 10_000 });
    is(blue("12,043 of 60,000 · 18 h left"));
    update({ ...half, paused: "Paused by msg.pause." });
    is(blue("12,043 of 60,000"));
    update({ ...idle, batch: "b", total: 10_000, paused: "Paused by msg.pause." });
    is(yellow("paused · 12,043 of 60,000"));
    update({ ...half, done: 49_990, waiting: 10, perMinute: 60 });
    is(blue("49,990 of 60,000 · 10 s left"));
    update({ ...half, done: 49_990, failed: 6, uncertain: 1, waiting: 10, perMinute: 60 });
    is(blue("49,990 of 60,000 · 10 s left · 7 failed"));
  });

  it("estimates no time if that depends on lost responses only", () => {
    const { update } = open();
    const rest = { ...half, done: 49_997, waiting: 3, reconciling: 2, secondsLeft: 4 };
    update(rest);
    is(blue("49,997 of 50,000 · 4 s left"));
    update({ ...rest, secondsLeft: undefined });
    is(blue("2 reconciling · 49,997 of 50,000"));
    update({ ...half, batch: "b" });
    is(blue("62,040 of 100,000 · 7 h 0 min left"));
  });

  it("says how long no request can start", () => {
    const { update } = open();
    update({ ...half, secondsToWait: 42 });
    is(yellow("waiting 42 s · 12,043 of 50,000"));
    update({ ...half, batch: "b", reconciling: 957, secondsToWait: 41, secondsLeft: undefined });
    is(yellow("waiting 42 s · 24,086 of 100,000"));
    update(half);
    update({ ...half, batch: "b" });
    is(blue("24,086 of 100,000 · 14 h left"));
  });

  it("shows how a batch ended until another one continues", () => {
    const { update } = open();
    const end = { ...half, done: 50_000, created: 50_000, waiting: 0, finished: true };
    update(end);
    is({ fill: "green", shape: "dot", text: "50,000 of 50,000" });
    update({ ...end, created: 48_990, failed: 1000, uncertain: 10 });
    is(red("50,000 of 50,000 · 1,010 failed"));
    update({ ...half, batch: "b" });
    is(blue("12,043 of 50,000 · 14 h left"));
  });

  it("says that it stands by, and how far the batches of the instance that leads are", () => {
    const { standBy, update, close } = open();
    standBy([]);
    is({ fill: "grey", shape: "ring", text: "stands by" });
    standBy([half]);
    is(blue("stands by · 12,043 of 50,000 · 14 h left"));
    standBy([half, { ...half, batch: "b" }]);
    is(blue("stands by · 24,086 of 100,000 · 14 h left"));
    // It is all that is left.
    standBy([{ ...half, paused: "Paused by msg.pause." }]);
    is(yellow("stands by · paused · 12,043 of 50,000"));
    const end = { ...half, done: 50_000, created: 50_000, waiting: 0, finished: true };
    standBy([end]);
    is({ fill: "green", shape: "dot", text: "stands by · 50,000 of 50,000" });
    standBy([{ ...end, created: 48_990, failed: 1000, uncertain: 10 }]);
    is(red("stands by · 50,000 of 50,000 · 1,010 failed"));
    standBy([]);
    is({ fill: "grey", shape: "ring", text: "stands by" });
    // Now it leads.
    update(half);
    is(blue("12,043 of 50,000 · 14 h left"));
    standBy([half]);
    close();
    is({});
  });

  it("shows errors as before while it stands by", () => {
    const { standBy, failed, succeeded } = open();
    const leads = (progress: Partial<Progress> = {}) => standBy([{ ...half, ...progress }]);
    leads();
    failed(new SeoError("SEO_INPUT", "No."));
    is(red("seo-reports.error.SEO_INPUT.status"));
    succeeded();
    is(blue("stands by · 12,043 of 50,000 · 14 h left"));
    failed(new SeoError("SEO_FORBIDDEN", "No."), "a");
    leads({ paused: "5 pages in a row failed." });
    is(red("not allowed · 12,043 of 50,000"));
    leads();
    is(blue("stands by · 12,043 of 50,000 · 14 h left"));
    failed(new SeoError("SEO_NETWORK", "Lost."));
    standBy([]);
    is(red("seo-reports.error.SEO_NETWORK.status"));
    succeeded();
    is({ fill: "grey", shape: "ring", text: "stands by" });
    succeeded({ opened: true });
    is({});
  });

  it("is blank before the first batch and once the node is closed", () => {
    const { succeeded, update, close } = open();
    succeeded({ reset: false, batch: undefined });
    is({});
    update(half);
    close();
    is({});
  });

  it("continues while one of several batches is not finished", () => {
    const { update } = open();
    update({ ...half, paused: "Paused by msg.pause." });
    update({ ...half, batch: "b", done: 50_000, waiting: 0, finished: true });
    is(yellow("paused · 12,043 of 50,000"));
    update({ ...half, batch: "c" });
    is(blue("24,086 of 100,000 · 14 h left"));
  });

  it("keeps an error until its own cause is gone", () => {
    const { failed, succeeded } = open();
    const error = (code: string) => red(`seo-reports.error.${code}.status`);
    failed(new SeoError("SEO_INPUT", "No."));
    is(error("SEO_INPUT"));
    succeeded();
    is({});
    failed(new SeoError("SEO_INPUT", "No.", { params: ["pages", "batch"] }));
    is(red("not allowed · pages, batch"));
    succeeded();
    failed(new SeoError("SEO_FORBIDDEN", "No."), "a");
    failed(new SeoError("SEO_SERVER", "No."), "b");
    succeeded({ reset: false, batch: undefined });
    succeeded({ reset: false, batch: "a" });
    is(error("SEO_FORBIDDEN"));
    succeeded({ reset: true, batch: "a" });
    is(error("SEO_SERVER"));
    succeeded({ reset: true, batch: undefined });
    is({});
  });

  it("forgets batches that were not finished and are gone once the jobs were read again", () => {
    const { update, failed, succeeded } = open();
    update(half);
    update({ ...half, batch: "b", done: 50_000, waiting: 0, finished: true });
    failed(new SeoError("SEO_NETWORK", "Lost."));
    succeeded();
    is(blue("12,043 of 50,000 · 14 h left"));
    succeeded({ opened: true });
    is({ fill: "green", shape: "dot", text: "50,000 of 50,000" });
  });

  it("shows what to do until the batch continues", () => {
    const { update, failed, succeeded } = open();
    update(half);
    failed(new SeoError("SEO_FORBIDDEN", "No."), "a");
    is(red("seo-reports.error.SEO_FORBIDDEN.status"));
    update({ ...half, paused: "5 pages in a row failed." });
    is(red("not allowed · 12,043 of 50,000"));
    update(half);
    is(blue("12,043 of 50,000 · 14 h left"));
    failed(new Trouble("disk", "Full."));
    is(red("seo-reports.status.disk"));
    update(half);
    is(blue("12,043 of 50,000 · 14 h left"));
    failed(new Trouble("damaged", "Line 7."), "b");
    update(half);
    is(red("seo-reports.status.damaged"));
    succeeded({ reset: true, batch: undefined });
    is(blue("12,043 of 50,000 · 14 h left"));
  });
});
