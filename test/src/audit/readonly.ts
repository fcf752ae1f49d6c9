import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { batchesIn, createBench, createFake, createManualClock, urls } from "./fake.js";

/** A process of its own whose folder is read-only at first, and when its audit is opened again, as a redeploy does. */
const [folder = ""] = process.argv.slice(2);
const mount = (how: "ro" | "rw") => execFileSync("mount", ["-o", `remount,${how}`, folder]);
/** Retries, because the last attempt to open the folder may not have ended. */
async function whenOpened(add: () => Promise<number>): Promise<void> {
  while (!(await add().catch(() => 0))) clock.pass(60_000);
}

mount("ro");
const clock = createManualClock();
const service = createFake();
const { audit, add, errors, finished } = createBench(folder, service, { clock });
await assert.rejects(add(urls(3)), { message: /the folder is read-only \(EROFS\)/ });
clock.pass(60_000);
await sleep(50);
assert.equal(errors.length, 1);
mount("rw");
await whenOpened(() => add(urls(3)));
await finished();
assert.equal(service.carriedOut.length, 3);
// The process waits until the journal is closed, without which the folder stays busy.
await audit.reset();
assert.deepEqual(batchesIn(join(folder, "node")), []);
mount("ro");
await assert.rejects(audit.close(), { code: "EROFS" });
const again = createBench(folder, service, { clock });
await assert.rejects(again.add(urls(4)), { message: /the folder is read-only \(EROFS\)/ });
mount("rw");
await whenOpened(() => again.add(urls(4)));
await again.audit.close();
