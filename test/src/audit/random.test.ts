import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { cancelled, SeoError } from "../../../src/errors.js";
import { openFolder } from "../../support/opened.js";
import { type Bench, createBench, createFake, createManualClock, key } from "./fake.js";

type Step =
  | { do: "add"; batch: string; pages: number[] }
  | { do: "pause" | "resume" | "retry" | "reset"; batch: string | undefined }
  | { do: "deploy" | "crash" | "wait" };

/** The fate of a page: how often it fails before it succeeds, with which code, and how it goes then. */
const fates = [
  { failures: 0, goes: "answered" },
  { failures: 0, goes: "lost" },
  { failures: 1, goes: "answered" },
  { failures: 2, goes: "resent" },
  { failures: 9, goes: "answered" },
  { failures: 0, goes: "resent" },
] as const;
const codes = ["SEO_REJECTED", "SEO_SERVER", "SEO_UNAUTHORIZED"] as const;
const fateOf = (page: number) => fates[page % fates.length] as (typeof fates)[number];

const batches = fc.constantFrom("a", "B / b");
const some = fc.option(batches, { nil: undefined });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("add" as const),
        batch: batches,
        pages: fc.array(fc.nat(30), { minLength: 1, maxLength: 12 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constantFrom("pause" as const, "resume" as const, "retry" as const, "reset" as const),
        batch: some,
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constantFrom("deploy" as const, "crash" as const, "wait" as const) }) },
  ),
  { minLength: 2, maxLength: 14 },
);

/** Does the steps, has everything finish, and checks what the service and the flow then have. */
async function play(steps: Step[], share: number): Promise<void> {
  const { path: folder, close: remove } = openFolder();
  const attempts = new Map<string, number>();
  const service = createFake({
    latency: 1,
    fate(page) {
      const number = Number(page.split("/").at(-1));
      const before = attempts.get(page) ?? 0;
      attempts.set(page, before + 1);
      const { failures, goes } = fateOf(number);
      if (before >= failures) return goes;
      return new SeoError(codes[number % codes.length] ?? "SEO_SERVER", "No.", { attempts: 1 });
    },
  });
  const clock = createManualClock();
  const all: Bench[] = [];
  let where = 0;
  let resets = 0;
  const given = new Map<string, number>();

  let die = () => {};
  function open(): Bench {
    let changed = () => {};
    const requests = service.connect(() => changed(), share);
    const { request, cancel } = requests;
    let dead = false;
    let end = () => {};
    /** A process that died sends nothing any more, and gets no response. */
    const never = new Promise<never>((_, reject) => {
      end = () => reject(cancelled);
    });
    never.catch(() => {});
    requests.request = (type, input, options) =>
      dead
        ? never
        : request(type, input, {
            ...options,
            async beforeAttempt(intent) {
              await options?.beforeAttempt?.(intent);
              if (dead) await never;
            },
          });
    requests.cancel = () => {
      end();
      cancel();
    };
    die = () => {
      dead = true;
    };
    const bench: Bench = createBench(join(folder, String(where)), service, {
      clock,
      share,
      connect(then) {
        changed = then;
        return requests;
      },
      result(result) {
        if (!dead) bench.results.push(result);
      },
    });
    all.push(bench);
    return bench;
  }

  let bench = open();
  await bench.audit.progress();
  for (const [index, step] of steps.entries()) {
    if (step.do === "add") {
      const pages = step.pages.map((page) => `https://${step.batch[0]}.example/${index}/${page}`);
      for (const page of pages) given.set(key(page), (given.get(key(page)) ?? 0) + 1);
      await bench.add(pages, { batch: step.batch });
    } else if ("batch" in step) {
      await bench.audit[step.do](step.batch);
      if (step.do === "reset") resets++;
    } else if (step.do === "wait") await sleep(5);
    else if (step.do === "deploy") {
      await bench.audit.close();
      bench = open();
    } else {
      await bench.audit.progress();
      die();
      cpSync(join(folder, String(where)), join(folder, String(where + 1)), { recursive: true });
      where++;
      const jobs = join(folder, String(where), "node");
      for (const name of readdirSync(jobs)) if (name.startsWith("lock-")) rmSync(join(jobs, name));
      bench = open();
    }
  }
  for (let left = Number.POSITIVE_INFINITY; left > 0; ) {
    await bench.audit.resume();
    clock.pass(15 * 60_000);
    await sleep(3);
    left = (await bench.audit.progress()).filter(({ finished }) => !finished).length;
  }
  await bench.audit.close();

  const sent = service.carriedOut.map((text) => text.replace("create ", ""));
  assert.equal(new Set(sent).size, sent.length, "a page was requested twice");
  const results = all.flatMap((one) => one.results);
  const count = (page: string, holds: (result: (typeof results)[number]) => boolean) =>
    results.filter((result) => key(String(result.input)) === page && holds(result)).length;
  for (const [page, rows] of given) {
    const created = count(page, ({ outcome, repeated }) => outcome === "created" && !repeated);
    const told = count(page, () => true);
    if (resets === 0) assert.ok(told >= rows, `${page}: ${told} of ${rows} rows were told`);
    if (resets === 0) assert.equal(count(page, ({ outcome }) => outcome === "created") > 0, sent.includes(page), page);
    assert.ok(created <= rows, `${page}: ${created} results of ${rows} rows`);
  }
  for (const { total, done, dropped, finished, waiting, reset, ...progress } of all.flatMap((one) => one.progress)) {
    const { created, regenerated, fresh, failed, uncertain } = progress;
    assert.equal(created + regenerated + fresh + failed + uncertain, done);
    assert.equal(done + waiting + dropped, total);
    assert.ok(progress.reconciling <= waiting);
    if (finished && !reset) assert.equal(done, total);
  }
  assert.ok(service.most() <= share, `${service.most()} requests were in flight`);
  await Promise.all(all.map((one) => one.audit.close()));
  remove();
}

/** Milliseconds in which cases begin. The disk's speed decides how many they are. */
const ENOUGH = 30_000;
/** Milliseconds after which a case is reported as one that does not end. */
const HANGS = 60_000;

describe("an audit, whatever is done to it", () => {
  it("requests no page twice and reports every row", async () => {
    const end = performance.now() + ENOUGH;
    const property = fc.asyncProperty(steps, fc.integer({ min: 1, max: 4 }), async (...given) => {
      if (performance.now() < end) await play(...given);
    });
    await fc.assert(property, { numRuns: 100, timeout: HANGS });
  });

  it("holds 50,000 waiting pages in 11 MB, and resumes them", async () => {
    const { path } = openFolder();
    const script = fileURLToPath(new URL("many.js", import.meta.url));
    const text = execFileSync(process.execPath, ["--expose-gc", script, path], { encoding: "utf8" });
    const { memory } = JSON.parse(text);
    assert.ok(memory < 11, text);
  });
});
