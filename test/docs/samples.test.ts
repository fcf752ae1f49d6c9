import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../dev/nodered.js";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { reports } from "../../src/changes.js";
import { type Client, createClient } from "../../src/client.js";
import type { SeoError } from "../../src/errors.js";
import { findingsOf } from "../../src/findings.js";
import { audit, listProperties, responseProperties, rowOf } from "../../src/operations.js";
import { validateInput } from "../../src/schema.js";
import { node, service, startFlow } from "../support/flow.js";
import { closeAfterEach, openFolder } from "../support/opened.js";

type Json = Record<string, unknown>;

const readme = readFileSync(join(root, "README.md"), "utf8");
const reference = readFileSync(join(root, "docs/reference.md"), "utf8");
const samples = [...`${readme}${reference}`.matchAll(/```json\n([\s\S]*?)```/g)].map(
  ([, sample = ""]) => JSON.parse(sample) as Json,
);
/** The sample that has a property. */
const sample = (property: string) => samples.find((one) => property in one) ?? assert.fail(`no sample has ${property}`);
const undated = (record: Json) => Object.fromEntries(Object.entries(record).filter(([name]) => !name.endsWith("_at")));

describe("The samples in the documents", () => {
  const open = closeAfterEach();
  let sandbox: Sandbox;
  let client: Client;
  beforeEach(async () => {
    sandbox = await open(startSandbox());
    client = await open(createClient({ baseUrl: sandbox.url, apiKey: sandbox.apiKey }));
  });

  const store = (input: Json) => client.call("seo-report-store", input);

  it("show a new report as the sandbox returns it", async () => {
    const { body } = await store({ url: "https://example.com/" });
    const { results: all, ...report } = undated((body as { data: Json }).data);
    const { results: shown, ...rest } = undated(sample("results"));
    assert.deepEqual(rest, report);
    assert.deepEqual(all, { ...(all as Json), ...(shown as Json) });
  });

  it("show an issue of that report", () => {
    const failed = findingsOf(sample("results")).map(({ issue }) => issue());
    const shown = sample("check");
    const same = failed.find(({ check }) => check === shown.check);
    assert.deepEqual(same, shown);
  });

  it("show all properties of msg.seo with a list", () => {
    assert.deepEqual(Object.keys(sample("truncated")), [...responseProperties, ...listProperties]);
  });

  it("show the error of a rejected URL", async () => {
    const error = await store({ url: "not a url" }).catch((cause: SeoError) => cause.toJSON());
    assert.deepEqual(sample("code"), JSON.parse(JSON.stringify(error)));
  });

  it("show the sentence about invalid input", () => {
    const input = { url: "example.com", privacy: "secret" };
    const validate = () => validateInput(rowOf("seo-report-store"), input, { privacy: "msg.payload.privacy" });
    assert.throws(validate, ({ message }) => readme.includes(`> ${message}\n`));
  });

  it("use input that is valid", async () => {
    const input =
      samples.find(({ password }) => typeof password === "string") ?? assert.fail("no sample has a password");
    const { body } = await store(input);
    assert.equal((body as { data: Json }).data.password, true);
  });

  it("show both outputs of an audit", async () => {
    const [result, progress] = samples.filter(({ topic }) => topic === "spring") as { payload: Json; seo: Json }[];
    const { path: folder } = await open(openFolder());
    const settings = { pages: "payload", pagesType: "msg", batch: "topic", batchType: "msg", existing: "regenerate" };
    const nodes = [
      service("service", sandbox.url),
      node("audit", "seo-report-audit", { ...settings, folder, wires: [["results"], ["progress"]] }),
    ];
    const flow = await open(startFlow(nodes, { service: { apiKey: sandbox.apiKey } }));
    await flow.send("audit", { topic: "spring", payload: [result?.seo.input] });
    const [{ _msgid, payload, ...rest } = {}] = await flow.take("results", 1);
    const { results: _, ...record } = payload as Json;
    const shown = JSON.parse(JSON.stringify({ payload: undated(record), ...rest }));
    assert.deepEqual(shown, { ...result, payload: undated(result?.payload ?? {}) });
    const always = audit.outputs?.[1]?.payload?.filter(
      (property) => !["repeated", "secondsToWait", "reason", "reset"].includes(property),
    );
    assert.deepEqual(Object.keys(progress?.payload ?? {}), always);
  });

  it("show a change with the values that the changes node keeps", () => {
    const { previous, fields, change } = sample("change") as { previous: Json; fields: string[]; change: string };
    const first = reports.compare(undefined, 0);
    first.compare(previous);
    const kept = first.state(true);
    assert.deepEqual([previous], Object.values(kept.reports));
    const now = { ...previous, score: 53, result: "decent", generated_at: "2026-11-21", updated_at: "2026-11-21" };
    const [found] = reports.compare(kept, 0).compare(now);
    assert.deepEqual([found?.change, found?.details.fields], [change, fields]);
  });
});
