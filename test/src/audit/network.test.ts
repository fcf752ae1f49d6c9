import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import type { Requests } from "../../../src/audit/requests.js";
import { SeoError } from "../../../src/errors.js";
import type { Existing } from "../../../src/existing.js";
import { type Bench, createBench, createFake, key, unreadable, urls } from "./fake.js";
import { createMemory, fastClock, type Way } from "./memory.js";

const MACHINES = 3;
const LEASE = { lockDuration: 150, stalledInterval: 50 };
/** At the same time. */
const STORIES = 15;
/** Milliseconds after which a story that has not ended hangs. */
const HANGS = 20_000;
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
  /** The server always rejects the user of the machine that gets the first list. */
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
  steps: fc.array(fc.record({ ...when, do: fc.constantFrom(...deeds), pages: fc.integer({ min: 1, max: 12 }) }), {
    maxLength: 6,
  }),
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
  const memory = createMemory(HANGS);
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
  const connect = (changed: () => void) => service.connect(changed, share);
  const withoutKey = (changed: () => void): Requests => ({
    ...connect(changed),
    // A request of another machine may have had an effect.
    request: (_type, _input, { intent } = {}) => Promise.reject(unauthorized.with({ uncertain: intent !== undefined })),
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
      clock: fastClock,
      connect: revoked && number === 0 ? withoutKey : connect,
      result: (result) => isDead || bench.results.push(result),
      create: memory.auditing(LEASE, {}, way, () => Math.random() * 3),
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
    // Messages are rejected while the server cannot be reached.
    await Promise.all(steps.map((step, index) => take(step, index).catch(() => {})));
    while (faults.some(isAhead)) await sleep(10);
    const end = async () => {
      // A machine that could not open its queue tries again.
      while ((await machines[0]?.audit.resume().catch(() => undefined)) === undefined) await sleep(10);
      while (memory.unfinished().length > 0) await sleep(10);
    };
    const hangs = sleep(HANGS, true, { ref: false });
    if (await Promise.race([end(), hangs])) assert.fail(`it hangs: ${JSON.stringify(memory.unfinished())}`);
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
}

describe("Machines whose connections to their queue fail", () => {
  it("request no page twice, report every row, and finish", async () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1e9);
    const told = fc.sample(stories, { numRuns: Number(process.env.RUNS ?? (process.env.BRIEF ? 50 : 100)), seed });
    const failed: string[] = [];
    const next = told.values();
    await Promise.all(
      Array.from({ length: STORIES }, async () => {
        // A message can wait so long, then the end of the story, and then a machine's close.
        for (const story of next)
          await Promise.race([
            play(story),
            sleep(HANGS * 3, undefined, { ref: false }).then(() => assert.fail("a machine hangs")),
          ]).catch(({ message }) => failed.push(`${message}\n${JSON.stringify(story)}`));
      }),
    );
    assert.deepEqual(failed, [], `${failed.length} of ${told.length}, SEED=${seed}`);
  });
});
