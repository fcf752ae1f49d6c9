import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../support/time.js";
import { batchesIn, createBench, createFake, createManualClock, urls } from "./fake.js";

/** A process of its own that audits while the disk is full: a small file system, or the limit of a file's size. */
const [folder = "", way] = process.argv.slice(2);
const filler = join(folder, "filler");
const pages = 1000;

function fill(): void {
  if (way === "limit") {
    execFileSync("prlimit", [`--pid=${process.pid}`, "--fsize=20000:"]);
    return;
  }
  try {
    for (;;) writeFileSync(filler, Buffer.alloc(4096), { flag: "a" });
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
  }
}

function free(): void {
  if (way === "limit") execFileSync("prlimit", [`--pid=${process.pid}`, "--fsize=unlimited:"]);
  else rmSync(filler);
}

const reason = way === "limit" ? /the file is too large \(EFBIG\)/ : /the disk is full \(ENOSPC\)/;
const clock = createManualClock();
const service = createFake();
const { audit, add, errors, results, finished } = createBench(join(folder, "jobs"), service, { clock, share: 4 });
await audit.progress();

fill();
await assert.rejects(add(urls(pages)), { code: "SEO_INPUT", message: reason });
assert.deepEqual(batchesIn(join(folder, "jobs/node")), []);
assert.equal(errors.length, 0);

free();
await add(urls(pages));
await until(() => results.length > 20);
fill();
await until(() => errors.length > 0);
await sleep(50);
const sent = service.carriedOut.length;
assert.ok(sent < pages);
assert.match(String(errors[0]?.message), reason);
assert.match(String((await audit.progress())[0]?.paused), reason);
for (let minute = 0; minute < 3; minute++) {
  clock.pass(60_000);
  await sleep(20);
}
assert.equal(service.carriedOut.length, sent);
assert.equal(errors.length, 1);

free();
// The last probe may not have ended.
let ended = false;
void finished().then(() => {
  ended = true;
});
await until(() => {
  clock.pass(60_000);
  return ended;
});
assert.equal(service.carriedOut.length, pages);
assert.equal(new Set(service.carriedOut).size, pages);
assert.equal(results.length, pages);
assert.ok(results.every(({ repeated }) => !repeated));
await audit.close();
