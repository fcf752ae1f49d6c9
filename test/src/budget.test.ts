import assert from "node:assert/strict";
import { createBudget } from "../../src/budget.js";
import { stopTimeInEach } from "../support/time.js";

describe("The budget of a service", () => {
  const time = stopTimeInEach();

  /** Takes all free slots and returns their number. */
  function acquireAll({ wait, acquire }: ReturnType<typeof createBudget>): number {
    let count = 0;
    for (; wait() === 0; count++) acquire();
    return count;
  }

  it("starts nothing during a pause, then one request at a time, then two, then three", async () => {
    const budget = createBudget({ concurrency: 4, rate: Number.POSITIVE_INFINITY });
    for (let i = 0; i < 3; i++) budget.acquire();
    budget.pause(5000);
    budget.pause(1000);
    for (let i = 0; i < 3; i++) budget.release();
    assert.deepEqual([budget.wait(), budget.blockedFor()], [5000, 5000]);
    await time.pass(4999);
    assert.equal(budget.wait(), 1);
    await time.pass(1);
    const widths: number[] = [];
    let running = acquireAll(budget);
    for (let i = 0; i < 5; i++) {
      widths.push(running);
      budget.release();
      running += acquireAll(budget) - 1;
    }
    assert.deepEqual(widths, [1, 2, 3, 4, 4]);
  });
});
