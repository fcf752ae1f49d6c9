import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, connect as reach, type Socket } from "node:net";
import { setTimeout as late } from "node:timers/promises";
import { type Client, createClient } from "../../src/client.js";
import { cases } from "../support/cases.js";
import { answer, type Behaviour, type FaultyServer, type ListenOptions, listen, tlsFile } from "../support/faulty.js";
import { openLocally } from "../support/local.js";
import { closeAfterEach } from "../support/opened.js";

const record = (id: string) => answer(200, JSON.stringify({ data: { id }, status: 200 }));
const idOf = (path: string) => path.split("/").at(-1) ?? "";

describe("The client's connections", () => {
  let server: FaultyServer;
  let client: Client;

  const opened = closeAfterEach();
  const serve = async (behave: Behaviour, options?: ListenOptions) => {
    server = await opened(listen(behave, options));
  };
  const open = async (settings: object = {}) => {
    client = await opened(createClient({ baseUrl: server.url, apiKey: "key-of-tests", ...settings }));
  };

  for (const { name, type, input, once } of cases)
    it(`lose no request if the server closes them after each response: ${name}`, async () => {
      await serve((socket) => {
        socket.write(answer(200, '{"data":[],"status":200}'));
        setImmediate(() => socket.destroy());
      });
      await open({ concurrency: "1" });
      for (let i = 0; i < 20; i++) await client.call(type, input);
      const { length } = server.requests;
      assert.ok(once ? length === 20 : length >= 20, `${length} requests`);
    });

  it("do not use an unsolicited response for the next request", async () => {
    await serve((socket, { path }) => {
      socket.write(Buffer.concat([record(idOf(path)), record("unasked")]));
    });
    await open({ concurrency: "2" });
    const ids = Array.from({ length: 50 }, (_, i) => String(i + 1));
    const answers = await Promise.all(ids.map((reportId) => client.call("seo-report-show", { reportId })));
    const returned = answers.map(({ body }) => (body as { data: { id: string } }).data.id);
    assert.deepEqual(returned, ids);
  });

  it("receive the same response however it is split, and whatever interim responses come before it", async () => {
    const interim = ["100 Continue", "100\r\nA: b", "103 Hints\r\nB: c"].map((head) => `HTTP/1.1 ${head}\r\n\r\n`);
    // A chunk of the body can begin with what looks like an interim response.
    const said = { text: "HTTP/1.1 100 Continue\r\n\r\n" };
    const plans = ["", ...interim, [...interim, ...interim].join("")].flatMap((before) => {
      const whole = Buffer.concat([Buffer.from(before), answer(200, JSON.stringify(said))]);
      return [...whole.keys()].map((at) =>
        at === 0 ? [...whole].map((byte) => Buffer.of(byte)) : [whole.subarray(0, at), whole.subarray(at)],
      );
    });
    await serve(async (socket, { path }) => {
      socket.setNoDelay(true);
      for (const part of plans[Number(idOf(path)) - 1] ?? []) {
        socket.write(part);
        await late(1);
      }
    });
    await open({ concurrency: "20", retries: "0" });
    const answers = await Promise.all(plans.map((_, i) => client.call("seo-report-show", { reportId: i + 1 })));
    for (const [i, { body }] of answers.entries()) assert.deepEqual(body, said, plans[i]?.join("|"));
  });

  it("retry a request that creates a report if the server closes during the TLS handshake", async () => {
    const closing = createServer((socket) => socket.once("data", () => socket.end()));
    const { port } = await opened(openLocally(closing));
    await serve(() => {});
    await open({ baseUrl: `https://127.0.0.1:${port}`, retries: "1" });
    await assert.rejects(client.call("seo-report-store", { url: "https://example.com" }), {
      code: "SEO_NETWORK",
      details: { stage: "connect", transient: true, attempts: 2, uncertain: false },
    });
  });

  for (const [how, close] of [
    ["closed", (socket: Socket) => socket.end()],
    ["reset", (socket: Socket) => socket.resetAndDestroy()],
  ] as const)
    it(`leave a request uncertain if TLS breaks after the server has read it, and the connection is ${how}`, async () => {
      let toClient: Socket | undefined;
      await serve(
        () => {
          toClient?.write("This is not TLS.");
          // The client reads it first.
          setTimeout(() => toClient && close(toClient), 50);
        },
        { certificate: "cert" },
      );
      const relay = createServer((socket) => {
        toClient = socket;
        const toServer = reach(server.port, "127.0.0.1").on("error", () => {});
        socket.pipe(toServer).pipe(socket, { end: false });
      });
      const { port } = await opened(openLocally(relay));
      await open({ baseUrl: `https://127.0.0.1:${port}`, tls: { ca: tlsFile("ca") } });
      await assert.rejects(client.call("seo-report-store", { url: "https://example.com" }), {
        code: "SEO_NETWORK",
        details: { stage: "connect", transient: true, attempts: 1, uncertain: true },
      });
      assert.equal(server.requests.length, 1);
    });

  it("keep a body that comes a byte at a time in little more memory than it needs", async () => {
    const chunks = Buffer.from(`1\r\n \r\n`.repeat(10_000));
    const used = () => {
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return (heapUsed + arrayBuffers) / 2 ** 20;
    };
    const before = used();
    let most = 0;
    await serve(async (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n7\r\n");
      for (let i = 0; i < 150; i++) {
        if (!socket.write(chunks)) await once(socket, "drain");
        most = Math.max(most, used() - before);
      }
      socket.write("0\r\n\r\n");
    });
    await open();
    assert.equal((await client.call("seo-report-show", { reportId: "7" })).body, 7);
    assert.ok(most < 100, `${most.toFixed()} MB`);
  });

  it("keep cookies out of the response's headers", async () => {
    await serve((socket) => socket.write(answer(200, "{}", { "Set-Cookie": "a=b", "set-cookie2": "c=d" })));
    await open();
    const { headers } = await client.call("seo-report-show", { reportId: "7" });
    assert.deepEqual(Object.keys(headers), ["content-type", "content-length"]);
  });
});
