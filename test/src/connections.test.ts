import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import { type Client, createClient } from "../../src/client.js";
import { cases } from "../support/cases.js";
import { allClosed, answer, type FaultyServer, listen } from "../support/faulty.js";

const record = (id: string) => answer(200, JSON.stringify({ data: { id }, status: 200 }));
const idOf = (path: string) => path.split("/").at(-1) ?? "";

describe("The client's connections", () => {
  let server: FaultyServer;
  let client: Client;

  const open = (settings: object = {}) => {
    client = createClient({ baseUrl: server.url, apiKey: "key-of-tests", ...settings });
  };

  afterEach(async () => {
    await client.close();
    await server.close();
  });

  for (const { name, type, input, once } of cases)
    it(`lose no request if the server closes them after each response: ${name}`, async () => {
      server = await listen((socket) => {
        socket.write(answer(200, '{"data":[],"status":200}'));
        setImmediate(() => socket.destroy());
      });
      open({ concurrency: "1" });
      for (let i = 0; i < 20; i++) await client.call(type, input);
      const { length } = server.requests;
      assert.ok(once ? length === 20 : length >= 20, `${length} requests`);
    });

  it("do not use an unsolicited response for the next request", async () => {
    server = await listen((socket, { path }) => {
      socket.write(Buffer.concat([record(idOf(path)), record("unasked")]));
    });
    open({ concurrency: "2" });
    const ids = Array.from({ length: 50 }, (_, i) => String(i + 1));
    const answers = await Promise.all(ids.map((reportId) => client.call("seo-report-show", { reportId })));
    assert.deepEqual(
      answers.map(({ body }) => (body as { data: { id: string } }).data.id),
      ids,
    );
  });

  it("can be canceled during the TLS handshake, which leaves nothing uncertain", async () => {
    let connected = () => {};
    const reached = new Promise<void>((resolve) => {
      connected = resolve;
    });
    server = await listen(() => {}, { scheme: "https", connected });
    open();
    const refused = assert.rejects(client.call("seo-report-store", { url: "https://example.com" }), {
      code: "SEO_CANCELLED",
      details: { attempts: 1, uncertain: false },
    });
    await reached;
    await client.close();
    await refused;
  });

  it("close when the client closes", async () => {
    server = await listen((socket, { path }) => socket.write(record(idOf(path))));
    open();
    await Promise.all(Array.from({ length: 8 }, () => client.call("seo-report-show", { reportId: "7" })));
    const closed = allClosed(server.open);
    assert.ok(server.open.size > 0);
    await client.close();
    const kept = late(3000).then(() => assert.fail("The connections are still open."));
    await Promise.race([closed, kept]);
  });
});
