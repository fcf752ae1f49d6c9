import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import fsp, { mkdir, readFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { pageKey } from "../../../src/address.js";
import { clock } from "../../../src/audit/clock.js";
import { createDelivery } from "../../../src/audit/delivery.js";
import { createDisk } from "../../../src/audit/disk.js";
import { folderOf, mayHaveJobs, moveFolder, removeFolder } from "../../../src/audit/folder.js";
import { readList, readName, readRow, writeList } from "../../../src/audit/list.js";
import { openLog } from "../../../src/audit/log.js";
import { createPages, outcomes } from "../../../src/audit/pages.js";
import { makePlan } from "../../../src/audit/plan.js";
import { createPace, progressOf } from "../../../src/audit/progress.js";
import { sendRequest, showReport } from "../../../src/audit/request.js";
import { requestsOf } from "../../../src/audit/requests.js";
import { keyOf, readRows, urlOf } from "../../../src/audit/rows.js";
import { createSlots } from "../../../src/audit/slots.js";
import type { Batch, Plan } from "../../../src/audit/store.js";
import { fromDisk, Trouble } from "../../../src/audit/trouble.js";
import type { Client } from "../../../src/client.js";
import { cancelled, SeoError } from "../../../src/errors.js";
import { type Existing, isNewer, needOf } from "../../../src/existing.js";
import { createFake, createFolder, createManualClock, key } from "./fake.js";

const states = ["waiting", "sent", "ended", ...outcomes] as const;
const DAY = 86_400_000;

describe("The parts of an audit", () => {
  it("look for a lost response for 300 seconds, unless the SEO service node says otherwise", () => {
    const horizons: number[] = [];
    const claim: Client["claim"] = (_, horizon) => horizons.push(horizon);
    for (const horizon of [0, 7000]) requestsOf({ horizon, claim } as Client).claim([]);
    assert.deepEqual(horizons, [300_000, 7000]);
  });

  it("know the rows, the first row and the state of each page", () => {
    const row = fc.record({ key: fc.nat(40).map(String), offset: fc.nat(), state: fc.constantFrom(...states) });
    const change = fc.record({ row: fc.nat(299), state: fc.constantFrom(...states) });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 300, size: "max" }), fc.array(change), (rows, changes) => {
        const pages = createPages();
        for (const [row, { key, offset, state }] of rows.entries()) {
          pages.add(key, offset);
          pages.set(row, state);
        }
        const expected: string[] = rows.map(({ state }) => state);
        for (const { row, state } of changes) {
          if (row >= rows.length) continue;
          pages.set(row, state);
          expected[row] = state;
        }
        const keys = rows.map(({ key }) => key);
        assert.equal(pages.count(), rows.length);
        assert.equal(pages.find("another"), undefined);
        for (const [row, { key, offset }] of rows.entries()) {
          const page = keys.indexOf(key);
          assert.deepEqual([pages.find(key), pages.pageOf(row), pages.offset(row)], [page, page, offset]);
          assert.equal(pages.state(row), expected[row]);
          if (page === row)
            assert.deepEqual(
              [...pages.rowsOf(page)],
              Array.from(keys.keys()).filter((row) => keys[row] === key),
            );
        }
        for (const state of states)
          assert.equal(pages.counts[state], expected.filter((other) => other === state).length, state);
      }),
    );
  });

  it("read a list back as it was written, whatever its rows are", async () => {
    const { folder, remove } = await createFolder();
    let files = 0;
    const url = fc.oneof(
      fc.webUrl({ withFragments: true, withQueryParameters: true }),
      fc.string({ unit: "binary" }),
      fc.constant(`example.org/${"ü".repeat(150_000)}`),
    );
    const object = {
      url: fc.oneof({ weight: 4, arbitrary: url }, fc.jsonValue()),
      PassWord: fc.string(),
      more: fc.oneof(fc.jsonValue(), fc.constant("ü".repeat(150_000))),
    };
    const row = fc.oneof(url, fc.record(object, { requiredKeys: ["url"] }), fc.jsonValue());
    const header = { batch: "ü b", first: 3, existing: "return" as const, maxAge: 2 };
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 8 }), async (given) => {
          const rows = [...readRows(given)];
          const path = join(folder, String(++files));
          assert.equal(await writeList(path, header, rows), given.length);
          const read: { key: string; offset: number; valid: boolean }[] = [];
          const list = await readList(path, (key, offset, valid) => read.push({ key, offset, valid }));
          const { size, ...rest } = list;
          assert.deepEqual(rest, { ...header, path, end: 3 + given.length });
          assert.equal(await readName(path), header.batch);
          assert.equal(read.length, given.length);
          for (const [index, { key, offset, valid }] of read.entries()) {
            const row = await readRow(path, offset, read[index + 1]?.offset ?? size);
            assert.deepEqual(row, JSON.parse(rows[index]?.text ?? ""));
            assert.deepEqual([key, valid], [rows[index]?.key, row.error === undefined]);
            assert.equal(keyOf(row as never), key);
            const input = given[index] as { url?: unknown } | string;
            const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
            if (valid) {
              const { PassWord: _, ...kept } = isObject ? (input as Record<string, unknown>) : {};
              assert.deepEqual(row.input, isObject ? JSON.parse(JSON.stringify(kept)) : input);
              assert.equal(key, pageKey(String(isObject ? input.url : input)));
            } else {
              assert.match(`${key}|${row.error}`, /^ .*\|.*\.$/s);
              const { password: _, PassWord: __, ...kept } = (isObject ? input : {}) as Record<string, unknown>;
              const text = JSON.stringify(isObject ? kept : input);
              if (text.length > 2000) assert.equal(row.input, `${text.slice(0, 2000)}…`);
              else assert.deepEqual(row.input, JSON.parse(text));
            }
          }
        }),
        { numRuns: 60 },
      );
    } finally {
      await remove();
    }
  });

  it("ignore a byte order mark before the first column's name, of a list and of a single row", () => {
    const given = { "\ufeffurl": "a.example", owner: "Kim" };
    for (const [row] of [[...readRows([given])], [...readRows(given)]])
      assert.deepEqual(JSON.parse(row?.text ?? ""), { input: { url: "a.example", owner: "Kim" } });
  });

  it("reject a list that has a line too many or too few, and name the line", async () => {
    const { folder, remove } = await createFolder();
    const path = join(folder, "whole");
    const other = join(folder, "damaged");
    try {
      await writeList(path, { batch: "a", first: 0, existing: "create" }, readRows(["a.example", "b.example", 5]));
      const lines = readFileSync(path, "utf8").trimEnd().split("\n");
      const damages = lines.flatMap((line, at) => [
        { lines: lines.toSpliced(at, 1), at: Math.min(at, lines.length - 2) },
        ...[line, "", "{}", "[]", line.slice(1), '{"batch":5,"first":0}'].map((extra) => ({
          lines: lines.toSpliced(at, 0, extra),
          at,
        })),
        ...['{"batch":5,"first":0}', '{"batch":"a"}', "7"].map((other) => ({
          lines: lines.toSpliced(at, 1, other),
          at,
        })),
      ]);
      damages.push({ lines: [], at: 0 }, { lines: [...lines, '{"input":"c.example"}'], at: lines.length });
      for (const { lines, at } of damages) {
        writeFileSync(other, lines.map((line) => `${line}\n`).join(""));
        await assert.rejects(
          readList(other, () => {}),
          ({ message }: Error) => {
            const [, line, what] = /, line (\d+): (.*?)\. Nothing was changed/.exec(message) ?? [];
            assert.match(String(what), /^the l.* \w+$/, message);
            assert.ok(Number(line) > at && Number(line) <= lines.length + 2, `${message} ${at}\n${lines.join("\n")}`);
            return true;
          },
        );
        if (typeof JSON.parse(lines[0]?.startsWith("{") ? lines[0] : "{}").batch !== "string")
          assert.equal(await readName(other).catch(() => undefined), undefined);
      }
    } finally {
      await remove();
    }
  });

  it("read the same rows, however a list is given", () => {
    const name = fc.stringMatching(/^([Hh]ttps?:\/\/)?[a-z]{1,9}\.example(:80)?\/[a-z]{0,9}(\?u=mailto:x)?$/);
    const blank = fc.constantFrom("", " ", "\t", "\r");
    fc.assert(
      fc.property(fc.array(name, { minLength: 1 }), fc.array(blank), (urls, blanks) => {
        const rows = [...readRows(urls)];
        for (const { text } of rows) assert.deepEqual(Object.keys(JSON.parse(text)), ["input"], text);
        for (const url of urls) assert.equal(urlOf({ url: ` ${url}\t` }), url);
        const lines = urls.flatMap((url, index) => [` ${url}${blanks[index] ?? ""}`, ...blanks]);
        assert.deepEqual([...readRows([...blanks, ...lines].join("\n"))], rows);
        assert.deepEqual([...readRows({ data: urls, url: "z.example" })], rows);
        const objects = urls.map((url) => ({ url }));
        for (const object of [...objects, { url: null, owner: "Kim" }])
          assert.deepEqual([...readRows(object)], [...readRows([object])]);
        assert.deepEqual(
          [...readRows(objects)].map(({ key }) => key),
          rows.map(({ key }) => key),
        );
      }),
    );
    const loop: unknown[] = [];
    loop.push(loop);
    assert.throws(() => [...readRows([])], { message: "The list of pages is empty: pages has no URL." });
    for (const [value, shown] of [
      [{ name: 1, link: 2 }, "an object without url; it has .*name, link.*"],
      [{}, "an object without url"],
      [7, "7"],
      [null, "null"],
    ] as const)
      assert.throws(() => [...readRows(value, "msg.pages")], {
        message: new RegExp(`^pages must be a URL, .*; msg\\.pages is ${shown}\\.$`),
      });
    for (const [row, shown] of [
      ["xhttp://a.example", '"xhttp://a.example"'],
      ["httpsx://a.example", '"httpsx://a.example"'],
      ["https:///path", '"https:///path"'],
      ["com", '"com"'],
      ["https://a b/", '"https://a b/"'],
      [loop, "it is not plain data"],
      [Buffer.from("a.example"), "it is not plain data"],
      [[1], "an array"],
      [undefined, "undefined"],
      [{ url: { a: 1 } }, "an object"],
      [{ url: null, owner: "Kim" }, "url is required; the row's url is blank"],
      [{ name: 1, link: 2 }, "The row has no url; it has .*name, link.*"],
      [{}, "The row has no url"],
      ["ftp://a.example", '"ftp://a.example"'],
      [`mailto:${"x".repeat(99)}`, `"mailto:x{52}…`],
    ] as const)
      assert.match(JSON.parse([...readRows([row])][0]?.text ?? "").error, new RegExp(`${shown}\\.$`));
  });

  it("count every row of a batch once, and measure the last 200 requests", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ state: fc.constantFrom(...states), aside: fc.constantFrom("", "lost", "held") }), {
          maxLength: 20,
        }),
        fc.array(fc.nat(20_000), { maxLength: 300, size: "max" }),
        fc.boolean(),
        fc.boolean(),
        fc.constantFrom(0, 1, 41_001),
        (rows, pauses, dropped, paused, wait) => {
          const pages = createPages();
          for (const [row, { state }] of rows.entries()) {
            pages.add(String(row), 0);
            pages.set(row, state);
          }
          const isDone = (row: number) => (outcomes as readonly string[]).includes(pages.state(row));
          const aside = (kind: string) => Array.from(rows.keys()).filter((row) => rows[row]?.aside === kind);
          const [lost, held] = [aside("lost"), aside("held")];
          const batch = {
            name: "a",
            held: () => held,
            counts: pages.counts,
            total: pages.count,
            dropped: () => dropped,
            untold: (page: number) => (isDone(page) ? [] : [page]),
          };
          let time = 1000;
          const times = [time];
          const pace = createPace(() => time);
          for (const pause of pauses) {
            time += pause;
            times.push(time);
            pace.ended();
          }
          const reason = paused && "Because.";
          const progress = progressOf(batch as unknown as Batch, lost, pace, reason, false, wait, false);
          const { perMinute, secondsLeft, secondsToWait, done, waiting, reconciling, ...rest } = progress;
          const of = (state: string) => rows.filter((row) => row.state === state).length;
          const left = of("waiting") + of("sent") + of("ended");
          assert.deepEqual(rest, {
            batch: "a",
            total: rows.length,
            ...Object.fromEntries(outcomes.map((outcome) => [outcome, of(outcome)])),
            dropped: dropped ? left : 0,
            paused: reason,
            finished: false,
          });
          const open = (some: number[]) => some.filter((row) => !isDone(row)).length;
          const searched = open(lost);
          assert.deepEqual(
            [done, waiting, reconciling],
            [rows.length - left, dropped ? 0 : left, dropped ? 0 : searched],
          );
          const last = times.slice(-200);
          const minutes = (time - (last[0] as number)) / 60_000;
          const speed = minutes > 0 ? (last.length - 1) / minutes : 0;
          assert.ok(Math.abs(perMinute - speed) <= (speed < 9.9 ? 0.0501 : 0.501), `${perMinute}, not ${speed}`);
          if (perMinute < 10) assert.ok(Math.abs(perMinute * 10 - Math.round(perMinute * 10)) < 1e-9);
          else assert.ok(Number.isInteger(perMinute));
          const waits = wait > 0 && !paused && !dropped && left > searched + open(held);
          assert.equal(secondsToWait, waits ? Math.ceil(wait / 1000) : undefined);
          if (paused) assert.equal("secondsLeft" in progress, false);
          else if (left === 0 || dropped) assert.equal(secondsLeft, 0);
          else if (left === searched + open(held) || speed === 0) assert.equal("secondsLeft" in progress, false);
          else assert.equal(secondsLeft, Math.round((left * 60) / speed));
        },
      ),
    );
  });

  it("have at most so many requests in flight, and continue a job before a new one", async () => {
    const step = fc.record({ do: fc.constantFrom("take", "leave", "regain", "end"), job: fc.nat(9) });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(step, { maxLength: 60, size: "max" }),
        async (count, steps) => {
          let freed = 0;
          const slots = createSlots(count, () => freed++);
          type Job = { hold: NonNullable<ReturnType<typeof slots.take>>; state: "flies" | "aside" | "waits" };
          const jobs: Job[] = [];
          const queue: Job[] = [];
          const flying = () => jobs.filter(({ state }) => state === "flies").length;
          /** Those that wait get the slots that are free, in order. */
          const expect = () => {
            for (let next = queue[0]; next && flying() < count; next = queue[0]) {
              next.state = "flies";
              queue.shift();
            }
          };
          let left = 0;
          const returned = new Set<Job>();
          for (const { do: what, job: nth } of steps) {
            const job = jobs[nth % jobs.length];
            if (what === "take") {
              const hold = slots.take();
              assert.equal(hold !== undefined, flying() < count);
              if (hold) jobs.push({ hold, state: "flies" });
            } else if (!job) continue;
            else if (what === "leave") {
              if (job.state === "waits") continue;
              if (job.state === "flies") left++;
              job.hold.leave();
              job.state = "aside";
            } else if (what === "regain") {
              if (job.state === "waits") continue;
              if (job.state === "aside") {
                job.state = "waits";
                queue.push(job);
                returned.delete(job);
                void job.hold.regain().then(() => returned.add(job));
              } else await job.hold.regain();
            } else {
              if (job.state === "waits") queue.splice(queue.indexOf(job), 1);
              jobs.splice(jobs.indexOf(job), 1);
              job.hold.end();
            }
            expect();
            await Promise.resolve();
            await Promise.resolve();
            assert.equal(slots.aside(), jobs.length - flying());
            assert.equal(freed, left);
            for (const job of queue) assert.ok(!returned.has(job));
          }
          for (const job of jobs) if (!queue.includes(job)) job.hold.end();
          for (const job of queue) {
            await new Promise(setImmediate);
            assert.ok(returned.has(job), "a job waits for ever");
            job.hold.end();
          }
        },
      ),
    );
  });

  it("note each row that was reported once, in order, and not before it was delivered", async () => {
    async function play(steps: string[], closes: boolean): Promise<void> {
      const noted: number[] = [];
      const told: number[] = [];
      let flushes = false;
      const delivery = createDelivery((row) => {
        noted.push(row);
        const age = performance.now() - Number(told[row]);
        assert.ok(flushes || age > 49, `${steps}: row ${row} was noted after ${age} ms`);
      });
      for (const step of steps) {
        if (step === "add") told.push(performance.now());
        if (step === "add") delivery.add(told.length - 1);
        else if (step === "flush") {
          flushes = true;
          delivery.flush();
          flushes = false;
          assert.equal(noted.length, told.length);
        } else if (step === "wait") while (noted.length < told.length) await sleep(5);
        else await sleep(20);
      }
      const settled = delivery.settled();
      if (closes) delivery.close();
      const atOnce = noted.length;
      await settled;
      if (closes) await sleep(120);
      assert.deepEqual(noted, Array.from(closes ? noted.keys() : told.keys()), String(steps));
      if (closes) assert.equal(noted.length, atOnce, `${steps}: noted after the end`);
    }
    const steps = fc.array(fc.constantFrom("add", "add", "wait", "pause", "flush"), { maxLength: 8, size: "max" });
    const samples = fc.sample(fc.tuple(steps, fc.boolean()), 100);
    await Promise.all(samples.map((sample) => play(...sample)));
    await play(["add", "pause", "pause", "add", "pause"], true);
  });

  it("measure time that only rises, and run something once, later, unless it is canceled", async () => {
    const began = clock.now();
    const runs: string[] = [];
    clock.later(20, () => runs.push("first"));
    clock.later(20, () => runs.push("second"))();
    await sleep(80);
    assert.deepEqual(runs, ["first"]);
    assert.ok(clock.now() - began >= 79);
  });

  it("keep the jobs of each node in a folder of its own, and move and remove it once", async () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (node) => {
        const path = folderOf("/jobs", node);
        assert.equal(dirname(path), "/jobs");
        if (/^[\w-]+$/.test(node)) assert.equal(path, `/jobs/${node}`);
      }),
    );
    const { folder, remove } = await createFolder();
    const [from, to, file] = ["from", "to", "file"].map((name) => join(folder, name)) as [string, string, string];
    try {
      mkdirSync(from);
      writeFileSync(join(from, "log"), "");
      writeFileSync(file, "");
      for (let times = 0; times < 2; times++) {
        await moveFolder(from, to);
        assert.ok(existsSync(join(to, "log")));
      }
      await assert.rejects(moveFolder(to, join(file, "to")), {
        kind: "disk",
        code: "SEO_INPUT",
        message: `${to} could not be read or written: it is not a folder (ENOTDIR).`,
      });
      const defect = new Error("A defect.");
      assert.equal(fromDisk(defect, folder), defect);
      const read = async (path: string) => void (await readFile(path));
      const make = async (path: string) => void (await mkdir(path));
      for (const [path, touch, reason] of [
        [folder, read, "error (EISDIR)"],
        [from, read, "it does not exist (ENOENT)"],
        [file, make, "something else has this name (EEXIST)"],
      ] as const)
        assert.equal(
          (fromDisk(await touch(path).catch((error: unknown) => error), path) as Error).message,
          `${path} could not be read or written: ${reason}.`,
        );
      for (let times = 0; times < 2; times++) {
        await removeFolder(to);
        assert.deepEqual(readdirSync(folder), ["file"]);
      }
    } finally {
      await remove();
    }
  });

  it("say that a node has no jobs only if its folder does not exist", async () => {
    const { folder, remove } = await createFolder();
    const file = join(folder, "file");
    writeFileSync(file, "");
    assert.deepEqual([mayHaveJobs(folder, "a:b"), mayHaveJobs(file, "a:b")], [false, true]);
    mkdirSync(folderOf(folder, "a:b"));
    assert.equal(mayHaveJobs(folder, "a:b"), true);
    await remove();
  });

  it("name a folder that cannot be removed", async () => {
    const { folder, remove } = await createFolder();
    const path = join(folder, "busy");
    mkdirSync(path);
    const { rm } = fsp;
    fsp.rm = () => Promise.reject(Object.assign(new Error("EBUSY"), { code: "EBUSY", syscall: "rm" }));
    syncBuiltinESMExports();
    try {
      await assert.rejects(removeFolder(path), {
        kind: "disk",
        message: `${path} could not be read or written: error (EBUSY).`,
      });
    } finally {
      fsp.rm = rm;
      syncBuiltinESMExports();
      await remove();
    }
  });

  it("write whole lines to a log, in order, and continue behind the last one after an error", async () => {
    const { folder, remove } = await createFolder();
    const path = join(folder, "log");
    const limit = (size: number | string) => execFileSync("prlimit", [`--pid=${process.pid}`, `--fsize=${size}:`]);
    const group = fc.record({
      texts: fc.array(fc.string({ unit: "binary" }), { minLength: 1, maxLength: 4 }),
      isFull: fc.boolean(),
      synced: fc.boolean(),
    });
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(group, { maxLength: 5 }), fc.string(), async (groups, torn) => {
          let whole = '{"text":"ü"}\n';
          writeFileSync(path, whole + torn);
          const log = await openLog(path, Buffer.byteLength(whole));
          for (const { texts, isFull, synced } of groups) {
            const next = whole + texts.map((text) => `${JSON.stringify({ text })}\n`).join("");
            if (isFull) limit(Buffer.byteLength(next) - 1);
            const results = await Promise.allSettled(texts.map((text) => log.append({ text }, synced)));
            if (isFull) limit("unlimited");
            for (const result of results)
              if (result.status === "fulfilled") assert.ok(!isFull, "a record was lost");
              else assert.match(String(result.reason), /log could not be .*: the file is too large \(EFBIG\)\.$/);
            if (!isFull) whole = next;
            const text = readFileSync(path, "utf8");
            if (isFull) assert.ok(text.startsWith(whole));
            else assert.equal(text, whole);
          }
          const last = log.append({});
          await log.close();
          assert.equal(readFileSync(path, "utf8"), `${whole}{}\n`);
          await last;
          await assert.rejects(log.append({}), cancelled);
        }),
        { numRuns: 10 },
      );
    } finally {
      limit("unlimited");
      await remove();
    }
  });

  it("wait while nothing can be saved, report that once, and continue after a probe that succeeds", async () => {
    const BETWEEN = 20_000;
    const PASS = 15_000;
    const step = fc.constantFrom("full", "free", "keep", "pass", "pass", "retry", "saved");
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40, size: "max" }),
        fc.constantFrom("disk" as const, "server" as const),
        fc.boolean(),
        async (steps, kind, closesWhileItProbes) => {
          const clock = createManualClock();
          const trouble = new Trouble(kind, "It cannot be written.");
          const told: unknown[] = [];
          const expected: unknown[] = [];
          let isFull = false;
          let isReported = false;
          let probeAt = Number.POSITIVE_INFINITY;
          const save = async () => {
            if (isFull) throw trouble;
          };
          const disk = createDisk(
            clock,
            {
              probe() {
                told.push("probe");
                return save();
              },
              between: BETWEEN,
            },
            { failed: (error) => told.push(error), changed: () => told.push(disk.trouble() ? "stalled" : "recovered") },
          );
          /** What is saved or waits, and how it should have ended by now. */
          const works: { ended?: unknown; expected?: unknown }[] = [];
          function begin(work: Promise<unknown>): void {
            const entry: (typeof works)[number] = {};
            works.push(entry);
            work.then(
              () => {
                entry.ended = "saved";
              },
              (error) => {
                entry.ended = error;
              },
            );
            if (!isFull) entry.expected = "saved";
            else if (probeAt === Number.POSITIVE_INFINITY) {
              probeAt = clock.now() + BETWEEN;
              if (!isReported) expected.push(trouble);
              expected.push("stalled");
              isReported = true;
            }
          }
          function probe(): void {
            expected.push("probe");
            probeAt = isFull ? clock.now() + BETWEEN : Number.POSITIVE_INFINITY;
            if (!isFull) expected.push("recovered");
            for (const work of works) if (!isFull) work.expected ??= "saved";
          }
          for (const step of steps) {
            if (step === "full") isFull = true;
            else if (step === "free") isFull = false;
            else if (step === "keep") begin(disk.keep(save));
            else if (step === "saved") {
              disk.saved();
              isReported = false;
            } else if (step === "retry") {
              void disk.retry();
              void disk.retry();
              if (probeAt < Number.POSITIVE_INFINITY) probe();
            } else {
              clock.pass(PASS);
              if (probeAt <= clock.now()) probe();
            }
            await new Promise(setImmediate);
            assert.deepEqual(told, expected, String(steps));
            assert.equal(disk.trouble(), probeAt === Number.POSITIVE_INFINITY ? undefined : trouble);
            for (const work of works) assert.equal(work.ended, work.expected, String(steps));
          }
          isFull = true;
          if (closesWhileItProbes) void disk.retry();
          disk.close();
          await new Promise(setImmediate);
          for (const work of works) assert.equal(work.ended, work.expected ?? cancelled);
          await assert.rejects(disk.keep(save), cancelled);
          told.length = 0;
          clock.pass(2 * BETWEEN);
          await new Promise(setImmediate);
          assert.deepEqual(told, []);
        },
      ),
    );
    const disk = createDisk(createManualClock(), { probe: assert.fail }, { failed: assert.fail, changed: assert.fail });
    const defect = new Error("A defect.");
    await assert.rejects(
      disk.keep(() => Promise.reject(defect)),
      defect,
    );
    await disk.retry();
  });

  it("plan what a page's newest report requires, and read no more reports than that", async () => {
    const now = Date.now();
    const report = fc.record({ page: fc.nat(40), age: fc.nat(8) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(report, { maxLength: 350, size: "max" }),
        fc.constantFrom<Existing>("regenerate", "return"),
        fc.option(fc.nat(8), { nil: undefined }),
        fc.boolean(),
        async (given, existing, maxAge, unsorted) => {
          const reports = given.map(({ page, age }, index) => {
            const date = new Date(now - (age + 0.5) * DAY).toISOString();
            return { id: index + 1, url: `example.org/${page}`, created_at: date, generated_at: date };
          });
          const service = createFake({ unsorted }, reports as never);
          const wanted = 4;
          const pages = Array.from({ length: wanted }, (_, page) => key(`example.org/${page}`));
          const fresh = new Map<number, unknown>();
          const plans = new Map<number, Plan>();
          let planned = 0;
          const batch = {
            find: (_: unknown, key: string) => {
              const page = pages.indexOf(key);
              return page < 0 || fresh.has(page) ? undefined : page;
            },
            plan: (page: number, plan: Plan) => plans.set(page, plan),
            planned: async () => planned++,
          };
          const list = { existing, maxAge, first: 0, end: wanted };
          const requests = service.connect();
          await makePlan(batch as never, { list, pages: wanted }, requests, async (page, { id }) => {
            assert.ok(!fresh.has(page));
            fresh.set(page, id);
          });
          const read = unsorted
            ? reports
            : reports.toSorted((a, b) => b.generated_at.localeCompare(a.generated_at) || b.id - a.id);
          const datesOf = (count: number) => read.slice(0, count).map((one) => Date.parse(one.generated_at));
          const isMixed = (count: number) => datesOf(count).some((date, index, all) => date > Number(all[index - 1]));
          /** Nothing that follows the first reports can change the plan. */
          const suffices = (count: number) => {
            if (isMixed(count)) return false;
            const urls = new Set(read.slice(0, count).map(({ url }) => url));
            const isOld =
              existing === "return" && maxAge !== undefined && Number(datesOf(count).at(-1)) < now - maxAge * DAY;
            return isOld || pages.every((page) => urls.has(page));
          };
          let count = 100;
          while (count < read.length && !suffices(count)) count += 100;
          assert.equal(service.listed(), count / 100);
          assert.equal(planned, 1);
          for (const page of pages.keys()) {
            const own = reports.filter(({ url }) => url === pages[page]);
            const newest = own.reduce<(typeof own)[number] | undefined>(
              (best, one) => (!best || isNewer(one, best) ? one : best),
              undefined,
            );
            const decision = needOf(existing, maxAge, newest, now);
            assert.equal(fresh.has(page), decision === "fresh");
            if ((!unsorted || isMixed(100)) && newest && decision === "fresh") assert.equal(fresh.get(page), newest.id);
            const plan = { report: String(newest?.id), generatedAt: newest?.generated_at };
            if (decision === "regenerate") assert.deepEqual(plans.get(page), plan);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it("send what a page needs, and create its report only if the one to be regenerated is missing", async () => {
    const privacy = fc.constantFrom(undefined, "", "1");
    const outcome = fc.constantFrom(
      "report",
      "no id",
      "gone",
      "SEO_NOT_FOUND",
      "SEO_SERVER",
      "uncertain",
      "defect",
      "full",
    );
    await fc.assert(
      fc.asyncProperty(fc.boolean(), privacy, outcome, fc.nat(3), async (creates, privacy, outcome, attempts) => {
        const calls: unknown[] = [];
        const error = new SeoError(outcome.startsWith("SEO_") ? (outcome as "SEO_SERVER") : "SEO_NETWORK", "No.", {
          attempts,
          ...(outcome === "uncertain" && { uncertain: true }),
          ...(outcome === "gone" && { missing: true }),
        });
        const defect = outcome === "full" ? new Trouble("disk", "The disk is full.") : new Error("A defect.");
        const requests = {
          async send(type: string, input: object) {
            calls.push([type, input]);
            if (outcome === "defect" || outcome === "full") throw defect;
            if (
              outcome === "report" ||
              outcome === "no id" ||
              (outcome === "gone" && type.endsWith("-store") && !creates)
            )
              return { body: { data: outcome === "no id" ? {} : { id: 5 } }, attempts };
            throw error;
          },
        };
        const request = creates ? { sent: "create" as const } : { sent: "regenerate" as const, report: "7" };
        const claim = {
          page: 0,
          url: "a.example",
          settings: { existing: "create" as const, privacy },
          request,
          repeated: false,
        };
        const hooks = { permit: async () => {}, sending: async () => {}, lost() {} };
        const sent = sendRequest(requests as never, claim, hooks);
        const shown = () => showReport(requests as never, { ended: "created", report: "7", attempts: 1 });
        if (outcome === "defect" || outcome === "full") {
          await assert.rejects(sent, defect);
          await assert.rejects(shown(), defect);
          return;
        }
        const more = privacy ? { privacy } : {};
        const store = ["seo-report-store", { url: "a.example", ...more }];
        const update = ["seo-report-update", { reportId: "7", update: "1", ...more }];
        const { ended, record } = await sent;
        const again = !creates && outcome === "gone";
        assert.deepEqual(calls, again ? [update, store] : [creates ? store : update]);
        if (outcome === "report" || outcome === "no id" || again) {
          const report = outcome === "no id" ? request.report : "5";
          assert.deepEqual(ended, {
            ended: creates || again ? "created" : "regenerated",
            report,
            attempts,
            reconciled: undefined,
          });
          assert.deepEqual(record, outcome === "no id" ? {} : { id: 5 });
        } else {
          assert.deepEqual(
            [ended.ended, ended.attempts, record],
            [outcome === "uncertain" ? "uncertain" : "failed", attempts, null],
          );
          assert.deepEqual([ended.error?.code, ended.error?.message], [error.code, "No."]);
        }
        calls.length = 0;
        if (outcome === "report") assert.deepEqual(await shown(), { id: 5 });
        else if (outcome === "gone") assert.equal(await shown(), null);
        else if (outcome !== "no id") await assert.rejects(shown(), error);
        if (outcome !== "no id") assert.deepEqual(calls, [["seo-report-show", { reportId: "7" }]]);
        calls.length = 0;
        assert.equal(await showReport(requests as never, { ...ended, error: { code: "", message: "" } }), null);
        assert.equal(await showReport(requests as never, { ended: "created", attempts: 1 }), null);
        assert.deepEqual(calls, []);
      }),
    );
  });

  it("keep a report whose ID is neither text nor a number, without the ID", async () => {
    const claim = { page: 0, url: "a.example", settings: { existing: "create" as const }, repeated: false };
    const hooks = { permit: async () => {}, sending: async () => {}, lost() {} };
    // The last one cannot become a text.
    for (const id of [null, {}, [1], { toString: 1 }])
      for (const request of [{ sent: "create" }, { sent: "regenerate", report: "7" }] as const) {
        const requests = { send: async () => ({ body: { data: { id } }, attempts: 1 }) };
        const { ended, record } = await sendRequest(requests as never, { ...claim, request }, hooks);
        assert.deepEqual(record, { id });
        assert.deepEqual([ended.ended, ended.report, ended.error], [`${request.sent}d`, request.report, undefined]);
      }
  });
});
