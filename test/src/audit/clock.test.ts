import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { clock, moment } from "../../../src/audit/clock.js";

describe("The clock of audits", () => {
  it("runs later what is not canceled", async () => {
    const ran: string[] = [];
    clock.later(1, () => ran.push("kept"));
    clock.later(1, () => ran.push("canceled"))();
    await sleep(20);
    assert.deepEqual(ran, ["kept"]);
  });

  it("names a moment that processes of one boot can compare, in milliseconds", function () {
    if (process.platform !== "linux") this.skip();
    const before = Number(process.hrtime.bigint()) / 1_000_000;
    const one = moment();
    assert.match(String(one?.boot), /^[\da-f-]{36} /);
    const passed = Number(one?.at) - before;
    assert.ok(passed >= -1 && passed < 60_000, `${passed} ms`);
  });
});
