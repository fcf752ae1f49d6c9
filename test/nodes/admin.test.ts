import assert from "node:assert/strict";
import type { Stage } from "../../src/errors.js";
import { answer, type FaultyServer, listen } from "../support/faulty.js";
import { service, startFlow, tlsConfig } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";
import { helper } from "../support/red.js";
import { until } from "../support/time.js";

const KEY = "canary-key-5f0c1e";
const PLACEHOLDER = "__PWRD__";
const records = Array.from({ length: 40 }, (_, i) => ({ id: i + 1, url: `example.com/${i}`, project: `p${i}` }));

/** A draft from the edit dialog, the API key that the service received, if any, and the stage that is reached. */
type Row = [draft: Record<string, unknown>, key: string | undefined, stage?: Stage];

describe("The admin routes", () => {
  const open = closeAfterEach();
  let server: FaultyServer;
  let body: object;

  const ask = async (path: "test" | "suggest", draft: unknown) =>
    (await helper.request().post(`/seo-service/${path}`).send(draft)) as {
      body: {
        ok: boolean;
        stage: string;
        values: { count?: number; name?: string };
        suggestions: Record<string, string>[];
      };
      text: string;
    };
  const keys = () => server.requests.map(({ head }) => /^authorization: Bearer (.*)$/im.exec(head)?.[1]);

  beforeEach(async () => {
    body = { data: records };
    process.env.SEO_TEST_KEY = "key-of-the-environment";
    server = await open(listen((socket) => socket.write(answer(200, JSON.stringify(body)))));
    process.env.SEO_TEST_URL = server.url;
    const stored = [
      service("stored", server.url),
      service("stored-with-tls", server.url, { tls: "tls" }),
      service("stored-with-space", `${server.url} `),
    ];
    const keys = Object.fromEntries(stored.map(({ id }) => [id, { apiKey: KEY }]));
    const nodes = [tlsConfig("tls"), ...stored, service("no-key", server.url)];
    await open(startFlow(nodes, { ...keys, "no-key": {} }));
  });

  afterEach(() => {
    delete process.env.SEO_TEST_KEY;
    delete process.env.SEO_TEST_URL;
  });

  const at = (draft: object) => ({ baseUrl: server.url, apiKey: PLACEHOLDER, ...draft });
  const withKey = (draft: object = {}) => at({ apiKey: "typed", ...draft });
  const rows: Record<string, () => Row> = {
    "entered key": () => [withKey(), "typed"],
    "entered key for a deployed service": () => [withKey({ id: "stored" }), "typed"],
    "key and base URL from the environment": () => [
      { baseUrl: "${SEO_TEST_URL}", apiKey: "${SEO_TEST_KEY}" },
      "key-of-the-environment",
    ],
    "entered key without a base URL": () => [{ apiKey: "typed" }, undefined, "config"],
    "entered key with a TLS configuration that is missing": () => [withKey({ tls: "gone" }), undefined, "node"],
    "entered key with a proxy that is missing": () => [withKey({ proxy: "gone" }), undefined, "node"],
    "a variable that is not set": () => [at({ apiKey: "${SEO_TEST_ABSENT}" }), undefined, "variable"],
    "the stored key": () => [at({ id: "stored" }), KEY],
    "the stored key, with no word of it": () => [{ id: "stored", baseUrl: ` ${server.url}` }, KEY],
    "the stored key, whose base URL was deployed with a space": () => [at({ id: "stored-with-space" }), KEY],
    "the stored key, with the stored TLS configuration": () => [at({ id: "stored-with-tls", tls: "tls" }), KEY],
    "the stored key for another place": () => [
      at({ id: "stored", baseUrl: server.url.replace("127.0.0.1", "localhost") }),
      undefined,
    ],
    "the stored key without a base URL": () => [{ id: "stored" }, undefined],
    "the stored key for another path": () => [at({ id: "stored", baseUrl: `${server.url}/other` }), undefined],
    "the stored key with another TLS configuration": () => [at({ id: "stored", tls: "tls" }), undefined],
    "the stored key without its TLS configuration": () => [at({ id: "stored-with-tls" }), undefined],
    "the stored key through a proxy": () => [at({ id: "stored", proxy: "proxy" }), undefined],
    "the stored key of nobody": () => [at({ id: "unknown" }), undefined],
    "the stored key of a node of another type": () => [at({ id: "tls" }), undefined],
    "a key that was never stored": () => [at({ id: "no-key" }), undefined, "config"],
    "nothing at all": () => [{}, undefined],
  };

  for (const [name, row] of Object.entries(rows))
    it(`send only a permitted API key: ${name}`, async () => {
      const [draft, key, stage = key ? "done" : "stored"] = row();
      const { body, text } = await ask("test", draft);
      assert.deepEqual(keys(), key ? [key] : []);
      assert.deepEqual([body.ok, body.stage], [key !== undefined, stage]);
      if (key) assert.equal(body.values.count, 40);
      if (stage === "variable") assert.equal(body.values.name, "SEO_TEST_ABSENT");
      const { body: found } = await ask("suggest", { ...draft, operation: "seo-report-list", text: "exam" });
      assert.equal(found.suggestions.length, key ? 25 : 0);
      assert.deepEqual(keys(), key ? [key, key] : []);
      assert.doesNotMatch(text, /canary-key/);
      await until(() => server.open.size === 0, { patience: 3000 });
    });

  it("suggest the values of a field with readable labels", async () => {
    for (const [operation, value, label] of [
      ["seo-report-list", "1", "example.com/0"],
      ["seo-project-list", "p0", "example.com/0"],
    ]) {
      const { body } = await ask("suggest", at({ id: "stored", operation, text: "exam" }));
      assert.deepEqual(body.suggestions[0], { value, label });
      const { search } = new URL(server.requests.at(-1)?.path ?? "", server.url);
      assert.equal(search, "?search=exam&per_page=25");
    }
  });

  it("suggest a record by its value if it has no URL, and with its date", async () => {
    const all = [
      { id: 7, url: "example.com", generated_at: "2026-01-01" },
      { id: 8, generated_at: 9 },
      { id: 9, url: 7 },
      { url: "example.com/without-id" },
    ];
    body = { data: all };
    const { body: found } = await ask("suggest", at({ id: "stored", operation: "seo-report-list" }));
    assert.deepEqual(found.suggestions, [
      { value: "7", label: "example.com", date: "2026-01-01" },
      { value: "8", label: "8" },
      { value: "9", label: "9" },
    ]);
    assert.equal(new URL(server.requests[0]?.path ?? "", server.url).searchParams.get("search"), null);
    body = { message: "Not a list." };
    const none = await ask("suggest", at({ id: "stored", operation: "seo-report-list", text: "x" }));
    assert.deepEqual(none.body, { suggestions: [] });
  });

  it("suggest nothing and send no request if the operation is not a list", async () => {
    for (const operation of ["seo-report-delete", "unknown", undefined, {}, "__proto__"])
      assert.deepEqual((await ask("suggest", at({ id: "stored", operation }))).body, { suggestions: [] });
    assert.equal(server.requests.length, 0);
  });
});
