import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs, {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import fsp, { type FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import fc from "fast-check";
import type { Batch, Store } from "../../../src/audit/batch.js";
import { type Ended, type Entry, FORMAT } from "../../../src/audit/entries.js";
import { openFiles as open, removeFiles } from "../../../src/audit/files.js";
import { openFile } from "../../../src/audit/journal.js";
import { readRows } from "../../../src/audit/rows.js";
import { apply, State, total } from "../../../src/audit/state.js";
import { fromDisk, type Trouble } from "../../../src/audit/trouble.js";
import { cancelled, SeoError } from "../../../src/errors.js";
import { openFolder } from "../../support/opened.js";
import { batchesIn, createBench, createFake, urls, vary } from "./fake.js";

/** The store's methods can be used on their own. */
const openFiles: typeof open = async (...parameters) => vary(await open(...parameters), {});

const settings = { existing: "create" as const };
const never = () => assert.fail("The folder was taken over.");
const listOf = (pages: unknown) => ({ settings, rows: readRows(pages) });
const created: Ended = { outcome: "created", report: "1", attempts: 1 };
const failed: Ended = { outcome: "failed", attempts: 1, error: { code: "SEO_REJECTED", message: "No." } };

/** A journal with each type of entry. */
const entries: Entry[] = [
  { type: "batch", format: FORMAT, name: "default" },
  { type: "rows", from: 0, rows: [...readRows(urls(3))] },
  { type: "list", settings: { existing: "regenerate" }, rows: 3, pages: [] },
  { type: "plan", pages: [{ page: 0, list: 0, report: "7" }] },
  { type: "planned", lists: [0] },
  { type: "sent", page: 0, action: "regenerate", report: "7" },
  { type: "waits", page: 0 },
  { type: "ended", page: 1, ...failed },
  { type: "delivered", page: 1 },
  { type: "retry" },
  { type: "pause" },
  { type: "rows", from: 0, rows: [...readRows(urls(2, 4))] },
  { type: "list", settings, rows: 2, pages: [2] },
  { type: "resume" },
  { type: "ended", page: 2, ...created },
];
const linesOf = (some: readonly Entry[]) => some.map((entry) => `${JSON.stringify(entry)}\n`).join("");

function stateOf(text: string) {
  const state = new State();
  const take = (entry: Entry) => apply(state, entry);
  for (const line of text.split("\n").slice(0, -1)) take(JSON.parse(line));
  return { ...state, draft: [] };
}

const withoutDraft = (batch: Batch | undefined) => batch && { ...batch.state, draft: [] };

/** The files below a folder that this process has open; only Linux says so. */
function openBelow(folder: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc/self/fd").flatMap((number) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${number}`);
      return path.startsWith(folder) ? path : [];
    } catch {
      // The handle of the list of all is closed.
      return [];
    }
  });
}

/** Follows what `work` does. Returns the folders whose entries a power cut would undo, because they were not synced. */
async function unsyncedBy(work: () => Promise<unknown>): Promise<string[]> {
  const unsynced = new Set<string>();
  const handle = await fsp.open(process.execPath);
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const { rm, mkdir, open } = fsp;
  const { sync } = prototype;
  fsp.rm = async (path, options) => {
    await rm(path, options);
    unsynced.add(dirname(String(path)));
  };
  fsp.mkdir = (async (path: string, options: object) => {
    const made = await mkdir(path, options);
    for (const one of [path, made ?? path]) unsynced.add(dirname(one));
    return made;
  }) as typeof mkdir;
  fsp.open = async (path, flags, mode) => {
    if (String(flags).startsWith("wx")) unsynced.add(dirname(String(path)));
    return open(path, flags, mode);
  };
  prototype.sync = async function () {
    const { ino } = fs.fstatSync(this.fd);
    await sync.call(this);
    for (const folder of unsynced)
      if (statSync(folder, { throwIfNoEntry: false })?.ino === ino) unsynced.delete(folder);
  };
  syncBuiltinESMExports();
  try {
    await work();
    return [...unsynced];
  } finally {
    Object.assign(fsp, { rm, mkdir, open });
    prototype.sync = sync;
    syncBuiltinESMExports();
  }
}

describe("the files of an audit", () => {
  let folder: string;
  let own: string;
  let remove: () => void;
  let store: Awaited<ReturnType<typeof openFiles>> | undefined;

  beforeEach(() => {
    ({ path: folder, close: remove } = openFolder());
    own = join(folder, "node");
  });
  afterEach("no file is left open", async () => {
    await closeStore();
    const open = openBelow(folder);
    remove();
    assert.deepEqual(open, []);
  });

  async function closeStore(): Promise<void> {
    await store?.close();
    store = undefined;
  }
  /** Opens the folder, as the next process does. */
  async function open(): Promise<Store> {
    await closeStore();
    store = await openFiles(folder, "node", never);
    return store;
  }
  function put(name: string, text: string, node = "node"): string {
    const path = join(folder, node, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }
  const read = (name: string) => readFileSync(join(own, name), "utf8");
  const names = () => batchesIn(own).sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  /** How many pages the batches have for the next process. */
  const totals = async () => (await open()).batches.map(({ state }) => total(state));
  const namesOf = (batches: readonly Batch[]) => batches.map(({ state }) => state.name);

  it("continue before a last entry that was not written completely, at every byte", async () => {
    const length = Buffer.byteLength(linesOf(entries));
    for (let first = 0; first <= length; first += 250) {
      const texts = new Map<string, string>();
      for (let size = first; size < first + 250 && size <= length; size++) {
        // Each has a name of its own, of the same length.
        const text = linesOf([{ type: "batch", format: FORMAT, name: String(1e6 + size) }, ...entries.slice(1)]);
        texts.set(`${size + 1}-x.jsonl`, Buffer.from(text).subarray(0, size).toString("latin1"));
      }
      for (const [name, text] of texts) put(name, text);
      const { batches, broken } = await open();
      assert.deepEqual(broken, []);
      for (const [name, text] of texts) {
        const whole = text.slice(0, text.lastIndexOf("\n") + 1);
        const state = stateOf(whole);
        const batch = batches.find((one) => state.lists.length > 0 && one.state.name === state.name);
        // A list that is not complete was not sent.
        assert.deepEqual(withoutDraft(batch), state.lists.length > 0 ? state : undefined, `${name} ${text}`);
        assert.equal(names().includes(name), batch !== undefined);
        if (!batch) continue;
        await batch.write({ type: "pause" });
        assert.equal(read(name), `${whole}{"type":"pause"}\n`);
        await batch.add(listOf(urls(2, 3)));
        assert.deepEqual(withoutDraft(batch), stateOf(read(name)));
        assert.equal(total(batch.state), total(state) > 3 ? 5 : 4);
      }
      // Its lock is not refreshed any more once it is closed.
      await closeStore();
      rmSync(own, { recursive: true });
    }
  });

  it("are requested to the end, wherever the process died", async () => {
    async function check(index: number): Promise<void> {
      put("1-default.jsonl", linesOf(entries.slice(0, index)) + (index % 2 ? "{" : ""), String(index));
      const { audit, finished, add } = createBench(folder, createFake(), { node: String(index) });
      await audit.resume();
      await audit.retry();
      await add(urls(6));
      const { total, created, regenerated } = await finished();
      assert.deepEqual([total, created + regenerated], [6, 6]);
      await audit.close();
      assert.deepEqual(batchesIn(join(folder, String(index))), []);
    }
    await Promise.all(Array.from(entries.keys(), check));
  });

  it("have what was sent looked for before anything is reported", async () => {
    const rows = [...readRows([...Array.from({ length: 200 }, (_, row) => `no page: ${row}`), ...urls(2)])];
    const intent = { watermark: { of: "id" as const, rank: 0, ids: [] } };
    const journal: Entry[] = [
      { type: "batch", format: FORMAT, name: "default" },
      { type: "rows", from: 0, rows },
      { type: "list", settings, rows: rows.length, pages: [] },
      ...[200, 201].map((page): Entry => ({ type: "sent", page, action: "create", intent })),
    ];
    put("1-default.jsonl", linesOf(journal));
    const order: string[] = [];
    const service = createFake({ look: () => void order.push("look") });
    const { audit, finished } = createBench(folder, service, { result: () => order.push("result") });
    assert.equal((await finished()).done, 202);
    assert.deepEqual(order.slice(0, 3), ["look", "look", "result"]);
    await audit.close();
  });

  it("name file and line of damage, and do not change anything until msg.reset", async () => {
    const more: Entry[] = [{ type: "finished" }, { type: "reset" }];
    const damages = [...entries, ...more].flatMap((entry, index) => {
      const line = JSON.stringify(entry);
      const texts = [line.slice(1), line.slice(0, -1), "", "{}", line.replace('"type":"', '"type":"x')];
      if ("page" in entry) texts.push(JSON.stringify({ ...entry, page: 99 }));
      if (entry.type === "planned") texts.push(JSON.stringify({ ...entry, lists: [9] }));
      if ("pages" in entry) texts.push(JSON.stringify({ ...entry, pages: [99] }));
      if ("outcome" in entry) texts.push(JSON.stringify({ ...entry, outcome: "strange" }));
      if ("rows" in entry) texts.push(JSON.stringify({ ...entry, rows: 9 }));
      return texts.map((text) => ({ index, text, type: entry.type }));
    });
    assert.equal(new Set(damages.map(({ type }) => type)).size, 14);
    async function check({ index, text }: (typeof damages)[number], copy: number): Promise<void> {
      const lines = linesOf([...entries, ...more]).split("\n");
      lines[index] = text;
      const path = put("4-default.jsonl", lines.join("\n"), String(copy));
      const { audit, errors, add } = createBench(folder, createFake(), { node: String(copy) });
      await assert.rejects(add(urls(3)), (error: Trouble) => error.kind === "damaged");
      assert.ok(errors[0]?.message.startsWith(`${path}, line ${index + 1}: `), errors[0]?.message);
      await add(urls(3), { batch: "another" });
      await audit.pause();
      assert.equal(readFileSync(path, "utf8"), lines.join("\n"));
      assert.equal(await audit.reset("default"), 1);
      assert.equal(await add(urls(3)), 3);
      await audit.close();
    }
    await Promise.all(damages.map(check));
  });

  it("say which version they need", async () => {
    const path = put("4-default.jsonl", linesOf([{ type: "batch", format: FORMAT + 1, name: "default" }]));
    const { audit, errors } = createBench(folder, createFake());
    const sentence =
      "another version of this package wrote it. Nothing was changed. Use that version, or use msg.reset.";
    const message = `${path}, line 1: ${sentence}`;
    await assert.rejects(audit.retry("default"), { message });
    assert.equal(errors[0]?.message, message);
    await audit.close();
  });

  it("have whole entries, in order, and continue behind the last one after an error", async () => {
    const path = join(folder, "journal");
    const limit = (size: number | string) => execFileSync("prlimit", [`--pid=${process.pid}`, `--fsize=${size}:`]);
    const group = fc.record({
      names: fc.array(fc.string({ unit: "binary" }), { minLength: 1, maxLength: 4 }),
      isFull: fc.boolean(),
      synced: fc.boolean(),
    });
    const torn = fc.string().map((text) => text.replaceAll("\n", ""));
    const entryOf = (name: string): Entry => ({ type: "batch", format: FORMAT, name });
    try {
      const property = fc.asyncProperty(fc.array(group, { maxLength: 5 }), torn, async (groups, torn) => {
        const before = entryOf("ü".repeat(200_000));
        let whole = linesOf([before]);
        writeFileSync(path, whole + torn);
        const taken: Entry[] = [];
        const file = await openFile(path, false, (entry) => taken.push(entry));
        assert.deepEqual(taken, [before]);
        for (const { names, isFull, synced } of groups) {
          const next = whole + linesOf(names.map(entryOf));
          if (isFull) limit(Buffer.byteLength(next) - 1);
          const results = await Promise.allSettled(names.map((name) => file.append(entryOf(name), synced)));
          if (isFull) limit("unlimited");
          for (const result of results)
            if (result.status === "fulfilled") assert.ok(!isFull, "an entry was lost");
            else assert.match(String(result.reason), /journal could not be .*: the file is too large \(EFBIG\)\.$/);
          if (!isFull) whole = next;
          const text = readFileSync(path, "utf8");
          if (isFull) assert.ok(text.startsWith(whole));
          else assert.equal(text, whole);
        }
        const last = file.append({ type: "pause" });
        await file.close();
        assert.equal(readFileSync(path, "utf8"), whole + linesOf([{ type: "pause" }]));
        await last;
        await assert.rejects(file.append({ type: "pause" }), cancelled);
      });
      await fc.assert(property, { numRuns: 10 });
    } finally {
      limit("unlimited");
    }
  });

  it("are written no more once another process has taken the folder over", async () => {
    const lost: string[] = [];
    const { create, close } = await openFiles(folder, "node", ({ message }) => lost.push(message));
    const batch = await create("default", listOf(urls(1)));
    const [name = ""] = names();
    const before = read(name);
    for (const file of readdirSync(own)) if (file.startsWith("lock-")) rmSync(join(own, file));
    await assert.rejects(batch.write({ type: "pause" }));
    const message = `The folder ${own} was removed, or taken over by another process.`;
    assert.deepEqual([lost, read(name)], [[message], before]);
    await close();
  });

  it("are finished although another program keeps them from being removed", async () => {
    const { rm } = fsp;
    fsp.rm = async (path, options) => {
      if (String(path).endsWith(".jsonl")) throw Object.assign(new Error(), { code: "EBUSY", syscall: "unlink" });
      return rm(path, options);
    };
    syncBuiltinESMExports();
    try {
      const { add, finished, errors, audit } = createBench(folder, createFake());
      await add(urls(2));
      await finished();
      await audit.close();
      assert.deepEqual([errors, names().length], [[], 1]);
    } finally {
      fsp.rm = rm;
      syncBuiltinESMExports();
    }
    const { audit, progress } = createBench(folder, createFake());
    assert.deepEqual([await audit.progress(), await audit.reset(), progress, names()], [[], 1, [], []]);
    await audit.close();
  });

  it("are private, hold neither passwords nor responses, and are removed once all pages have succeeded", async () => {
    const long = "x".repeat(3_000_000);
    const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, column) => [`column ${column}`, "y"]));
    const passwords = ["password", " password", "Password ", "\uFEFFpassword", "PASSWORD\t"];
    const rows = [
      ...passwords.map((name, index) => ({ url: `example.org/page/${index}`, [name]: "hunter2" })),
      ...passwords.map((name) => ({ [name]: "hunter2" })),
      ...[long, { url: long }, { url: "", long }, { link: "", [long]: 1 }, [long], { link: "", more: { long } }, wide],
    ];
    const secret = new SeoError("SEO_REJECTED", "No.", { attempts: 1, body: "hunter2" });
    let isGood = false;
    const service = createFake({ fate: () => (isGood ? "answered" : secret) });
    const bench = createBench(folder, service);
    await bench.add(rows);
    await bench.finished();
    const [name = ""] = names();
    const text = read(name);
    assert.deepEqual([statSync(own).mode & 0o777, statSync(join(own, name)).mode & 0o777], [0o700, 0o600]);
    assert.doesNotMatch(text, /hunter2|x{300}|column 300/i);
    assert.ok(text.length < 20_000, `${text.length} bytes`);
    for (const { input } of bench.results) assert.deepEqual(JSON.parse(JSON.stringify(input)), input);
    assert.equal(bench.results.length, rows.length);
    isGood = true;
    await bench.add(urls(2), { batch: "b" });
    await bench.finished("b");
    await bench.audit.close();
    assert.deepEqual(batchesIn(own), [name]);
  });

  it("are read in the order of their batches, whatever else is in the folder", async () => {
    const expected = Array.from({ length: 12 }, (_, index) => `batch ${index + 1}`);
    const first = await open();
    await Promise.all(expected.map((name) => first.create(name, listOf(urls(1)))));
    const others = ["1st", "notes.jsonl", "13-x.jsonl.new", "3-x", "x-1.jsonl"];
    for (const name of others) put(name, "x");
    const second = await open();
    assert.deepEqual(namesOf(second.batches), expected);
    await second.create("next", listOf(urls(1)));
    const left = batchesIn(own).filter((name) => !/^\d+-batch-\d+\.jsonl$/.test(name));
    assert.deepEqual(left, ["13-next.jsonl", ...others].sort());
  });

  it("have the names of their batches, as far as every system can have them", async () => {
    const { create } = await open();
    for (const name of ["Spring / Summer 2027", "../..", "", "-ä, b?", "x".repeat(50)])
      await create(name, listOf(urls(1)));
    const files = ["1-spring-summer-2027.jsonl", "2-.jsonl", "3-.jsonl", "4-b.jsonl", `5-${"x".repeat(40)}.jsonl`];
    assert.deepEqual(names(), files);
    // If the name cannot be read, there is no other one.
    put("10-2027-spring.jsonl", `x\n${linesOf(entries.slice(1))}`);
    put("11-b.jsonl", `${linesOf([{ type: "batch", format: FORMAT, name: "Über" }])}x\n`);
    const broken = (await open()).broken.map(({ name }) => name);
    assert.deepEqual(broken, ["2027-spring", "Über"]);
  });

  it("are not opened while one of them cannot be read, also to be retried", async () => {
    const first = await open();
    const batch = await first.create("a", listOf(urls(1)));
    const path = join(own, "1-a.jsonl");
    async function unreadable(work: () => Promise<unknown>): Promise<void> {
      renameSync(path, `${path}.aside`);
      mkdirSync(path);
      await assert.rejects(work(), { kind: "disk", message: `${path} could not be read or written: error (EISDIR).` });
      rmdirSync(path);
      renameSync(`${path}.aside`, path);
    }
    await unreadable(open);
    await assert.rejects(batch.write({ type: "pause" }), cancelled);
    const [again] = (await open()).batches;
    await again?.write({ type: "ended", page: 0, ...failed });
    again?.delivered(0);
    await again?.finish();
    const reopen = async () => {
      for await (const { state } of store?.reopen() ?? []) return state.name;
      return undefined;
    };
    await unreadable(reopen);
    assert.equal(await reopen(), "a");
  });

  it("are those of the newest batch of a name, and of one before that was reset amid a request", async () => {
    let { create } = await open();
    const old = await create("a", listOf(urls(1)));
    await old.write({ type: "sent", page: 0, action: "create" });
    await old.write({ type: "reset" });
    await create("a", listOf(urls(2)));
    assert.deepEqual(await totals(), [1, 2]);
    ({ create } = store as Store);
    await create("a", listOf(urls(3)));
    await create("b", listOf(urls(4)));
    assert.deepEqual(await totals(), [1, 3, 4]);
    for (const name of ["5-f.jsonl", "6-f.jsonl"]) put(name, linesOf([...entries, { type: "finished" }]));
    await open();
    assert.deepEqual(names(), ["1-a.jsonl", "3-a.jsonl", "4-b.jsonl", "6-f.jsonl"]);
  });

  it("leave the batch as it was if a list fails, or has no new page", async () => {
    const { create } = await open();
    function* rows() {
      yield* readRows(urls(1500));
      throw cancelled;
    }
    await assert.rejects(create("b", { settings, rows: rows() }), cancelled);
    assert.deepEqual(names(), []);
    const batch = await create("a", listOf(urls(2)));
    assert.equal(await batch.add(listOf(urls(2))), 0);
    assert.equal(read("2-a.jsonl").split("\n").length, 4);
    await assert.rejects(batch.add({ settings, rows: rows() }), cancelled);
    const [again] = (await open()).batches;
    assert.equal(again && total(again.state), 2);
    assert.equal(await again?.add(listOf(urls(1700))), 1698);
    assert.deepEqual(await totals(), [1700]);
  });

  it("are not read at the start if their batches have finished", async () => {
    const lines = linesOf([...entries, { type: "finished" }]).split("\n");
    const path = put("1-default.jsonl", lines.with(3, "x").join("\n"));
    const { batches, broken, reopen } = await open();
    assert.deepEqual([batches, broken], [[], []]);
    const message = `${path}, line 4: the line is damaged. Nothing was changed. Repair the file, or use msg.reset.`;
    await assert.rejects(reopen()[Symbol.asyncIterator]().next(), { kind: "damaged", message });
  });

  it("are opened again or removed once their batches have finished: those of one name, or all", async () => {
    const { create, reopen, forget } = await open();
    for (const name of ["a", "b", "c", "d", "d"]) {
      const batch = await create(name, listOf(urls(1)));
      await batch.write({ type: "ended", page: 0, ...failed });
      batch.delivered(0);
      await batch.finish();
    }
    assert.deepEqual(names(), ["1-a.jsonl", "2-b.jsonl", "3-c.jsonl", "5-d.jsonl"]);
    const reopened: string[] = [];
    for (const name of ["no such batch", "b"]) {
      assert.equal(await forget(name === "b" ? "a" : name), name === "b" ? 1 : 0);
      for await (const batch of reopen(name)) reopened.push(batch.state.name);
    }
    assert.deepEqual([reopened, await forget()], [["b"], 2]);
    assert.deepEqual(names(), ["2-b.jsonl"]);
  });

  it("are removed with their node, whose waiting rows are counted", async () => {
    const { create } = await open();
    const batch = await create("a", listOf(["a.example", "b.example", "a.example"]));
    await create("b", listOf(["a.example"]));
    await (await create("c", listOf(["a.example"]))).write({ type: "reset" });
    await batch.write({ type: "ended", page: 1, ...created });
    await batch.write({ type: "delivered", page: 1 });
    await closeStore();
    assert.equal(await removeFiles(folder, "node"), 3);
    assert.deepEqual(readdirSync(folder), []);
    const second = await openFiles(folder, "node", never);
    rmSync(own, { recursive: true });
    await second.close(true);
  });

  it("say why their folder cannot be made", async () => {
    put("file", "");
    const reasons = { [join(own, "file/jobs")]: "it is not a folder (ENOTDIR)" };
    // Node.js does not end if it is to make this folder together with those above it.
    if (process.platform === "linux") reasons["/proc/jobs/more"] = "it does not exist (ENOENT)";
    for (const [path, reason] of Object.entries(reasons)) {
      const message = `${join(path, "node")} could not be read or written: ${reason}.`;
      await assert.rejects(openFiles(path, "node", never), { message });
    }
  });

  it("say that a quota is used up, for which Node.js has no name", () => {
    const code = "Unknown system error -122";
    const error = String(fromDisk({ code, syscall: "write" }, folder));
    assert.equal(error, `${folder} could not be read or written: the disk quota is used up (${code}).`);
  });

  it("are not changed by a probe of the disk", async () => {
    const { probe } = await open();
    await probe();
    assert.deepEqual(names(), []);
    mkdirSync(join(own, "probe.new"));
    await assert.rejects(probe(), { code: "EISDIR" });
  });

  it("are found again after a power cut, whatever was done last", async () => {
    folder = join(folder, "a new folder", "jobs");
    own = join(folder, "node");
    let batch: Batch | undefined;
    const steps: Record<string, () => Promise<unknown>> = {
      open,
      create: async () => {
        batch = await store?.create("a", listOf(["a.example"]));
      },
      join: async () => batch?.add(listOf(["b.example"])),
      end: async () => batch?.write({ type: "ended", page: 0, ...failed }),
      async finish() {
        batch?.delivered(0);
        await batch?.finish();
      },
      reopen: async () => {
        for await (const reopened of store?.reopen() ?? []) batch = reopened;
      },
      remove: async () => batch?.journal.remove(),
    };
    for (const [name, step] of Object.entries(steps)) assert.deepEqual(await unsyncedBy(step), [], name);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assert.deepEqual(names(), []);
  });

  it("do not depend on the clock", async () => {
    const past = new Date("1999-01-01");
    utimesSync(put("1-default.jsonl", linesOf(entries)), past, past);
    const { audit, finished } = createBench(folder, createFake());
    const now = Date.now;
    Date.now = () => now() - 10 * 365 * 86_400_000;
    try {
      await audit.resume();
      assert.equal((await finished()).done, 5);
    } finally {
      Date.now = now;
      await audit.close();
    }
  });
});
