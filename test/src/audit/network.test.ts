import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import type { Clock } from "../../../src/audit/clock.js";
import type { Requests } from "../../../src/audit/requests.js";
import { readRows } from "../../../src/audit/rows.js";
import { segmentOf } from "../../../src/audit/shared/log.js";
import type { Store } from "../../../src/audit/store.js";
import { cancelled, SeoError } from "../../../src/errors.js";
import type { Existing } from "../../../src/existing.js";
import { deferred } from "../../../src/turns.js";
import { type Bench, createBench, createFake, key, unreadable, urls } from "./fake.js";
import { createMemory, type Way } from "./memory.js";

const MACHINES = 3;
const LEASE = { lockDuration: 150, stalledInterval: 50 };
/** No machine loses its lock. */
const LONG = { lockDuration: 30_000, stalledInterval: 10_000 };
/** So many times faster than real time passes in a story. */
const FASTER = 1000;
/** At the same time. */
const STORIES = 15;
/** Milliseconds after which a story that has not ended hangs. */
const HANGS = 60_000;
/** Within so many milliseconds, most lists are saved. */
const SAVED = 30;
const MAX_AGE = 1;
const DAY = 86_400_000;

/** Milliseconds. */
interface Period {
  at: number;
  lasts: number;
}

/** For a while, what becomes of some of a machine's commands. */
interface Fault extends Period {
  machine: number;
  way: Way;
  /** One command of so many. */
  one: number;
}

/**
 * `again`: a part of the first list; `burst`: the same list on all machines; `deploy`: it does not wait for a list that comes
 * just before; `replace`: another machine starts before this one ends.
 */
const deeds = ["add", "again", "burst", "deploy", "replace", "kill", "pause", "resume", "retry", "reset"] as const;
/** A row can be reported twice. */
const repeating: readonly string[] = ["again", "burst", "retry", "reset"];

interface Step {
  machine: number;
  at: number;
  do: (typeof deeds)[number];
  pages: number;
}

interface Story {
  faults: Fault[];
  steps: Step[];
  existing: Existing;
  /** Meanwhile, the service rejects the API key. */
  refused: Period;
  /** It always rejects that of the machine that gets the first list. */
  revoked: boolean;
  share: number;
}

const when = { machine: fc.nat(MACHINES - 1), at: fc.nat(400) };
const stories: fc.Arbitrary<Story> = fc.record({
  faults: fc.array(
    fc.record({
      ...when,
      lasts: fc.integer({ min: 5, max: 500 }),
      way: fc.constantFrom<Way>("lost", "mute", "late"),
      one: fc.constantFrom(1, 1, 3, 10),
    }),
    { maxLength: 6 },
  ),
  steps: fc.array(
    fc.record({
      ...when,
      do: fc.constantFrom(...deeds),
      pages: fc.integer({ min: 1, max: 12 }),
    }),
    { maxLength: 6 },
  ),
  existing: fc.constantFrom<Existing>("create", "create", "return", "regenerate"),
  refused: fc.record({ at: when.at, lasts: fc.nat(400) }),
  revoked: fc.constantFrom(false, false, false, true),
  share: fc.integer({ min: 1, max: 4 }),
});

/** How a page's requests go. */
const fates = ["answered", "answered", "lost", "resent", "failed"] as const;
const rejected = new SeoError("SEO_REJECTED", "No.", { attempts: 1 });
const unauthorized = new SeoError("SEO_UNAUTHORIZED", "No.", { attempts: 1 });
const numberOf = (page: string) => Number(page.split("/").at(-1));

/** Of three pages, one has no report, one an old one, and one a fresh one. */
const known = (pages: string[]) =>
  pages.flatMap((page, index) => {
    const date = new Date(Date.now() - (numberOf(page) % 3) * DAY).toISOString();
    return numberOf(page) % 3 === 0 ? [] : [{ id: index + 1, url: key(page), created_at: date, generated_at: date }];
  });
/** So many pages, and as many rows that are none. */
const rowsOf = (count: number, from: number) => urls(count, from).flatMap((page) => [page, `no page: ${page}`]);

const clock: Clock = {
  now: () => performance.now() * FASTER,
  later(ms, run) {
    const timer = setTimeout(run, ms / FASTER);
    return () => clearTimeout(timer);
  },
};

/** The batches that are kept until they are retried. */
const kept = ({ queues }: ReturnType<typeof createMemory>) =>
  [...(queues.get("node")?.values() ?? [])].filter(({ state }) => state === "prioritized").map(({ id }) => id);

/** Another machine has removed a batch, and its log. */
function removeFrom({ queues }: ReturnType<typeof createMemory>, id: string): void {
  queues.get("node")?.delete(id);
  queues.get("node-log")?.delete(segmentOf(id, 0));
}

interface Machine extends Bench {
  /** From now on, it neither reaches the queue, nor anybody its results. */
  kill(): void;
}

/** Tells a story to its end, and checks what the service and the flows then have. */
async function play({ faults, steps, existing, refused, revoked, share }: Story): Promise<void> {
  let began = Number.POSITIVE_INFINITY;
  const time = () => performance.now() - began;
  const isAhead = ({ at, lasts }: Period) => time() < at + lasts;
  const isNow = (period: Period) => time() >= period.at && isAhead(period);
  const memory = createMemory();
  const service = createFake(
    {
      latency: 8,
      beforeList() {
        if (isNow(refused)) throw unauthorized;
      },
      fate(page) {
        if (isNow(refused)) return unauthorized;
        const fate = fates[numberOf(page) % fates.length] ?? "answered";
        return fate === "failed" ? rejected : fate;
      },
    },
    existing === "create" ? [] : known(urls(20)),
  );
  const withoutKey = (): Requests => ({
    ...service.connect(),
    // What another machine has sent may have had an effect.
    send: (_type, _input, { intent } = {}) => Promise.reject(unauthorized.with({ uncertain: intent !== undefined })),
    pages: unreadable(unauthorized),
  });
  const all: Machine[] = [];
  const given: string[] = [];

  function open(number: number): Machine {
    let isDead = false;
    function way(): Way {
      if (isDead) return "lost";
      const isHit = (one: Fault) => one.machine === number && isNow(one) && Math.random() < 1 / one.one;
      return faults.find(isHit)?.way ?? "answered";
    }
    const bench: Bench = createBench("", service, {
      share,
      clock,
      connect: revoked && number === 0 ? withoutKey : service.connect,
      result: (result) => isDead || bench.results.push(result),
      open: memory.opening(LEASE, way, () => Math.random() * 3),
    });
    const opened = Object.assign(bench, {
      kill() {
        isDead = true;
      },
    });
    all.push(opened);
    return opened;
  }

  const machines = Array.from({ length: MACHINES }, (_, number) => open(number));
  const on = (number: number) => machines[number] as Machine;
  async function add(machine: number, pages: string[], how = existing): Promise<void> {
    await on(machine).add(pages, { existing: how, maxAge: MAX_AGE });
    given.push(...pages);
  }

  async function take({ machine, at, do: what, pages }: Step, index: number): Promise<void> {
    await sleep(at);
    const rows = rowsOf(pages, 100 * (index + 1));
    const old = on(machine);
    if (what === "add") await add(machine, rows);
    else if (what === "again") await old.add(urls(pages), { existing: "return", maxAge: MAX_AGE });
    // The batch can end before the last of them gets the list.
    else if (what === "burst") await Promise.allSettled(machines.map((_, each) => add(each, rows, "return")));
    else if (what === "deploy") {
      const added = add(machine, rows).catch(() => {});
      await sleep(Math.random() * SAVED);
      await old.audit.close();
      machines[machine] = open(machine);
      await added;
    } else if (what === "replace" || what === "kill") {
      machines[machine] = open(machine);
      if (what === "kill") old.kill();
      else await old.audit.close();
    } else await old.audit[what]();
  }

  try {
    await add(0, rowsOf(20, 1));
    began = performance.now();
    // What a message asks for is rejected while the server cannot be reached.
    await Promise.all(steps.map((step, index) => take(step, index).catch(() => {})));
    while (faults.some(isAhead)) await sleep(10);
    const ends = machines.map(async ({ audit }) => {
      // A machine that could not open its queue tries again.
      while ((await audit.resume().catch(() => undefined)) === undefined) await sleep(10);
      while ((await audit.progress()).length > 0) await sleep(10);
    });
    const hangs = sleep(HANGS, undefined, { ref: false }).then(() =>
      assert.fail(`it hangs: ${JSON.stringify(machines.map(({ progress }) => progress.at(-1)))}`),
    );
    await Promise.race([Promise.all(ends), hangs]);
  } finally {
    await Promise.all(all.map(({ audit }) => audit.close()));
  }

  const sent = service.carriedOut.map((text) => text.replace(/^\w+ /, ""));
  assert.equal(new Set(sent).size, sent.length, "a page was requested twice");
  const wasReset = steps.some((step) => step.do === "reset");
  const isOnce = !steps.some((step) => repeating.includes(step.do));
  for (const page of given) {
    const told = all.flatMap(({ results }) => results).filter(({ input }) => input === page);
    const made = told.filter(({ outcome }) => outcome === "created" || outcome === "regenerated");
    if (!wasReset) assert.ok(told.length > 0, `${page} was not reported`);
    const isCertain = !wasReset && !told.some(({ outcome }) => outcome === "uncertain");
    if (isCertain) assert.equal(made.length > 0, sent.includes(key(page)), `${page}: ${JSON.stringify(told)}`);
    const once = (isOnce ? told : made).filter(({ repeated }) => !repeated);
    assert.ok(once.length < 2, `${page} was reported twice: ${JSON.stringify(once)}`);
  }
  assert.equal(service.expected(), 0);
}

describe("Machines whose connections to their queue fail", () => {
  it("do not take the start of another one for a loss of data", async () => {
    const memory = createMemory();
    const hooks = { lost: assert.fail, stalled: assert.fail, found() {} };
    const open = () => memory.opening(LEASE, undefined, () => 1)(hooks);
    const first = await open();
    const [, second] = await Promise.all([first.probe(), open()]);
    await Promise.all([first.close(), second.close()]);
  });

  it("do not begin a list again that another one works on if they are closed meanwhile", async () => {
    const memory = createMemory();
    const hooks = { lost: assert.fail, stalled: assert.fail, found() {} };
    const open = () => memory.opening(LONG)(hooks);
    const [first, second] = [await open(), await open()];
    const begin = (store: Store) => store.create("weekly", { existing: "create" }, readRows(urls(2)));
    await begin(first);
    await second.refresh?.();
    await Promise.all([assert.rejects(begin(second), cancelled), second.close()]);
    await first.refresh?.();
    assert.equal(first.batches.length, 1);
    await first.close();
  });

  it("begin a list once, although it ends before the others have been read", async () => {
    const memory = createMemory();
    const paused = deferred();
    const service = createFake({ step: (what) => (what.includes("/1") ? paused.promise : undefined) });
    let pause = 0;
    const open = memory.opening(LONG, undefined, () => pause);
    const { add, audit, results } = createBench("", service, { open });
    for (let number = 0; number < 30; number++) await add(urls(2), { batch: `paused ${number}` });
    await audit.pause();
    paused.resolve();
    pause = 10;
    assert.equal(await add(["no page: 2", ...urls(1, 2)]), 2);
    while (results.filter(({ batch }) => batch === "default").length < 2) await sleep(5);
    await sleep(500);
    assert.equal(results.filter(({ batch }) => batch === "default").length, 2);
    await audit.close();
  });

  it("work on a batch that was retried twice while the server did not respond", async () => {
    const memory = createMemory();
    let fate: "answered" | SeoError = rejected;
    const retries: Way[] = ["mute", "lost"];
    const way = (line: string): Way => (line.includes('"retry":true') && retries.shift()) || "answered";
    const { add, audit, finished, results } = createBench("", createFake({ fate: () => fate }), {
      open: memory.opening(LONG, way),
    });
    await add(urls(1));
    await finished();
    while (kept(memory).length === 0) await sleep(5);
    fate = "answered";
    while (retries.length > 0) await assert.rejects(audit.retry());
    assert.equal(await audit.retry(), 1);
    while (results.length < 2) await sleep(5);
    assert.equal(results[1]?.outcome, "created");
    await audit.close();
  });

  it("retry the other batches if one was replaced meanwhile", async () => {
    const memory = createMemory();
    let replaced = "";
    function way(line: string): Way {
      if (line.includes('"retry":true') && !replaced) {
        [replaced = ""] = kept(memory);
        removeFrom(memory, replaced);
      }
      return "answered";
    }
    const { add, audit, results } = createBench("", createFake({ fate: () => rejected }), {
      open: memory.opening(LONG, way),
    });
    for (const batch of ["one", "two"]) await add(urls(1), { batch });
    while (kept(memory).length < 2) await sleep(5);
    assert.equal(await audit.retry(), 1);
    while (results.length < 3) await sleep(5);
    assert.equal(results[2]?.batch, "two");
    await audit.close();
  });

  it("leave nothing of a list on the server once it was reset, replaced, or complete", async () => {
    const memory = createMemory();
    const fates = [rejected, rejected];
    const service = createFake({ fate: () => fates.pop() ?? "answered" });
    const benches = [0, 1].map(() => createBench("", service, { open: memory.opening(LEASE) }));
    const [{ add, audit }] = benches as [Bench, Bench];
    const { now } = performance;
    try {
      for (const end of [() => audit.reset(), () => add(urls(3))]) {
        // A list with a failure is kept for msg.retry.
        await add(urls(1));
        while (kept(memory).length === 0) await sleep(5);
        await end();
        assert.deepEqual(kept(memory), []);
      }
      performance.now = () => now.call(performance) * FASTER;
      while (memory.queues.get("node-log")?.size !== 0) await sleep(5);
      assert.deepEqual([...(memory.queues.get("node")?.keys() ?? [])], ["mark"]);
    } finally {
      performance.now = now;
      await Promise.all(benches.map((bench) => bench.audit.close()));
    }
  });

  for (const what of ["pause", "retry", "reset"] as const)
    it(`${what} the other batches if one that is worked on was replaced meanwhile`, async () => {
      const memory = createMemory();
      const ends = deferred();
      const changed: string[] = [];
      function way(line: string): Way {
        if (!/"(paused|retry|reset)":true/.test(line)) return "answered";
        const [id = ""] = [...(memory.queues.get("node")?.keys() ?? [])].filter((name) => name !== "mark");
        if (changed.push(line) === 1) removeFrom(memory, id);
        return "answered";
      }
      const { add, audit } = createBench("", createFake({ step: () => ends.promise }), {
        open: memory.opening(LONG, way),
      });
      for (const batch of ["one", "two"]) await add(urls(2), { batch });
      assert.equal(await audit[what](), 1);
      assert.equal(changed.length, 2);
      ends.resolve();
      await audit.close();
    });

  it("request no page twice, report every row, and finish", async () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1e9);
    const told = fc.sample(stories, { numRuns: Number(process.env.RUNS ?? 100), seed });
    const failed: string[] = [];
    const next = told.values();
    await Promise.all(
      Array.from({ length: STORIES }, async () => {
        for (const story of next)
          await play(story).catch(({ message }) => failed.push(`${message}\n${JSON.stringify(story)}`));
      }),
    );
    assert.deepEqual(failed, [], `${failed.length} of ${told.length}, SEED=${seed}`);
  });
});
