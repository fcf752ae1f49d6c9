import assert from "node:assert/strict";
import fc from "fast-check";
import { type Entry, FORMAT, outcomes } from "../../../src/audit/entries.js";
import { Reporter } from "../../../src/audit/progress.js";
import { apply, phaseOf, rowsOf, State } from "../../../src/audit/state.js";

const REMEMBERED = 200;

describe("the progress of a batch", () => {
  it("counts each row once, and measures the last 200 requests", () => {
    const phase = fc.constantFrom("waiting", "sent", "ended", ...outcomes);
    const row = fc.record({ key: fc.nat(15), phase, isLost: fc.boolean(), isAgain: fc.boolean() });
    const property = fc.property(
      fc.array(row, { minLength: 1, maxLength: 20 }),
      fc.array(fc.nat(20_000), { maxLength: 300, size: "max" }),
      fc.record({ drops: fc.boolean(), pauses: fc.boolean(), isStuck: fc.boolean() }),
      fc.constantFrom(0, 1, 41_001),
      (rows, times, { drops, pauses, isStuck }, wait) => {
        const state = new State();
        const take = (entry: Entry) => apply(state, entry);
        take({ type: "batch", format: FORMAT, name: "a" });
        take({ type: "rows", from: 0, rows: rows.map(({ key }) => ({ input: `${key}.example` })) });
        take({ type: "list", settings: { existing: "create" }, rows: rows.length, pages: [] });
        const lost: number[] = [];
        const counts = Object.fromEntries(outcomes.map((outcome) => [outcome, 0]));
        let [left, begun, reconciling] = [0, 0, 0];
        for (const [page, { phase, isLost, isAgain }] of rows.entries()) {
          if (phaseOf(state, page) === "repeat") continue;
          const count = rowsOf(state, page).length;
          const outcome = outcomes.find((one) => one === phase);
          if (phase !== "waiting") take({ type: "sent", page, action: "create" });
          if (outcome || phase === "ended") take({ type: "ended", page, outcome: outcome ?? "failed", attempts: 1 });
          if (outcome) {
            take({ type: "delivered", page });
            counts[outcome] = Number(counts[outcome]) + count;
            continue;
          }
          left += count;
          if (phase !== "waiting") begun += count;
          if (phase === "ended" || !isLost) continue;
          lost.push(page);
          const isSought = phase === "waiting" && isAgain;
          if (isSought) state.requests.set(page, { action: "create", intent: {} });
          if (isSought && drops) begun += count;
          // One that waits for another request of its page is dropped.
          if (phase === "sent" || isSought || !drops) reconciling += count;
        }
        if (drops) take({ type: "reset" });
        let time = 1000;
        const ends = [time];
        const reason = pauses && { reason: "message", message: "Because." };
        const run = {
          batch: { state },
          paused: reason || undefined,
          steps: new Set([...lost.map((page) => ({ page, isLost: true })), ...(isStuck ? [] : [{ page: 0 }])]),
          plans: false,
          requests: { waitingFor: () => wait },
        };
        const reporter = new Reporter(run, { now: () => time, later: () => () => {} }, () => {});
        reporter.requestBegan();
        for (const ms of times) {
          time += ms;
          ends.push(time);
          reporter.requestEnded();
        }
        const progress = reporter.read();
        const { perMinute, secondsLeft, secondsToWait, ...rest } = progress;
        assert.deepEqual(rest, {
          batch: "a",
          total: rows.length,
          done: rows.length - left,
          ...counts,
          waiting: drops ? begun : left,
          ...{ invalid: 0, reconciling },
          dropped: drops ? left - begun : 0,
          ...(drops && { reset: true }),
          paused: pauses && "Because.",
          ...(reason && { reason: "message" }),
          finished: false,
        });
        const last = ends.slice(-REMEMBERED);
        const minutes = (time - (last[0] as number)) / 60_000;
        const speed = minutes > 0 ? (last.length - 1) / minutes : 0;
        const isOver = left === 0 || (drops && reconciling === 0);
        const isAlone = isStuck && lost.length > 0;
        const requests = !isOver && !drops && !isAlone && left > reconciling;
        const pace = isOver || requests ? speed : 0;
        assert.ok(Math.abs(perMinute - pace) <= (pace < 9.9 ? 0.0501 : 0.501), `${perMinute}, not ${pace}`);
        assert.ok(Math.abs(perMinute * 10 - Math.round(perMinute * 10)) < 1e-9);
        assert.ok(perMinute < 10 || Number.isInteger(perMinute));
        assert.equal(secondsToWait, requests && !pauses && wait > 0 ? Math.ceil(wait / 1000) : undefined);
        const estimate = isOver ? 0 : requests && speed > 0 ? Math.round((left * 60) / speed) : undefined;
        assert.equal(secondsLeft, pauses ? undefined : estimate);
        assert.equal("secondsLeft" in progress, secondsLeft !== undefined);
      },
    );
    fc.assert(property);
  });
});
