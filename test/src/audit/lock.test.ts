import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openFiles } from "../../../src/audit/files.js";
import { lockFolder } from "../../../src/audit/lock.js";
import { createFolder } from "./fake.js";

const LOCK = new URL("../../../src/audit/lock.js", import.meta.url).href;
const quick = { stale: 300, beat: 50 };
const ignore = () => {};

describe("the lock of a folder", () => {
  let folder: string;
  let remove: () => Promise<void>;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    ({ folder, remove } = await createFolder());
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
    await remove();
  });

  /** Another process that holds the folder. */
  async function lockElsewhere(): Promise<ChildProcess> {
    const code = `import { lockFolder } from ${JSON.stringify(LOCK)};
      await lockFolder(${JSON.stringify(folder)}, () => {}, { beat: 50, stale: 300 });
      console.log("locked");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    await once(child.stdout as NodeJS.ReadableStream, "data");
    return child;
  }
  const locks = () => readdirSync(folder).filter((name) => name.startsWith("lock-"));
  /** Has a lock look as if another machine, or a container, held it. */
  function moveAway(): string {
    const [name = ""] = locks();
    const path = join(folder, name);
    const holder = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(path, JSON.stringify({ ...holder, place: "elsewhere", host: "elsewhere" }));
    return path;
  }

  it("rejects a folder that another process uses, and names the process", async () => {
    const child = await lockElsewhere();
    await assert.rejects(lockFolder(folder, ignore), {
      kind: "locked",
      message: new RegExp(`in use by process ${child.pid} on `),
    });
    assert.equal(locks().length, 1);
  });

  it("takes over at once after kill -9", async () => {
    const child = await lockElsewhere();
    child.kill("SIGKILL");
    await once(child, "exit");
    const began = performance.now();
    const lock = await lockFolder(folder, ignore);
    assert.ok(performance.now() - began < 200);
    assert.equal(locks().length, 1);
    await lock.release();
    assert.deepEqual(locks(), []);
  });

  it("takes over a lock of an earlier process with the same ID", async () => {
    const { release } = await lockFolder(folder, ignore);
    const [name = ""] = locks();
    const holder = JSON.parse(readFileSync(join(folder, name), "utf8"));
    await release();
    writeFileSync(join(folder, name), JSON.stringify({ ...holder, started: "1" }));
    await (await lockFolder(folder, ignore)).release();
    assert.deepEqual(locks(), []);
  });

  it("respects a lock of another machine while it is refreshed, then takes over", async () => {
    const child = await lockElsewhere();
    moveAway();
    await assert.rejects(lockFolder(folder, ignore, quick), { kind: "locked" });
    child.kill("SIGKILL");
    await once(child, "exit");
    await (await lockFolder(folder, ignore, quick)).release();
    assert.deepEqual(locks(), []);
  });

  it("takes over a lock that cannot be read", async () => {
    writeFileSync(join(folder, "lock-1-x.json"), "");
    await (await lockFolder(folder, ignore, quick)).release();
    assert.deepEqual(locks(), []);
  });

  it("notices that another process took the folder over", async () => {
    let lost = 0;
    const lock = await lockFolder(folder, () => lost++, quick);
    rmSync(join(folder, locks()[0] ?? ""));
    await sleep(200);
    assert.equal(lost, 1);
    await lock.release();
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
