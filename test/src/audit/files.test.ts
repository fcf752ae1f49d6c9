import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs, {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import fsp, { type FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { openBatch } from "../../../src/audit/filed.js";
import { openFiles, removeFiles } from "../../../src/audit/files.js";
import { readRows } from "../../../src/audit/rows.js";
import type { Batch, Claim, Ended, Store } from "../../../src/audit/store.js";
import type { Trouble } from "../../../src/audit/trouble.js";
import { cancelled, SeoError } from "../../../src/errors.js";
import { deferred } from "../../../src/turns.js";
import { batchesIn, createBench, createFake, createFolder, urls } from "./fake.js";

const settings = { existing: "create" as const };
const never = () => assert.fail("The folder was taken over.");
const refused = new SeoError("SEO_REJECTED", "No: \u2028 ü.", { attempts: 1, body: "secret of a response" });
/** What is on disk below a folder. */
const contents = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith("lock-"))
    .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), "utf8")]);

/** The files below a folder that this process has open; only Linux says so. */
function openBelow(folder: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc/self/fd").flatMap((number) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${number}`);
      return path.startsWith(folder) ? path : [];
    } catch {
      // That of the list of all is closed.
      return [];
    }
  });
}

/** Follows what `work` does. Returns the folders with new entries that a power cut would remove, because they were not synced. */
async function unsyncedBy(work: () => Promise<unknown>): Promise<string[]> {
  const unsynced = new Set<string>();
  const handle = await fsp.open(process.execPath);
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const { rename, mkdir, open } = fsp;
  const { sync } = prototype;
  fsp.rename = async (from, to) => {
    await rename(from, to);
    unsynced.add(dirname(String(to)));
  };
  fsp.mkdir = (async (path: string, options: object) => {
    const made = await mkdir(path, options);
    for (const one of [path, made ?? path]) unsynced.add(dirname(one));
    return made;
  }) as typeof mkdir;
  fsp.open = async (path, flags, mode) => {
    if (flags === "wx") unsynced.add(dirname(String(path)));
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
    Object.assign(fsp, { rename, mkdir, open });
    prototype.sync = sync;
    syncBuiltinESMExports();
  }
}

describe("the files of an audit", () => {
  let folder: string;
  let remove: () => Promise<void>;
  let log: string;

  /** A batch of eight rows that ended in several ways, two of which wait. */
  beforeEach(async () => {
    ({ folder, remove } = await createFolder());
    const service = createFake({
      fate: (page) => (/[24]$/.test(page) ? refused : page.endsWith("5") ? "lost" : "answered"),
    });
    const bench = createBench(join(folder, "jobs"), service);
    await bench.add([...urls(5), "not a page", { url: "example.org/page/1", password: "hunter2" }]);
    await bench.finished();
    await bench.audit.retry();
    await bench.audit.pause();
    await bench.audit.close();
    log = join(folder, "jobs/node/1-default/log.jsonl");
  });
  afterEach("no file is left open", async () => {
    const open = openBelow(folder);
    await remove();
    assert.deepEqual(open, []);
  });

  let copies = 0;
  const copy = () => {
    const to = join(folder, `copy${++copies}`);
    cpSync(join(folder, "jobs"), to, { recursive: true });
    return { to, log: join(to, "node/1-default/log.jsonl"), list: join(to, "node/1-default/pages-1.jsonl") };
  };

  it("are readable, private, and hold neither secrets nor responses", () => {
    const batch = join(folder, "jobs/node/1-default");
    for (const name of readdirSync(batch)) {
      const path = join(batch, name);
      assert.equal(statSync(path).mode & 0o777, 0o600, name);
      const text = readFileSync(path, "utf8");
      for (const line of text.trim().split("\n")) assert.equal(typeof JSON.parse(line), "object");
      assert.ok(!/hunter2|secret/.test(text), text);
    }
    assert.equal(statSync(batch).mode & 0o777, 0o700);
    assert.equal(statSync(join(folder, "jobs")).mode & 0o777, 0o700);
  });

  it("continue before a last line that was not written completely, at every byte", async () => {
    const whole = readFileSync(log);
    const states = new Map<number, object>();
    const { to, log: cut } = copy();
    for (let size = 0; size <= whole.length; size++) {
      writeFileSync(cut, whole);
      truncateSync(cut, size);
      const batch = await openBatch(join(to, "node/1-default"), () => {});
      const lines = whole.subarray(0, size).toString().split("\n").length;
      assert.deepEqual(batch.counts, states.get(lines) ?? batch.counts, `${size} bytes`);
      states.set(lines, { ...batch.counts });
      if (size % 7 === 0) await batch.pause(true);
      await batch.close();
      if (size % 7 === 0) assert.match(readFileSync(cut, "utf8"), /^(\{[^\n]*\}\n)*\{"paused":true\}\n$/);
    }
    assert.ok(states.size > 20);
  });

  it("name file and line of damage, and do not change anything", async () => {
    const lines = (path: string) => readFileSync(path, "utf8").trim().split("\n").length;
    const { log: anyLog, list: anyList } = copy();
    const damages: [string, number, (line: string) => string][] = [];
    for (let line = 1; line < lines(anyLog); line++) {
      damages.push(["log", line, (text) => text.slice(1)]);
      damages.push(["log", line, () => "{}"]);
    }
    for (let line = 1; line <= lines(anyList); line++) damages.push(["list", line, (text) => text.slice(0, -1)]);
    damages.push(["log", 1, () => '{"row":99,"told":true}']);
    damages.push(["log", 1, () => '{"row":0.5,"again":true}'], ["log", 1, () => '{"row":6,"sent":"create"}']);
    damages.push(["log", 1, () => '{"row":0,"ended":"toString","attempts":1}']);
    async function check([which, line, damage]: (typeof damages)[number]): Promise<void> {
      const made = copy();
      const path = which === "log" ? made.log : made.list;
      const text = readFileSync(path, "utf8").split("\n");
      text[line - 1] = damage(text[line - 1] ?? "");
      writeFileSync(path, text.join("\n"));
      const before = contents(made.to);
      const service = createFake();
      const { audit, errors, add } = createBench(made.to, service);
      await assert.rejects(add(urls(3)), (error: Trouble) => error.kind === "damaged");
      assert.ok(errors[0]?.message.includes(`${path}, line ${line}: `), errors[0]?.message);
      await add(urls(3), { batch: "another" });
      await audit.pause();
      assert.deepEqual(
        contents(made.to).filter(([name, text]) => before.some((b) => b[0] === name && b[1] === text)).length,
        before.length,
      );
      assert.equal(await audit.reset("default"), 1);
      assert.equal(await add(urls(3)), 3);
      await audit.close();
    }
    await Promise.all(damages.map(check));
  });

  it("notice that a file is missing, or does not belong there", async () => {
    for (const [name, reason, from] of [
      ["log.jsonl", "the file is missing"],
      ["pages-1.jsonl", "the list is missing"],
      ["pages-2.jsonl", "the list does not belong here", "pages-1.jsonl"],
    ] as const) {
      const { to } = copy();
      const path = join(to, "node/1-default", name);
      if (from) cpSync(join(to, "node/1-default", from), path);
      else execFileSync("rm", [path]);
      const store = await openFiles(to, "node", never);
      assert.ok(store.broken[0]?.error.message.startsWith(`${path}, line 1: ${reason}.`), String(store.broken[0]));
      await store.close();
    }
  });

  it("are read in the order of their batches, whatever else is in the folder", async () => {
    const to = join(folder, "order");
    const names = Array.from({ length: 12 }, (_, index) => `batch ${index + 1}`);
    const rows = [{ key: "a.test", text: '{"input":"a.test"}' }];
    const first = await openFiles(to, "node", never);
    const [batch] = await Promise.all(names.map((name) => first.create(name, settings, rows)));
    for (const url of urls(11)) await batch?.join(settings, readRows([url]));
    await first.close();
    const draft = join(to, "node/1-batch-1/pages-13.jsonl.new");
    writeFileSync(draft, "");
    const others = ["1st", "notes", "notes.newer"];
    for (const name of ["13-x.new", "9-x.removed", ...others]) mkdirSync(join(to, "node", name));
    const second = await openFiles(to, "node", never);
    assert.deepEqual(
      second.batches.map(({ name, total }) => `${name}: ${total()}`),
      names.map((name, index) => `${name}: ${index === 0 ? 12 : 1}`),
    );
    assert.ok(!existsSync(draft));
    await second.create("next", settings, rows);
    await second.close();
    assert.deepEqual(
      readdirSync(join(to, "node")).filter((name) => !/^[1-9]\d?-batch-/.test(name)),
      ["13-next", ...others],
    );
  });

  it("are in folders with the names of their batches, as far as every system can have them", async () => {
    const to = join(folder, "names");
    const names = ["Spring / Summer 2027", "../..", "", "-ä, b?", "x".repeat(50)];
    const store = await openFiles(to, "node", never);
    for (const name of names) await store.create(name, settings, readRows(["a.example"]));
    await store.close();
    const folders = ["1-spring-summer-2027", "2-", "3-", "4-b", `5-${"x".repeat(40)}`];
    assert.deepEqual(readdirSync(join(to, "node")), folders);
    // If its list is damaged, nothing else has the name.
    const damaged = join(to, "node/10-2027-spring");
    renameSync(join(to, "node/1-spring-summer-2027"), damaged);
    writeFileSync(join(damaged, "pages-1.jsonl"), "x\n");
    const { broken, close } = await openFiles(to, "node", never);
    assert.deepEqual(
      broken.map(({ name }) => name),
      ["2027-spring"],
    );
    await close();
  });

  it("are not opened without a batch that cannot be read at the moment", async () => {
    const { to, log } = copy();
    renameSync(log, `${log}.aside`);
    mkdirSync(log);
    await assert.rejects(openFiles(to, "node", never), { kind: "disk", message: /1-default could not be read or/ });
    rmdirSync(log);
    renameSync(`${log}.aside`, log);
    const store = await openFiles(to, "node", never);
    assert.deepEqual([store.batches.length, store.broken], [1, []]);
    const [batch] = store.batches;
    await store.close();
    assert.ok(batch);
    await assert.rejects(batch.pause(true), cancelled);
  });

  it("leave a page to be requested later if its row cannot be read at the moment", async () => {
    const { to, list } = copy();
    const store = await openFiles(to, "node", never);
    const [batch] = store.batches;
    assert.ok(batch);
    await batch.unplanned();
    renameSync(list, `${list}.aside`);
    await assert.rejects(batch.take("new"), { kind: "disk", message: /pages-1\.jsonl could not be read or/ });
    renameSync(`${list}.aside`, list);
    assert.equal((await batch.take("new"))?.url, "https://example.org/page/2");
    await store.close();
  });

  it("do not change if no page joins, or if that fails", async () => {
    const to = join(folder, "same");
    const store = await openFiles(to, "node", never);
    const batch = await store.create("a", settings, readRows(urls(2)));
    function* rows() {
      yield* readRows(urls(3));
      throw cancelled;
    }
    assert.equal(await batch.join(settings, readRows(urls(2))), 0);
    await assert.rejects(batch.join(settings, rows()), cancelled);
    assert.deepEqual(readdirSync(join(to, "node/1-a")).sort(), ["log.jsonl", "pages-1.jsonl"]);
    await store.close();
  });

  it("say which reports were got", async () => {
    const to = join(folder, "reports");
    const store = await openFiles(to, "node", never);
    await store.create("a", settings, readRows(urls(3)));
    await store.close();
    const ids = ["7", "x"];
    const lines = ids.map((report, row) => JSON.stringify({ row, ended: "fresh", report, attempts: 0 }));
    const error = { code: "SEO_REJECTED", message: "No." };
    lines.push(JSON.stringify({ row: 2, sent: "regenerate", report: "known" }));
    lines.push(JSON.stringify({ row: 2, ended: "failed", attempts: 1, error }));
    const log = join(to, "node/1-a/log.jsonl");
    const read = async () => {
      const { batches, broken, close } = await openFiles(to, "node", never);
      await close();
      assert.deepEqual(broken, []);
      return batches[0]?.reports;
    };
    assert.deepEqual(await read(), []);
    writeFileSync(log, `${lines.join("\n")}\n`);
    assert.deepEqual(await read(), ids);
  });

  it("are removed if the process died after a reset", async () => {
    const { to } = copy();
    const first = await openFiles(to, "node", never);
    await first.batches[0]?.reset();
    await first.close();
    const second = await openFiles(to, "node", never);
    assert.deepEqual([second.batches, batchesIn(join(to, "node"))], [[], []]);
    await second.close();
  });

  it("are opened again or removed once their batches have finished: those of one name, or all", async () => {
    const to = join(folder, "finished");
    const store = await openFiles(to, "node", never);
    for (const name of ["a", "b", "c", "d"])
      await (await store.create(name, settings, readRows(["a.example"]))).finish();
    const reopened: string[] = [];
    for (const name of ["no such batch", "b"]) {
      assert.equal(await store.forget(name === "b" ? "a" : name), name === "b" ? 1 : 0);
      for await (const batch of store.reopen(name)) reopened.push(batch.name);
    }
    assert.deepEqual([reopened, await store.forget()], [["b"], 2]);
    assert.deepEqual(batchesIn(join(to, "node")), ["2-b"]);
    await store.close();
  });

  it("are removed with their node, whose waiting rows are counted", async () => {
    const to = join(folder, "removed");
    const first = await openFiles(to, "node", never);
    const batch = await first.create("a", settings, readRows(["a.example", "b.example", "a.example"]));
    await first.create("b", settings, readRows(["a.example"]));
    await batch.unplanned();
    await batch.take("new");
    await batch.sent(0, { sent: "create" });
    await batch.ended(0, { ended: "created", report: "1", attempts: 1 });
    await first.close();
    appendFileSync(join(to, "node/1-a/log.jsonl"), '{"row":0,"told":true}\n');
    assert.equal(await removeFiles(to, "node"), 3);
    assert.deepEqual(readdirSync(to), []);
    const second = await openFiles(to, "node", never);
    rmSync(join(to, "node"), { recursive: true });
    await second.remove();
  });

  it("end with an error that allows for a folder that was removed", async () => {
    const { setInterval } = globalThis;
    globalThis.setInterval = ((work: () => void) => setInterval(work, 5)) as unknown as typeof setInterval;
    const { promise, resolve } = deferred();
    let message = "";
    const { close } = await openFiles(folder, "node", (error) => {
      ({ message } = error);
      resolve();
    }).finally(() => {
      globalThis.setInterval = setInterval;
    });
    rmSync(join(folder, "node"), { recursive: true });
    await promise;
    await close();
    assert.equal(message, `The folder ${join(folder, "node")} was removed, or taken over by another process.`);
  });

  it("are not changed by a probe of the disk, which names the folder if it fails", async () => {
    const { to } = copy();
    const store = await openFiles(to, "node", never);
    await store.probe();
    assert.deepEqual(batchesIn(join(to, "node")), ["1-default"]);
    mkdirSync(join(to, "node/probe.new"));
    await assert.rejects(store.probe(), {
      kind: "disk",
      message: `${to}/node could not be read or written: error (EISDIR).`,
    });
    await store.close();
  });

  it("are found again after a power cut, whatever was done last", async () => {
    const to = join(folder, "a new folder", "jobs");
    let store: Store | undefined;
    let batch: Batch | undefined;
    const steps: Record<string, () => Promise<unknown>> = {
      open: async () => {
        store = await openFiles(to, "node", never);
      },
      create: async () => {
        batch = await store?.create("a", settings, readRows(["a.example"]));
      },
      join: async () => batch?.join(settings, readRows(["b.example"])),
      finish: async () => batch?.finish(),
      reopen: async () => {
        for await (const reopened of store?.reopen() ?? []) batch = reopened;
      },
      remove: async () => batch?.remove(),
    };
    for (const [name, step] of Object.entries(steps)) assert.deepEqual(await unsyncedBy(step), [], name);
    await store?.close();
  });

  it("are readable if more pages joined, and one failed, while the last failures were being delivered", async () => {
    const to = join(folder, "joined");
    const failed = { ended: "failed" as const, attempts: 1, error: { code: "SEO_FORBIDDEN", message: "No." } };
    const store = await openFiles(to, "node", never);
    const batch = await store.create("a", settings, readRows(urls(4)));
    function tell(page: number): void {
      for (const row of batch.untold(page)) batch.told(row);
      batch.release(page);
    }
    async function request(ended: Ended): Promise<void> {
      const { page } = (await batch.take("new")) as Claim;
      await batch.sent(page, { sent: "create" });
      await batch.ended(page, ended);
      if (ended.error) batch.release(page);
      else tell(page);
    }
    await batch.unplanned();
    for (let page = 0; page < 4; page++) await request(failed);
    await batch.letGo();
    for (let claim = await batch.take("begun"); claim; claim = await batch.take("begun")) tell(claim.page);
    await batch.join(settings, readRows(["e.example", "f.example"]));
    await batch.unplanned();
    await request(failed);
    await request({ ended: "created", report: "1", attempts: 1 });
    await batch.retry();
    await store.close();
    const { broken, batches, close } = await openFiles(to, "node", never);
    assert.deepEqual(broken, []);
    assert.deepEqual(batches[0]?.counts, batch.counts);
    await close();
  });

  it("do not depend on the clock", async () => {
    const { to } = copy();
    const past = new Date("1999-01-01");
    for (const entry of readdirSync(to, { recursive: true })) utimesSync(join(to, String(entry)), past, past);
    const service = createFake();
    const { audit, finished } = createBench(to, service);
    const now = Date.now;
    Date.now = () => now() - 10 * 365 * 86_400_000;
    try {
      await audit.resume();
      assert.equal((await finished()).done, 7);
    } finally {
      Date.now = now;
      await audit.close();
    }
  });
});
