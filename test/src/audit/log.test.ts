import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { lostData } from "../../../src/audit/shared/faults.js";
import { createLog, segmentOf } from "../../../src/audit/shared/log.js";
import { joinMachines } from "../../../src/audit/shared/machine.js";
import { createWriter } from "../../../src/audit/shared/writer.js";
import { taken } from "../../../src/audit/trouble.js";
import { cancelled, type SeoError } from "../../../src/errors.js";
import { createMemory, type Way } from "./memory.js";

const LOG = "log";
/** The rows of a segment. */
const SIZE = 2000;
/** Milliseconds after which no late command is carried out any more. */
const SETTLED = 150;

/** A log in the memory, with so many lines of an earlier machine. */
function createShared(lines: number) {
  const memory = createMemory();
  const logs = Array.from({ length: lines }, (_, number) =>
    JSON.stringify({ from: "earlier", number, entries: [{ gone: `earlier ${number}` }] }),
  );
  const jobs = new Map();
  memory.queues.set("logs", jobs);
  if (lines > 0) jobs.set(segmentOf(LOG, 0), { id: segmentOf(LOG, 0), data: {}, timestamp: 0, state: "wait", logs });

  /** A machine, which notes what it applies. `way` says what becomes of a line that it appends. */
  function join(way: () => Way = () => "answered", exists = () => true) {
    const applied: string[] = [];
    const late: [text: string, result: unknown][] = [];
    const failures: unknown[] = [];
    let lines = 0;
    const server = memory.connect(
      (line) => (line === "" ? "answered" : way()),
      () => Math.random() * 2,
    );
    const writer = createWriter({
      name: "my batch",
      log(take) {
        const log = createLog(server.queue("logs"), LOG, async () => exists(), take);
        const append = (text: string) =>
          log.append(text).catch((error) => {
            failures.push(error.code);
            throw error;
          });
        return { ...log, append };
      },
      apply(entry) {
        if (!("gone" in entry)) throw new Error("it has no meaning");
        return applied.push(entry.gone);
      },
      late: (entry, result) => late.push([String(Object(entry).gone), result]),
      applied: () => lines++,
      toError: (cause) => cause as SeoError,
    });
    return {
      ...writer,
      applied,
      late,
      failures,
      lines: () => lines,
      write: (text: string) => writer.append({ gone: text }),
    };
  }
  return { join, jobs, segment: (number: number): { logs: string[] } => jobs.get(segmentOf(LOG, number)) };
}

describe("A log that machines share", () => {
  const ways = fc.constantFrom<Way>("answered", "answered", "answered", "lost", "mute", "late", "collides");
  const stories = fc.record({
    lines: fc.oneof(fc.constant(0), fc.integer({ min: SIZE - 12, max: SIZE + 1 })),
    /** Of each machine: what becomes of its lines, one after the other. */
    fates: fc.array(fc.array(ways, { minLength: 1, maxLength: 8 }), { minLength: 3, maxLength: 3 }),
  });
  type Story = typeof stories extends fc.Arbitrary<infer One> ? One : never;

  async function play({ lines, fates }: Story): Promise<void> {
    const { join } = createShared(lines);
    const machines = fates.map((own) => {
      const left = own.slice();
      return join(() => left.shift() ?? "answered");
    });
    const ends = machines.flatMap(({ write, applied }, number) =>
      Array.from({ length: 8 }, async (_, index) => {
        const text = `${number}/${index}`;
        await sleep(Math.random() * 50);
        const result = await write(text).catch(() => undefined);
        if (result !== undefined) assert.equal(applied[Number(result) - 1], text);
        return { text, number, result };
      }),
    );
    const reads = machines.map(async ({ read }) => {
      for (let times = 0; times < 20; times++) await Promise.all([read(), sleep(Math.random() * 5)]);
    });
    const [all] = await Promise.all([Promise.all(ends), ...reads]);
    await sleep(SETTLED);
    const last = join();
    for (const { read, applied, failures } of [last, ...machines]) {
      await read();
      assert.ok(
        failures.every((code) => code === "ETIMEDOUT"),
        String(failures),
      );
      assert.equal(new Set(applied).size, applied.length);
      assert.deepEqual(applied, last.applied);
    }
    // What was given up is applied later, or never.
    for (const { text, number, result } of all) {
      const { applied, late } = machines[number] as (typeof machines)[number];
      const at = applied.indexOf(text) + 1;
      const isLate = late.filter(([one]) => one === text).map(([, result]) => result);
      assert.deepEqual(isLate, result === undefined && at > 0 ? [at] : []);
      assert.ok(result === undefined || at > 0);
    }
  }

  it("has the same lines in the same order for all, each once, whatever becomes of their commands", async () => {
    const told = fc.sample(stories, Number(process.env.RUNS ?? 100));
    await Promise.all(told.map((story) => play(story)));
  });

  it("says that it was removed, or that the server has lost its data", async () => {
    for (const [exists, reason] of [
      [false, taken],
      [true, lostData],
    ] as const) {
      const { join, jobs, segment } = createShared(2);
      const machine = join(undefined, () => exists);
      await machine.read();
      const { push } = segment(0).logs;
      // The server loses a line that it has just got.
      segment(0).logs.push = () => 3;
      await assert.rejects(machine.write("x"), reason);
      segment(0).logs.push = push;
      // A line that was read is missing.
      segment(0).logs.splice(0, 2, "other", "lines");
      await assert.rejects(machine.read(), reason);
      jobs.clear();
      await assert.rejects(machine.read(), reason);
    }
    // It is begun by whoever appends first, as long as its batch is there.
    await assert.rejects(
      createShared(0)
        .join(undefined, () => false)
        .write("x"),
      taken,
    );
    assert.equal(await createShared(0).join().write("x"), 1);
  });

  it("appends what must be there until it is, but not after it was closed or removed", async () => {
    const fates: Way[] = ["lost", "mute"];
    const machine = createShared(1).join(() => fates.shift() ?? "answered");
    await machine.insist({ gone: "a" });
    assert.deepEqual(machine.late, [["a", 2]]);
    for (const text of ["b", "c"]) void machine.write(text);
    await machine.close(cancelled);
    await machine.insist({ gone: "d" });
    await assert.rejects(machine.write("d"), cancelled);
    assert.deepEqual(machine.applied, ["earlier 0", "a", "a", "b", "c"]);
    const removed = createShared(0).join(undefined, () => false);
    await removed.insist({ gone: "d" });
    assert.deepEqual(removed.applied, []);
  });

  it("gets what is written at once as one line", async () => {
    const { write, applied, lines } = createShared(0).join();
    await Promise.all(["a", "b", "c"].map(write));
    assert.deepEqual([applied, lines()], [["a", "b", "c"], 1]);
  });

  it("is damaged for all from the first line that has no meaning, which says how to go on", async () => {
    for (const line of [
      "no JSON",
      '{"from":"x","number":1}',
      '{"from":"x","number":1,"entries":[{"left":1,"by":"x"}]}',
    ]) {
      const { join, segment } = createShared(1);
      const machine = join();
      await machine.read();
      assert.equal(machine.broken(), undefined);
      segment(0).logs.push(line);
      const damaged = {
        code: "SEO_INPUT",
        message: /^The batch "my batch" cannot continue: its log in the queue is damaged \(.+\)\. Send msg\.reset\.$/,
      };
      await assert.rejects(machine.write("a"), damaged);
      await assert.rejects(machine.write("b"), damaged);
      await machine.insist({ gone: "c" });
      await machine.read();
      assert.deepEqual([machine.applied, machine.lines(), segment(0).logs.length], [["earlier 0"], 2, 3]);
    }
  });
});

describe("A machine that shares a queue", () => {
  const join = (memory: ReturnType<typeof createMemory>, lockDuration: number) =>
    joinMachines(memory.connect(), "machines", { lockDuration, stalledInterval: 60_000 });

  it("keeps its name and is seen by the others until it leaves, as long as it has its lock", async () => {
    const memory = createMemory();
    const [one, other] = await Promise.all([join(memory, 60_000), join(memory, 60_000)]);
    const names = [one.id(), other.id()];
    await Promise.all([one.renew(), other.renew()]);
    assert.deepEqual([one.id(), other.id()], names);
    assert.deepEqual(await one.living(), new Set(names));
    await other.leave();
    assert.deepEqual([...(await one.living())], [one.id()]);
    await one.leave();
  });

  it("gets one new name if it has lost its lock", async () => {
    const memory = createMemory();
    // It is lost at once.
    const machine = await join(memory, -1);
    const before = machine.id();
    await Promise.all([machine.renew(), machine.renew(), machine.renew()]);
    assert.deepEqual([...(await machine.living())], [before, machine.id()]);
    assert.notEqual(machine.id(), before);
  });
});
