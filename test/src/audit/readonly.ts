import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { createBench, createFake, createManualClock, urls } from "./fake.js";

/** A process of its own whose folder is read-only at first. */
const [folder = ""] = process.argv.slice(2);
execFileSync("mount", ["-o", "remount,ro", folder]);
const clock = createManualClock();
const service = createFake();
const { audit, add, errors, finished } = createBench(folder, service, { clock });
await assert.rejects(add(urls(3)), { message: /the folder is read-only \(EROFS\)/ });
clock.pass(60_000);
await sleep(50);
assert.equal(errors.length, 1);
execFileSync("mount", ["-o", "remount,rw", folder]);
clock.pass(60_000);
await add(urls(3));
await finished();
assert.equal(service.carriedOut.length, 3);
await audit.close();
