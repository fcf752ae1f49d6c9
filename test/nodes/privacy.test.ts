import assert from "node:assert/strict";
import { answer, type FaultyServer, listen } from "../support/faulty.js";
import { type Flow, failure, node, service, startFlow } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";

describe("Password and privacy", () => {
  const open = closeAfterEach();
  let server: FaultyServer;
  let flow: Flow;
  let reports: object[];
  const methods = () => server.requests.map(({ method }) => method);

  beforeEach(async () => {
    reports = [];
    const bodyOf = (path: string) => JSON.stringify({ data: path.includes("?") ? reports : { id: 27 }, status: 200 });
    server = await open(listen((socket, { path }) => socket.write(answer(200, bodyOf(path)))));
    const nodes = [
      service("service", server.url),
      ...["store", "update"].map((name) => node(name, `seo-report-${name}`)),
      ...["regenerate", "return"].map((existing) => node(`${existing}-existing`, "seo-report-store", { existing })),
    ];
    flow = await open(startFlow(nodes));
  });

  const url = "https://example.com";
  const record = { id: 27, url, privacy: 2, password: true };
  it("reject a store of a protected record, whose password is a boolean, and send nothing", async () => {
    const { code, message } = failure(await flow.send("store", { payload: record })).error;
    assert.equal(code, "SEO_INPUT");
    assert.equal(message, "password is required if privacy is 2 (Password); msg.payload.password is blank.");
    assert.equal(server.requests.length, 0);
  });

  for (const existing of ["regenerate", "return"]) {
    const node = `${existing}-existing`;
    it(`reject a protected report without a password only if it would be created: existing is ${existing}`, async () => {
      const { message, attempts } = failure(await flow.send(node, { payload: record })).seo.error;
      assert.equal(message, "password is required if privacy is 2 (Password); password is blank.");
      assert.equal(attempts, 1, "the list was requested");
      assert.deepEqual(methods(), ["GET"]);
      reports = [record];
      const { caught } = await flow.send(node, { payload: record });
      assert.equal(caught, undefined);
      assert.deepEqual(methods(), existing === "return" ? ["GET", "GET", "GET"] : ["GET", "GET", "PUT"]);
    });
  }

  for (const [title, type, payload] of [
    ["a store with both", "store", { url, password: "s", privacy: "password" }],
    ["a store of a record, whose password is a boolean", "store", { url, password: true, privacy: 0 }],
    ["an update of the password alone", "update", { id: 27, password: "s" }],
    ["an update of the privacy alone, because the report can have a password", "update", record],
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
