import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { createSequence, createTurns, deferred } from "../../src/turns.js";

it("A sequence of work keeps nothing that the last one returned", async () => {
  const inOrder = createSequence();
  await inOrder(() => "a large list");
  assert.deepEqual(await inOrder((...given: unknown[]) => given), [undefined]);
});

it("Work waits for all that has the same name and has not ended", async () => {
  const waitFor = createTurns();
  const [first, second] = [deferred(), deferred()];
  assert.equal(waitFor("page", first.promise), undefined);
  assert.ok(waitFor("page", second.promise));
  first.resolve();
  await setImmediate();
  assert.ok(waitFor("page", Promise.resolve()));
  assert.equal(waitFor("other", Promise.resolve()), undefined);
  second.resolve();
  await setImmediate();
  assert.equal(waitFor("page", Promise.resolve()), undefined);
});
