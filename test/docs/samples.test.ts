import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../dev/nodered.js";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { createComparison } from "../../src/changes.js";
import { type Client, createClient } from "../../src/client.js";
import type { SeoError } from "../../src/errors.js";

type Json = Record<string, unknown>;

const readme = readFileSync(join(root, "README.md"), "utf8");
const samples = [...readme.matchAll(/```json\n([\s\S]*?)```/g)].map(([, sample = ""]) => JSON.parse(sample) as Json);
/** The README's sample that has a property. */
const sample = (property: string) => samples.find((one) => property in one) ?? assert.fail(`no sample has ${property}`);
const undated = (record: Json) => Object.fromEntries(Object.entries(record).filter(([name]) => !name.endsWith("_at")));

describe("The samples in the README", () => {
  let sandbox: Sandbox;
  let client: Client;
  before(async () => {
    sandbox = await startSandbox();
    client = createClient({ baseUrl: sandbox.url, apiKey: sandbox.apiKey });
  });
  after(() => Promise.all([client?.close(), sandbox?.close()]));

  const store = (input: Json, from = {}) => client.call("seo-report-store", input, { from });
  const failure = (input: Json, from = {}) =>
    store(input, from).then(
      () => assert.fail("it succeeded"),
      (error: SeoError) => error,
    );

  it("show a new report as the sandbox returns it", async () => {
    const { body } = await store({ url: "https://example.com/" });
    assert.deepEqual(undated(sample("results")), undated((body as { data: Json }).data));
  });

  it("show the error of a rejected URL", async () => {
    const error = await failure({ url: "not a url" });
    assert.deepEqual(sample("code"), JSON.parse(JSON.stringify(error)));
  });

  it("show the sentence about invalid input", async () => {
    const { message } = await failure({ url: "example.com", privacy: "secret" }, { privacy: "msg.payload.privacy" });
    assert.ok(readme.includes(`> ${message}\n`), message);
  });

  it("use input that is valid", async () => {
    const input =
      samples.find(({ password }) => typeof password === "string") ?? assert.fail("no sample has a password");
    const { body } = await store(input);
    assert.equal((body as { data: Json }).data.password, true);
  });

  it("show a change with the values that the changes node keeps", () => {
    const { previous, fields, change } = sample("change") as { previous: Json; fields: string[]; change: string };
    const { compare, seen } = createComparison({});
    compare(previous);
    const [kept] = Object.values(seen);
    assert.deepEqual(previous, kept);
    const now = { ...previous, score: 53, result: "decent", generated_at: "2026-11-21", updated_at: "2026-11-21" };
    const found = createComparison(seen).compare(now);
    assert.deepEqual([found?.change, found?.fields], [change, fields]);
  });
});
