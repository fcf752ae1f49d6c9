import assert from "node:assert/strict";
import { startFlow } from "../support/flow.js";
import { listed, shapes } from "../support/lists.js";
import { outputs, payloads, withLists } from "../support/outputs.js";

describe("All pages of a list", () => {
  const suite = withLists();
  const { serve, ask } = suite;

  for (const [type, make] of Object.entries(listed)) {
    describe(`from ${type}`, () => {
      before(async () => {
        suite.flow = await startFlow([suite.service(), ...outputs(type, { limit: "" })]);
      });

      after(() => suite.flow.stop());

      for (const [name, shape] of Object.entries(shapes)) {
        it(`become the same array after a Join node as in a single message: ${name}`, async () => {
          for (const count of [1, 10, 25]) {
            serve({ all: make(count), shape });
            await Promise.all(["all", "pages", "records"].map((output) => ask(output, { payload: { per_page: 10 } })));
            const [all] = await suite.flow.take("all-out", 1);
            assert.deepEqual(all?.payload, make(count));
            for (const output of ["pages", "records"]) {
              const [joined] = await suite.flow.take(`${output}-joined`, 1);
              assert.deepEqual(joined?.payload, all?.payload, `${output}, ${count} records`);
              assert.equal(joined?.parts, undefined);
              assert.equal(suite.flow.of(`${output}-joined`).length, 1);
            }
          }
        });
      }

      it("become [] in a single message and no message in a stream if the list is empty", async () => {
        for (const shape of Object.values(shapes)) {
          serve({ all: [], shape });
          await Promise.all(["all", "pages", "records"].map((output) => ask(output)));
          assert.deepEqual(payloads(await suite.flow.take("all-out", 1)), [[]]);
          assert.deepEqual([...suite.flow.of("pages-out"), ...suite.flow.of("records-out")], []);
          assert.equal(suite.flow.of("completed").length, 3);
        }
      });
    });
  }
});
