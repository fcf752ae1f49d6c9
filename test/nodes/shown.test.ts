import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Node, NodeAPI, NodeStatus } from "node-red";
import { root } from "../../dev/nodered.js";
import { unmarked } from "../../nodes/editor/marks.js";
import { span } from "../../nodes/figures.js";
import { Status } from "../../nodes/status.js";
import type { Client } from "../../src/client.js";
import { SeoError } from "../../src/errors.js";
import { createLane } from "../../src/scheduler.js";
import { stopTimeInEach } from "../support/time.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe("A span of time", () => {
  for (const [ms, text] of [
    [0, "0 s"],
    [1, "1 s"],
    [1 * SECOND, "1 s"],
    [1 * SECOND + 1, "2 s"],
    [119 * SECOND, "119 s"],
    [119 * SECOND + 1, "2 min"],
    [150 * SECOND, "3 min"],
    [119 * MINUTE, "119 min"],
    [119.5 * MINUTE, "2 h 0 min"],
    [2 * HOUR + 59 * MINUTE, "2 h 59 min"],
    [9 * HOUR + 59 * MINUTE, "9 h 59 min"],
    [10 * HOUR, "10 h"],
    [14.5 * HOUR, "15 h"],
  ] as const)
    it(`of ${ms} ms is shown as ${text}`, () => assert.equal(span(ms), text));
});

describe("The status that a node shows", () => {
  const time = stopTimeInEach();
  let blocked: number;
  let shown: NodeStatus[];

  beforeEach(() => {
    blocked = 0;
    shown = [];
  });

  /** A node's status, its lane, and what it shows once its interval is over. */
  function open(translate = (key: string, values: object) => `${key.split(".").at(-1)} ${JSON.stringify(values)}`) {
    const status = new Status(
      { _: translate } as unknown as NodeAPI,
      { status: (one: NodeStatus) => shown.push(one) } as unknown as Node,
    );
    const lane = createLane();
    status.follow(lane, { waitingFor: (of: object) => (of === lane ? blocked : 0) } as unknown as Client);
    return {
      began: () => status.began(),
      succeeded: (text: () => string) => status.succeeded(text),
      failed: (error: SeoError) => status.failed(error),
      /** What is shown if the lane has these figures, `ms` later. */
      async at(figures: Partial<typeof lane> = {}, ms = 200): Promise<NodeStatus | undefined> {
        Object.assign(lane, { running: 0, waiting: 0, reconciling: 0, ...figures });
        lane.changed();
        await time.pass(ms);
        return shown.at(-1);
      },
    };
  }

  const blue = (text: string): NodeStatus => ({ fill: "blue", shape: "dot", text });
  const yellow = (text: string): NodeStatus => ({ fill: "yellow", shape: "ring", text });

  it("counts what is in flight, waits and is reconciled", async () => {
    const { at } = open();
    assert.deepEqual(await at({ running: 1 }), blue("seo-reports.status.requesting"));
    assert.deepEqual(await at({ waiting: 1 }), blue("seo-reports.status.requesting"));
    for (const [running = 0, waiting = 0] of [[2], [1, 1], [1, 3]])
      assert.deepEqual(await at({ running, waiting }), blue(`running {"running":${running},"queued":${waiting}}`));
    assert.deepEqual(await at({ waiting: 1, reconciling: 1 }), blue('reconciling {"count":1}'));
    const both = blue('running {"running":1,"queued":3}, reconciling {"count":2}');
    assert.deepEqual(await at({ running: 1, waiting: 5, reconciling: 2 }), both);
  });

  it("says how long the service lets nothing start, only while nothing is in flight and something waits", async () => {
    const { at } = open();
    blocked = 1500;
    assert.deepEqual(await at({ waiting: 2 }, 0), yellow('waiting {"seconds":2,"queued":2}'));
    blocked = 1000;
    await time.pass(200);
    assert.deepEqual(shown.at(-1), yellow('waiting {"seconds":1,"queued":2}'), "by itself");
    assert.deepEqual(await at({ waiting: 3, reconciling: 1 }), yellow('waiting {"seconds":1,"queued":2}'));
    assert.deepEqual(await at({ waiting: 1, reconciling: 1 }), blue('reconciling {"count":1}'));
    assert.deepEqual(await at({ running: 1, waiting: 2 }), blue('running {"running":1,"queued":2}'));
    blocked = 0;
    assert.deepEqual(await at({ waiting: 2 }), blue('running {"running":0,"queued":2}'));
  });

  it("estimates what is left from the messages since the node was idle", async () => {
    const { at, began, succeeded, failed } = open();
    await time.pass(HOUR);
    for (let i = 0; i < 6; i++) began();
    await at({ waiting: 6 });
    await time.pass(10 * SECOND - 400);
    succeeded(() => "done");
    failed(new SeoError("SEO_SERVER", "Broken."));
    blocked = 10 * SECOND;
    // Two took 20 s with the wait, so four take 40 s after it.
    assert.deepEqual(await at({ waiting: 4 }), yellow('paused {"wait":"10 s","queued":4,"left":"40 s"}'));
    blocked = 6 * SECOND;
    await time.pass(4 * SECOND);
    assert.deepEqual(shown.at(-1), yellow('paused {"wait":"6 s","queued":4,"left":"36 s"}'), "counts down");
    assert.deepEqual(await at({ waiting: 1 }), yellow('waiting {"seconds":6,"queued":1}'));
  });

  for (const file of readdirSync(join(root, "nodes/locales")))
    it(`names as many invalid parameters as fit behind the condition, as ${file} has it`, async () => {
      const { error } = JSON.parse(unmarked(readFileSync(join(root, "nodes/locales", file), "utf8")))["seo-reports"];
      const condition = String(error.SEO_INPUT.status);
      const { at, began, failed } = open(() => condition);
      const text = async (...params: string[]) => {
        began();
        failed(new SeoError("SEO_INPUT", "No.", { params }));
        return (await at())?.text ?? "";
      };
      assert.equal(await text("url", "id"), `${condition} · url, id`);
      const long = await text("search", "search_by", "project", "result");
      assert.ok(long.startsWith(`${condition} · search`) && long.endsWith("…") && long.length === 40, long);
      assert.equal(await text(), "seo-reports.error.SEO_INPUT.status", "each editor translates it");
    });

  it("changes at once, then every 200 ms at most, and is not repeated", async () => {
    const { at } = open();
    await at({ running: 2 }, 0);
    for (let running = 3; running < 100; running++) await at({ running }, 1);
    assert.deepEqual(shown, [blue('running {"running":2,"queued":0}')]);
    await time.pass(200);
    assert.deepEqual(shown.slice(1), [blue('running {"running":99,"queued":0}')]);
    await at({ running: 99 }, 1000);
    assert.equal(shown.length, 2);
    assert.equal(time.timers(), 0);
  });
});
