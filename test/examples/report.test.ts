import assert from "node:assert/strict";
import { describeExample, only, recordOf } from "../support/examples.js";

describeExample("01 - First report", ({ up, deploy, press, unavailable }) => {
  it("creates, lists, shows, updates and deletes a report", async () => {
    const sandbox = await up({ reports: 12 });
    await deploy(sandbox.url);
    assert.deepEqual(await press("store a page"), { result: [await recordOf(sandbox, 13)] });
    assert.deepEqual(await press("show it"), { result: [await recordOf(sandbox, 13)] });
    const all = await Promise.all(sandbox.reports.list({}).map(({ id }) => recordOf(sandbox, id)));
    assert.deepEqual(await press("list all"), { result: [all] });
    assert.deepEqual(await press("make it private"), { result: [{ ...(await recordOf(sandbox, 13)), privacy: 1 }] });
    assert.deepEqual(await press("delete it"), { result: [{ id: 13, object: "report", deleted: true, status: 200 }] });
    only(await press("delete it"), "error", /^The service returned 404/);
  });

  unavailable(async (url, { says }) => {
    await deploy(url);
    for (const button of ["store a page", "list all"]) {
      only(await press(button), "error", says);
    }
  });
});
