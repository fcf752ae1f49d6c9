import assert from "node:assert/strict";
import { answer, type FaultyServer, listen } from "../support/faulty.js";
import { type Flow, failure, node, service, startFlow } from "../support/flow.js";

describe("Password and privacy", () => {
  let server: FaultyServer;
  let flow: Flow;

  beforeEach(async () => {
    server = await listen((socket) => socket.write(answer(200, '{"data":{"id":27},"status":200}')));
    flow = await startFlow([
      service("service", server.url),
      ...["store", "update"].map((name) => node(name, `seo-report-${name}`, { service: "service" })),
    ]);
  });
  afterEach(async () => {
    await flow.stop();
    await server.close();
  });

  const url = "https://example.com";
  for (const [title, type, payload, actual] of [
    ["a store with a password and no privacy", "store", { url, password: "s" }, "msg.payload.privacy is blank"],
    ["a store of a public report", "store", { url, password: "s", privacy: 0 }, "msg.payload.privacy is 0"],
    [
      "an update to private",
      "update",
      { id: 27, password: "s", privacy: "Private" },
      'msg.payload.privacy is "Private"',
    ],
  ] as const)
    it(`reject ${title}, with an error that names both, and send nothing`, async () => {
      const { code, message } = failure(await flow.send(type, { payload })).error as { code: string; message: string };
      assert.equal(code, "SEO_INPUT");
      assert.equal(message, `privacy must be 2 (Password) if password is set; ${actual}.`);
      assert.equal(server.requests.length, 0);
    });

  for (const [title, type, payload] of [
    ["a store with both", "store", { url, password: "s", privacy: "password" }],
    ["a store of a record, whose password is a boolean", "store", { url, password: true, privacy: 0 }],
    ["an update of the password alone", "update", { id: 27, password: "s" }],
  ] as const)
    it(`allow ${title}`, async () => {
      const { caught } = await flow.send(type, { payload });
      assert.equal(caught, undefined);
      assert.equal(server.requests.length, 1);
    });

  for (const [title, payload, status, look] of [
    ["is grey if an update had nothing to change", { id: 27, update: false }, "unchanged", ["grey", "ring"]],
    ["is green if an update changed something", { id: 27, privacy: 1 }, "updated", ["green", "dot"]],
  ] as const)
    it(`show a status that ${title}`, async () => {
      await flow.send("update", { payload });
      const shown = await flow.until(() =>
        flow.statuses("update").find(({ text }) => text === `seo-reports.status.${status}`),
      );
      assert.deepEqual([shown.fill, shown.shape], look);
    });
});
