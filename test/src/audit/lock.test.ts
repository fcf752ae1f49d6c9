import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openFiles } from "../../../src/audit/files.js";
import { lockFolder } from "../../../src/audit/lock.js";
import { closeAfterEach, openFolder } from "../../support/opened.js";

const LOCK = new URL("../../../src/audit/lock.js", import.meta.url).href;
const quick = { stale: 800, beat: 50 };
/** Milliseconds. The lock of another machine is waited for three times as long. */
const AT_ONCE = 10_000;
const ignore = () => {};

describe("the lock of a folder", () => {
  let folder: string;
  const open = closeAfterEach();

  beforeEach(async () => {
    folder = (await open(openFolder())).path;
  });

  /** Another process that holds the folder. `shell`: a command that starts it, with its parts as parameters. */
  async function lockElsewhere(shell = ""): Promise<ChildProcess> {
    const code = `import { lockFolder } from ${JSON.stringify(LOCK)};
      await lockFolder(${JSON.stringify(folder)}, () => {}, ${JSON.stringify(quick)});
      console.log("locked");
      setInterval(() => {}, 1000);`;
    const command = [process.execPath, "--input-type=module", "-e", code];
    const [file = "", ...parameters] = shell ? ["sh", "-c", shell, "sh", ...command] : command;
    const child = spawn(file, parameters, { stdio: ["ignore", "pipe", "inherit"] });
    await open({ close: () => child.kill("SIGKILL") });
    await once(child.stdout as NodeJS.ReadableStream, "data");
    return child;
  }
  const locks = () => readdirSync(folder).filter((name) => name.startsWith("lock-"));
  /** Has the lock that is there look as another process, machine or system would write it. Returns its path. */
  function change(holder: object): string {
    const path = join(folder, locks()[0] ?? "");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...holder }));
    return path;
  }
  const elsewhere = { place: "elsewhere", host: "elsewhere", pid: 2 ** 30 };
  /** Milliseconds until the folder can be locked. */
  async function takeOver(options = {}): Promise<number> {
    const began = performance.now();
    const { release } = await lockFolder(folder, ignore, options);
    const waited = performance.now() - began;
    assert.equal(locks().length, 1);
    await release();
    assert.deepEqual(locks(), []);
    return waited;
  }

  it("rejects a folder that another process uses, and names the process", async () => {
    const message = new RegExp(`in use by process ${(await lockElsewhere()).pid} on `);
    await assert.rejects(lockFolder(folder, ignore), { kind: "locked", message });
    assert.equal(locks().length, 1);
  });

  it("takes over at once after kill -9", async () => {
    const child = await lockElsewhere();
    child.kill("SIGKILL");
    await once(child, "exit");
    assert.ok((await takeOver()) < AT_ONCE);
  });

  it("takes over at once from a process that has ended, and whose parent has not noticed", async function () {
    if (process.platform !== "linux") this.skip();
    await lockElsewhere('"$@" & exec sleep 1000');
    const { pid } = JSON.parse(readFileSync(join(folder, locks()[0] ?? ""), "utf8"));
    process.kill(pid, "SIGKILL");
    while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) await sleep(5);
    assert.ok((await takeOver()) < AT_ONCE);
  });

  for (const [whose, holder] of Object.entries({
    "an earlier process with the same ID": { started: "1" },
    "its own that it could not remove": {},
  }))
    it(`takes over a lock of ${whose}, and none that it holds`, async () => {
      const { release } = await lockFolder(folder, ignore);
      await assert.rejects(lockFolder(folder, ignore), { kind: "locked" });
      const path = change(holder);
      const lock = readFileSync(path);
      await release();
      writeFileSync(path, lock);
      await takeOver();
    });

  it("respects a lock of another machine while it is refreshed, then takes over", async () => {
    const child = await lockElsewhere();
    change(elsewhere);
    const message = /process 1073741824 on elsewhere/;
    await assert.rejects(lockFolder(folder, ignore, quick), { kind: "locked", message });
    child.kill("SIGKILL");
    await once(child, "exit");
    await takeOver(quick);
  });

  it("takes over at once from another machine that releases its lock meanwhile", async () => {
    await lockFolder(folder, ignore);
    const path = change(elsewhere);
    setTimeout(() => rmSync(path), 50);
    assert.ok((await takeOver()) < AT_ONCE);
  });

  it("checks that a process exists if its start is not known", async () => {
    const child = await lockElsewhere();
    const path = change({ started: "" });
    const lock = readFileSync(path);
    await assert.rejects(lockFolder(folder, ignore, quick), { kind: "locked" });
    // The process is alive, but does not refresh this lock.
    rmSync(path);
    writeFileSync(join(folder, "lock-1-x.json"), lock);
    assert.ok((await takeOver(quick)) >= quick.stale);
    child.kill("SIGKILL");
    await once(child, "exit");
    for (const pid of [child.pid, process.pid]) {
      writeFileSync(path, JSON.stringify({ ...JSON.parse(String(lock)), pid }));
      assert.ok((await takeOver()) < AT_ONCE);
    }
  });

  it("takes over a lock that cannot be read, unless it is refreshed", async () => {
    const path = join(folder, "lock-1-x.json");
    writeFileSync(path, "");
    const refresh = setInterval(() => utimesSync(path, new Date(), new Date()), 20);
    await assert.rejects(lockFolder(folder, ignore, quick), { message: /in use by another process\.$/ });
    clearInterval(refresh);
    await takeOver(quick);
  });

  it("leaves no lock of its own if it cannot remove another one", async () => {
    mkdirSync(join(folder, "lock-1-x.json"));
    await assert.rejects(lockFolder(folder, ignore, quick), { code: "ERR_FS_EISDIR" });
    assert.deepEqual(locks(), ["lock-1-x.json"]);
  });

  it("can be read by its owner alone, and is not lost once it was released", async () => {
    let lost = 0;
    const { release } = await lockFolder(folder, () => lost++, quick);
    assert.equal(statSync(join(folder, locks()[0] ?? "")).mode & 0o777, 0o600);
    await release();
    await sleep(200);
    assert.equal(lost, 0);
  });

  it("notices that another process took the folder over", async () => {
    let lost = 0;
    const { release, check } = await lockFolder(folder, () => lost++, quick);
    await check();
    rmSync(join(folder, locks()[0] ?? ""));
    while (lost === 0) await sleep(5);
    await sleep(200);
    assert.equal(lost, 1);
    await assert.rejects(check(), { code: "ENOENT" });
    await release();
  });

  it("lets one of many through that start at the same moment", async () => {
    const results = await Promise.allSettled([1, 2, 3].map(() => lockFolder(folder, ignore)));
    const held = results.filter(({ status }) => status === "fulfilled");
    assert.ok(held.length <= 1, `${held.length} hold it`);
    assert.equal(locks().length, held.length);
  });

  it("is that of one node, and the next node of the same folder waits", async () => {
    const one = await openFiles(folder, "one", ignore);
    const two = await openFiles(folder, "two", ignore);
    const again = openFiles(folder, "one", ignore);
    assert.equal(await Promise.race([again, sleep(50, "waits")]), "waits");
    await one.close();
    await (await again).close();
    await two.close();
    assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), ["one", "two"]);
  });
});
