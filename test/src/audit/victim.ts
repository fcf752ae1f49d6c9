import fs from "node:fs";
import fsp, { type FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { createBench, createFake, type Report } from "./fake.js";

/**
 * A process of its own that audits pages and kills itself at its n-th side effect: before each file operation, amid each
 * write, and before and after each request is carried out. What the service and the flow know is kept beside the jobs.
 * If the power is cut as well, what was not synced is lost.
 */
const [folder = "", last = "0", text = "[]", cut = ""] = process.argv.slice(2);
const [jobs, known, told, accepted] = ["jobs", "service", "told", "accepted"].map((name) => join(folder, name));
let count = 0;
/** The sizes of files, by their inode, without what was not synced. */
const unsynced = new Map<number, number>();

function cutPower(): void {
  for (const name of fs.readdirSync(String(jobs), { recursive: true })) {
    const path = join(String(jobs), String(name));
    const size = unsynced.get(fs.statSync(path).ino);
    if (size !== undefined) fs.truncateSync(path, size);
  }
}

function step(): void {
  if (++count !== Number(last)) return;
  if (cut) cutPower();
  process.kill(process.pid, "SIGKILL");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

function wrap(target: object, name: string, before: (self: FileHandle, args: unknown[]) => void = () => step()): void {
  const methods = target as Record<string, Method>;
  const method = methods[name] as Method;
  methods[name] = function (...args) {
    before(this as FileHandle, args);
    return method.apply(this, args);
  };
}

const handle = await fsp.open(process.execPath);
const prototype = Object.getPrototypeOf(handle) as object;
await handle.close();

/** Half of a write reaches the file. */
function write({ fd }: FileHandle, data: Buffer, position: number): void {
  const { ino } = fs.fstatSync(fd);
  if (!unsynced.has(ino)) unsynced.set(ino, position);
  step();
  if (count + 1 === Number(last)) fs.writeSync(fd, data, 0, data.length >> 1, position);
  step();
}
wrap(prototype, "appendFile", (file, [text]) => write(file, Buffer.from(text as string), fs.fstatSync(file.fd).size));
wrap(prototype, "write", (file, [data, , , position]) => write(file, data as Buffer, position as number));
wrap(prototype, "truncate");
for (const name of ["sync", "datasync"]) {
  wrap(prototype, name);
  const methods = prototype as Record<string, Method>;
  const method = methods[name] as Method;
  methods[name] = async function () {
    const { ino } = fs.fstatSync((this as FileHandle).fd);
    await method.call(this);
    unsynced.delete(ino);
  };
}
for (const name of ["rename", "rm", "mkdir", "writeFile"]) wrap(fsp, name);
syncBuiltinESMExports();

const read = (path = "") => (fs.existsSync(path) ? JSON.parse(fs.readFileSync(path, "utf8")) : undefined);
const { reports = [], carriedOut = [] } = (read(known) ?? {}) as { reports?: Report[]; carriedOut?: string[] };
const service = createFake(
  {
    step(what) {
      if (what.startsWith("carried out"))
        fs.writeFileSync(String(known), JSON.stringify({ reports, carriedOut: service.carriedOut }));
      step();
    },
  },
  reports,
);
service.carriedOut.push(...carriedOut);

const { audit, add, finished } = createBench(String(jobs), service, {
  share: 2,
  progress({ finished, repeated = false }) {
    if (!finished) return;
    fs.appendFileSync(String(told), `${JSON.stringify({ index: "end", repeated })}\n`);
    step();
  },
  result({ index, outcome, repeated = false, record }) {
    fs.appendFileSync(String(told), `${JSON.stringify({ index, outcome, repeated, record })}\n`);
    step();
  },
});
const end = finished();
if (!fs.existsSync(String(accepted))) {
  await add(JSON.parse(text), { existing: "regenerate" });
  fs.writeFileSync(String(accepted), "");
}
// A batch that has finished tells nothing any more.
if ((await audit.progress()).length > 0) await end;
await audit.close();
