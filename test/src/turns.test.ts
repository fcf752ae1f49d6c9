import assert from "node:assert/strict";
import { createSequence } from "../../src/turns.js";

it("A sequence of work keeps nothing that the last one returned", async () => {
  const inOrder = createSequence();
  await inOrder(() => "a large list");
  assert.deepEqual(await inOrder((...given: unknown[]) => given), [undefined]);
});
