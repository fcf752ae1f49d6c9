import assert from "node:assert/strict";
import { type Flow, type Message, run, service } from "./support/flow.js";
import { type Lists, listed, shapes, startLists } from "./support/lists.js";
import { outputs, payloads, succeed } from "./support/outputs.js";
import { helper } from "./support/red.js";

describe("Join and all of a list", () => {
  let lists: Lists;
  let flow: Flow;

  before(async () => {
    lists = await startLists({ all: [] });
  });

  after(() => lists.close());

  const serve = (options: Lists["options"]) => {
    lists.asked.length = 0;
    lists.options = options;
    flow.forget();
  };

  const ask = (id: string, msg?: Message) => succeed(flow, id, msg);

  for (const [type, make] of Object.entries(listed)) {
    describe(`of ${type}`, () => {
      before(async () => {
        flow = await run([service(lists.url), ...outputs(type, { limit: "" })]);
      });

      after(() => helper.unload());

      for (const [name, shape] of Object.entries(shapes)) {
        it(`join gives back the array of all, ${name}`, async () => {
          for (const count of [1, 10, 25]) {
            serve({ all: make(count), shape });
            await Promise.all(["all", "pages", "records"].map((output) => ask(output, { payload: { per_page: 10 } })));
            const [all] = await flow.take("all-out", 1);
            assert.deepEqual(all?.payload, make(count));
            for (const output of ["pages", "records"]) {
              const [joined] = await flow.take(`${output}-joined`, 1);
              assert.deepEqual(joined?.payload, all?.payload, `${output}, ${count} records`);
              assert.equal(joined?.parts, undefined);
              assert.equal(flow.of(`${output}-joined`).length, 1);
            }
          }
        });
      }

      it("an empty list is [] as a whole, and nothing as a stream", async () => {
        for (const shape of Object.values(shapes)) {
          serve({ all: [], shape });
          await Promise.all(["all", "pages", "records"].map((output) => ask(output)));
          assert.deepEqual(payloads(await flow.take("all-out", 1)), [[]]);
          assert.deepEqual([...flow.of("pages-out"), ...flow.of("records-out")], []);
          assert.equal(flow.of("completed").length, 3);
        }
      });
    });
  }
});
